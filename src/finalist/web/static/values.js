// Values of charts that are pictures: on hover, on tap and by the arrow keys. Marks of the SVG say
// their values (charts/values.py); it is read when somebody asks for the first one, never drawn.
"use strict";

const REACH = 48;  // pixels from a mark at which it still answers
const SAME = 4, MOST = 5;  // marks that cover each other within so many pixels all answer, up to so many
const marks = new Map();  // by the address of a picture
const tip = document.createElement("div"), ring = document.createElement("div");
tip.className = "value-tip";
tip.setAttribute("role", "status");
ring.className = "value-ring";
ring.setAttribute("aria-hidden", "true");
tip.hidden = ring.hidden = true;
document.body.append(ring, tip);
let shown = null;  // the box whose value is shown, and which of its marks

async function read(address) {
  const text = address.startsWith("data:")
    ? new TextDecoder().decode(Uint8Array.from(atob(address.split(",")[1]), (c) => c.charCodeAt(0)))
    : await (await fetch(address, { credentials: "same-origin" })).text();
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const [, , width, height] = (svg.getAttribute("viewBox") || "").split(" ").map(Number);
  const found = [...svg.querySelectorAll('[aria-roledescription="value"]')].map((mark) => {
    // A line is in its middle; everything else is where it was moved to, with all it is in.
    let x = Number(mark.getAttribute("x2") || 0) / 2, y = Number(mark.getAttribute("y2") || 0) / 2;
    for (let one = mark; one && one !== svg; one = one.parentElement) {
      const moved = /translate\(([-\d.e]+)[, ]+([-\d.e]+)\)/.exec(one.getAttribute("transform") || "");
      if (moved) [x, y] = [x + Number(moved[1]), y + Number(moved[2])];
    }
    return { x, y, says: mark.getAttribute("aria-label") };
  });
  return { width, height, found };
}
function of(box) {
  const address = box.querySelector("img").currentSrc;
  if (!marks.has(address)) marks.set(address, read(address).catch(() => { marks.delete(address); return null; }));
  return marks.get(address);
}
// Where a mark is on the page: a picture keeps its proportions and stands in the middle of its box.
function place(box, all, one) {
  const frame = box.querySelector("img").getBoundingClientRect();
  const scale = Math.min(frame.width / all.width, frame.height / all.height);
  return [frame.left + (frame.width - scale * all.width) / 2 + scale * one.x,
    frame.top + (frame.height - scale * all.height) / 2 + scale * one.y];
}
function show(box, all, number, others = []) {
  const one = all.found[number], [x, y] = place(box, all, one);
  shown = { box, number };
  const says = [...new Set([one, ...others].map((each) => each.says))];
  if (says.length > MOST) says.splice(MOST - 1, says.length, `and ${says.length - MOST + 1} more here`);
  if (tip.textContent !== says.join("\n")) tip.textContent = says.join("\n");
  tip.hidden = ring.hidden = false;
  ring.style.left = `${x + scrollX}px`;
  ring.style.top = `${y + scrollY}px`;
  const width = document.documentElement.clientWidth, size = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, width - size.width - 4)) + scrollX}px`;
  tip.style.top = `${(y - size.height - 14 > 0 ? y - size.height - 14 : y + 14) + scrollY}px`;
}
function hide() {
  shown = null;
  tip.hidden = ring.hidden = true;
  tip.textContent = "";
}
const boxOf = (event) => event.target instanceof Element ? event.target.closest(".values") : null;
async function point(event) {
  const box = boxOf(event);
  if (!box) { if (shown && event.type === "pointerdown") hide(); return; }
  const all = await of(box);
  if (!all) return;
  const far = all.found.map((one) => {
    const [x, y] = place(box, all, one);
    return Math.hypot(x - event.clientX, y - event.clientY);
  });
  const nearest = far.indexOf(Math.min(...far));
  if (far[nearest] <= REACH) show(box, all, nearest, all.found.filter((one) =>
    Math.hypot(...place(box, all, one).map((at, i) => at - place(box, all, all.found[nearest])[i])) <= SAME));
  else if (shown) hide();
}
async function step(event) {
  const box = boxOf(event);
  if (!box) return;
  if (event.key === "Escape") { hide(); return; }
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  if (!by) return;
  event.preventDefault();
  const all = await of(box);
  if (!all || !all.found.length) return;
  const now = shown && shown.box === box ? shown.number : by > 0 ? -1 : all.found.length;
  show(box, all, Math.max(0, Math.min(now + by, all.found.length - 1)));
}
document.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse") point(event); });
document.addEventListener("pointerdown", point);
document.addEventListener("pointerout", (event) => { if (event.pointerType === "mouse" && shown && boxOf(event) && !shown.box.matches(":hover")) hide(); });
document.addEventListener("keydown", step);
document.addEventListener("focusout", (event) => { if (shown && boxOf(event) === shown.box) hide(); });
window.addEventListener("resize", hide);
