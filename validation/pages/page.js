"use strict";
// All content is there without this: it sorts and filters tables, tells the values of plots, and opens what is folded.

function keyOf(row, column) {
  const cell = row.cells[column], told = cell.dataset.key ?? cell.textContent;
  return told === "" || told === "–" ? null : told;
}

function sort(body, column, direction) {
  const rows = [...body.rows], keys = new Map(rows.map((row) => [row, keyOf(row, column)]));
  const given = [...keys.values()].filter((key) => key !== null);
  const numbers = given.every((key) => !Number.isNaN(Number(key)));
  const compare = numbers ? (a, b) => Number(a) - Number(b) || 0 : (a, b) => a.localeCompare(b, "en", { numeric: true });
  rows.sort((first, second) => {
    const [a, b] = [keys.get(first), keys.get(second)];
    // What is missing stands last, whichever the direction.
    if (a === null || b === null) return (a === null) - (b === null);
    return a === b ? 0 : direction * compare(a, b);
  });
  body.append(...rows);
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.textContent) return;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(table.tBodies[0], column, up ? 1 : -1);
    });
  });
}

function makeFilterable(table) {
  const rows = [...table.tBodies[0].rows], region = table.parentElement;
  const label = document.createElement("label"), input = document.createElement("input");
  const count = document.createElement("output");
  label.className = "filter";
  input.type = "search";
  input.placeholder = "words of a row";
  label.append("Filter ", input, count);
  region.before(label);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const cells = [...row.cells].map((cell) => cell.textContent.toLowerCase());
      row.hidden = !words.every((word) => cells.some((cell) => cell.includes(word)));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });
}

const told = document.createElement("div");
told.className = "told";
told.setAttribute("role", "status");

function tell(circle) {
  document.querySelectorAll(".here").forEach((other) => other.classList.remove("here"));
  told.textContent = circle?.dataset.words ?? "";
  if (!circle) return;
  circle.classList.add("here");
  const at = circle.getBoundingClientRect(), width = told.offsetWidth, height = told.offsetHeight;
  const left = Math.min(at.left + at.width / 2 - width / 2, document.documentElement.clientWidth - width - 4);
  told.style.left = `${Math.max(4, left)}px`;
  told.style.top = `${at.top > height + 8 ? at.top - height - 4 : at.bottom + 4}px`;
}

function makeTold(values) {
  const plot = values.closest("svg"), circles = [...values.children];
  if (!circles.length) return;
  for (const circle of circles) {
    // The browser would show a title of its own beside ours.
    circle.dataset.words = circle.textContent;
    circle.replaceChildren();
  }
  let now = -1;
  plot.tabIndex = 0;
  plot.setAttribute("aria-label", `${plot.getAttribute("aria-label")}. Left and right arrow keys tell its values.`);
  values.addEventListener("pointerover", (event) => tell(event.target));
  values.addEventListener("pointerout", () => tell(null));
  plot.addEventListener("blur", () => tell(null));
  plot.addEventListener("keydown", (event) => {
    const last = circles.length - 1;
    const next = {
      ArrowRight: Math.min(now + 1, last), ArrowLeft: Math.max(now - 1, 0), Home: 0, End: last,
    }[event.key];
    if (event.key === "Escape") tell(null);
    if (next === undefined) return;
    event.preventDefault();
    now = next;
    tell(circles[now]);
  });
}

function openTarget() {
  let mark;
  // Not every fragment that can be typed is text.
  try { mark = decodeURIComponent(location.hash.slice(1)); } catch { return; }
  const target = document.getElementById(mark);
  const folded = target?.closest("details");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}

document.body.append(told);
for (const table of document.querySelectorAll("table")) {
  makeSortable(table);
  if (table.tBodies[0].rows.length > 5) makeFilterable(table);
}
document.querySelectorAll("figure .values").forEach(makeTold);
addEventListener("scroll", () => tell(null), { passive: true });
addEventListener("hashchange", openTarget);
openTarget();

// On paper nothing can be unfolded.
let unfolded = [];
matchMedia("print").addEventListener("change", ({ matches }) => {
  if (matches) unfolded = [...document.querySelectorAll("details:not([open])")];
  for (const one of unfolded) one.open = matches;
});
