// A box and a choice of verdicts above the tables of a page. Rows that do not have all words of the box, in themselves, in
// their heading or in the path of the page that they lead to, are hidden, and so are those of another verdict and headings
// that are left without rows.
document.addEventListener("DOMContentLoaded", () => {
  const sections = [...document.querySelectorAll("article section section")].filter((one) => one.querySelector("table"));
  if (!sections.length) return;
  const wordsOf = new Map();
  const verdictOf = new Map();
  for (const section of sections) {
    const heading = section.querySelector("h2").textContent;
    const at = [...section.querySelectorAll("thead th")].findIndex((one) => one.textContent.trim() === "verdict");
    for (const row of section.querySelectorAll("tbody tr")) {
      // A page aryl/reclaim/NAME is found by "aryl.reclaim" and by its name.
      const path = (row.querySelector("a")?.getAttribute("href") ?? "").replace(".html", "");
      wordsOf.set(row, `${heading} ${row.textContent} ${path} ${path.replaceAll("/", ".")}`.toLowerCase());
      verdictOf.set(row, row.cells[at]?.textContent.trim() ?? "");
    }
  }
  const rows = [...wordsOf.keys()];

  const box = document.createElement("p");
  box.className = "filter";
  box.innerHTML = '<label for="filter">Filter the rows by words:</label> <input id="filter" type="search"> <label for="verdict">Verdict:</label> <select id="verdict"><option value="">any</option></select> <output for="filter verdict"></output>';
  sections[0].before(box);
  const input = box.querySelector("input");
  const choice = box.querySelector("select");
  for (const verdict of [...new Set(verdictOf.values())].sort()) choice.add(new Option(verdict, verdict));
  const count = box.querySelector("output");

  function filter() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const chosen = !choice.value || verdictOf.get(row) === choice.value;
      row.hidden = !chosen || !words.every((word) => wordsOf.get(row).includes(word));
    }
    for (const section of sections) {
      section.hidden = ![...section.querySelectorAll("tbody tr")].some((row) => !row.hidden);
    }
    count.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    // What is filtered for is part of the address, so that it can be passed on.
    const asked = new URLSearchParams();
    if (words.length) asked.set("filter", input.value);
    if (choice.value) asked.set("verdict", choice.value);
    history.replaceState(null, "", asked.toString() ? `?${asked}` : location.pathname);
  }

  const asked = new URLSearchParams(location.search);
  input.value = asked.get("filter") ?? "";
  choice.value = asked.get("verdict") ?? "";
  if (choice.selectedIndex < 0) choice.value = "";
  input.addEventListener("input", filter);
  choice.addEventListener("change", filter);
  if (input.value || choice.value) filter();
  else count.value = `${rows.length} rows`;
});
