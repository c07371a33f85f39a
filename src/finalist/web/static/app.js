// What pages can do beyond forms and links: follow a study live, take a dropped file, copy.
"use strict";
document.documentElement.classList.add("js");
const main = document.getElementById("main");

// ---- live: fetch the page again when something happened, and exchange the parts that changed

const fieldsOf = (part) => [...part.querySelectorAll("input, textarea, select")].filter((field) =>
  field.name && field.id && field.type !== "hidden" && !field.readOnly);

function initial(field) {
  if (field.tagName !== "SELECT") return field.defaultValue;
  return ([...field.options].find((option) => option.defaultSelected) || field.options[0]).value;
}

function exchange(old, fresh) {
  old.classList.remove("fresh");
  if (old.innerHTML === fresh.innerHTML && old.className === fresh.className) return;
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const kept = fieldsOf(old);
  const open = [...old.querySelectorAll("details")].map((details) => details.open);
  const places = [...old.querySelectorAll(".scroll")].map((box) => [box.scrollTop, box.scrollLeft]);
  const part = document.importNode(fresh, true);
  for (const field of kept) {
    const twin = part.querySelector("#" + CSS.escape(field.id));
    if (!twin) continue;
    if (field.type === "file") twin.replaceWith(field);
    else if (field.value !== initial(field) || !twin.value) twin.value = field.value;
  }
  part.querySelectorAll("details").forEach((details, i) => { if (open[i]) details.open = true; });
  // The section itself stays: a screen reader follows it and reads out what is new.
  old.className = part.className;
  old.replaceChildren(...part.childNodes);
  old.querySelectorAll(".scroll").forEach((box, i) => {
    if (places[i]) [box.scrollTop, box.scrollLeft] = places[i];
  });
  const twin = active && active.id && document.getElementById(active.id);
  if (twin) {
    twin.focus({ preventScroll: true });
    if (active.selectionStart != null && twin.setSelectionRange) {
      twin.setSelectionRange(active.selectionStart, active.selectionEnd);
    }
  }
  if (old.id === "verdict") old.classList.add("fresh");
  prepare(old);
}

let fetching = false, again = false;
async function refresh() {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    // After a refused form the address is that of the form, not of the page.
    const answer = await fetch(main.dataset.page || location.pathname + location.search,
      { headers: { Accept: "text/html" }, credentials: "same-origin" });
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("main");
      if (fresh && fresh.dataset.live === main.dataset.live) {
        for (const part of fresh.querySelectorAll("[data-part]")) {
          const old = document.getElementById(part.id);
          if (old) exchange(old, part);
        }
        if (fresh.dataset.last) main.dataset.last = fresh.dataset.last;
      } else if (fresh) location.reload();
    } else if (answer.status === 404) location.reload();
  } catch { /* the server is away; the stream says when it is back */ }
  fetching = false;
  if (again) { again = false; refresh(); }
}

let stream = null;
function follow() {
  if (stream || document.hidden) return;
  stream = new EventSource(main.dataset.live);
  stream.addEventListener("changed", (event) => {
    const news = JSON.parse(event.data);
    if (main.dataset.last && String(news.last) === main.dataset.last) return;
    later();
  });
  stream.addEventListener("deleted", later);
  stream.addEventListener("error", () => {  // a browser tries again by itself, but not if refused
    if (!stream || stream.readyState !== EventSource.CLOSED) return;
    rest();
    setTimeout(follow, 5000);
  });
}
let timer = 0;
function later() { clearTimeout(timer); timer = setTimeout(refresh, 120); }
function rest() { if (stream) { stream.close(); stream = null; } }

if (main.dataset.live && window.EventSource) {
  // A page that nobody sees lets go of its connection: a browser has six for a server.
  document.addEventListener("visibilitychange", () => document.hidden ? rest() : follow());
  window.addEventListener("pagehide", rest);
  window.addEventListener("pageshow", follow);
  follow();
}

// ---- work that takes a while: say that it goes on, how far it is, and let it be stopped

// While a browser waits for an answer the page is still there. The request has a random name, by
// which the server says how far it is; when the browser goes or stops, the work is ended.
function wait(event) {
  const button = event.submitter;
  if (!button || !button.dataset.long) return;
  const form = event.target, name = crypto.getRandomValues(new Uint8Array(16)).reduce(
    (text, byte) => text + byte.toString(16).padStart(2, "0"), "");
  const own = button.hasAttribute("formaction"), before = own ? button.formAction : form.action;
  const target = new URL(before);
  target.searchParams.set("work", name);
  if (own) button.formAction = target; else form.action = target;
  form.querySelectorAll(".working").forEach((note) => note.remove());
  const note = document.createElement("div"), words = document.createElement("p");
  const bar = document.createElement("progress"), stop = document.createElement("button");
  note.className = "note working";
  note.setAttribute("role", "status");
  words.setAttribute("aria-live", "off");  // not every second of it is read out
  words.textContent = button.dataset.long + "…";
  bar.setAttribute("aria-label", button.dataset.long);
  stop.type = "button";
  stop.textContent = "Stop";
  note.append(words, bar, stop);
  const place = form.classList.contains("row") ? form : button.closest("p") || form;
  place.after(note);
  const begun = Date.now();
  let asked = setInterval(ask, 500);
  async function ask() {
    const seconds = Math.round((Date.now() - begun) / 1000);
    let far = "", most = "";
    try {
      const answer = await fetch("/progress/" + name, { credentials: "same-origin" });
      const found = answer.ok ? await answer.json() : {};
      if (found.total) {
        [bar.max, bar.value] = [found.total, found.done];
        far = `${found.done} of ${found.total} runs, `;
      }
      if (found.deadline) most = ` of at most ${found.deadline}`;
    } catch { /* the next look may do better */ }
    if (asked) words.textContent = `${button.dataset.long}: ${far}${seconds}${most} seconds.`;
  }
  function end() {
    clearInterval(asked);
    asked = 0;
    note.remove();
    if (own) button.formAction = before; else form.action = before;
  }
  stop.addEventListener("click", () => { window.stop(); end(); button.focus(); });
  window.addEventListener("pagehide", end, { once: true });
}
document.addEventListener("submit", wait);
document.addEventListener("input", (event) => {  // who writes a number has chosen it
  const choice = event.target.value && document.getElementById(event.target.dataset.chooses ?? "");
  if (choice) choice.checked = true;
});

// A drawing that is not here yet says so; one that does not come says that too.
function drawing(image) {
  if (image.complete && image.naturalWidth) return;
  const figure = image.closest("figure"), note = document.createElement("p");
  note.className = "help drawing";
  note.textContent = "Being computed…";
  const timer = setTimeout(() => figure.append(note), 700);
  const done = (text) => { clearTimeout(timer); text ? (note.textContent = text, figure.append(note)) : note.remove(); };
  image.addEventListener("load", () => done(""));
  image.addEventListener("error", () => done("It could not be computed in time. The rest of the page does not need it."));
}

// ---- small comforts

function prepare(root) {
  root.querySelectorAll("img[data-slow]").forEach(drawing);
  for (const box of root.querySelectorAll("[data-drop]")) {
    const field = box.querySelector("input[type=file]");
    const over = (event, on) => { event.preventDefault(); box.classList.toggle("over", on); };
    box.addEventListener("dragover", (event) => over(event, true));
    box.addEventListener("dragleave", (event) => over(event, false));
    box.addEventListener("drop", (event) => {
      over(event, false);
      if (event.dataTransfer.files.length) field.files = event.dataTransfer.files;
    });
  }
  for (const field of root.querySelectorAll("[data-look]")) {
    field.addEventListener("change", () => document.getElementById("look").click());
  }
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy(button));
  }
  window.dispatchEvent(new CustomEvent("part", { detail: root }));
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const text = source.value ?? source.textContent;
  try { await navigator.clipboard.writeText(text); } catch {
    source.select ? source.select() : getSelection().selectAllChildren(source);
    document.execCommand("copy");
  }
  const word = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = word; }, 1500);
}

prepare(document);
