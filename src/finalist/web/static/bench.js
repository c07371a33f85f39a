// At the bench: Enter goes down, a pasted column fills the rows below, and what is typed is kept on
// this device until it is saved.
"use strict";

const PREFIX = "finalist draft ";

// Enter goes to the next row, as in a spreadsheet; a pasted column fills the rows below.
const fieldsBelow = (field) => {
  const fields = [...document.querySelectorAll("table.batch input")];
  return fields.slice(fields.indexOf(field));
};
function down(event, field) {
  if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
  const next = fieldsBelow(field)[1];
  if (next) { event.preventDefault(); next.focus(); next.select(); }
}
function spread(event, field) {
  const lines = event.clipboardData.getData("text").replace(/\r/g, "").replace(/\n+$/, "").split("\n");
  if (lines.length < 2) return;
  event.preventDefault();
  fieldsBelow(field).slice(0, lines.length).forEach((below, i) => {
    below.value = lines[i].trim();
    keep(below);
  });
}

const keyOf = (field) => PREFIX + field.form.dataset.drafts + " " + field.name;
function keep(field) {
  try {
    if (field.value.trim()) localStorage.setItem(keyOf(field), field.value);
    else localStorage.removeItem(keyOf(field));
  } catch { /* a browser may refuse to keep anything */ }
  tell(field.form);
}
function tell(form) {
  const note = form.querySelector("#drafts");
  const typed = [...form.querySelectorAll("table.batch input")].filter((field) => field.value.trim());
  note.textContent = !typed.length ? "" : (typed.length === 1 ? "1 result is" : `${typed.length} results are`)
    + " typed and not saved yet; this device keeps " + (typed.length === 1 ? "it" : "them") + " until you save.";
}
// What is not in the open batch any more was saved, here or by somebody else.
function restore(form) {
  const mine = PREFIX + form.dataset.drafts + " ";
  try {
    for (const key of Object.keys(localStorage)) {
      if (!key.startsWith(mine)) continue;
      const field = form.elements[key.slice(mine.length)];
      if (!field) localStorage.removeItem(key);
      else if (!field.value) field.value = localStorage.getItem(key);
    }
  } catch { /* as above */ }
  tell(form);
}
function atBench(root) {
  for (const field of root.querySelectorAll("table.batch input")) {
    field.addEventListener("keydown", (event) => down(event, field));
    field.addEventListener("paste", (event) => spread(event, field));
    field.addEventListener("input", () => keep(field));
  }
  root.querySelectorAll("form[data-drafts]").forEach(restore);
  root.querySelectorAll("[data-print]").forEach((button) => button.addEventListener("click", () => window.print()));
  root.querySelectorAll("[data-fetch]").forEach(expect);
  if (root.querySelector("[data-reading]")) setTimeout(refresh, 1000);
}

// How many measurements are still to be expected takes seconds to simulate: it comes when it is ready.
async function expect(place) {
  const address = place.dataset.fetch;
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const words = page.getElementById("forecast-words");
    if (!words || place.dataset.fetch !== address) return;
    place.querySelectorAll("a").forEach((link) => link.remove());
    place.append(words.textContent);
    delete place.dataset.fetch;
  } catch { /* the link stays */ }
}

// Whoever signs out leaves nothing behind.
document.addEventListener("submit", (event) => {
  if (!event.target.action.endsWith("/logout")) return;
  try {
    Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).forEach((key) => localStorage.removeItem(key));
  } catch { /* as above */ }
});
window.addEventListener("part", (event) => atBench(event.detail));
atBench(document);
