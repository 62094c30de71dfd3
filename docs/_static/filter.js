// A box above the tables of a page. Rows that do not have all of its words, in themselves or in their heading, are hidden,
// and so are headings that are left without rows.
document.addEventListener("DOMContentLoaded", () => {
  const sections = [...document.querySelectorAll("article section section")].filter((one) => one.querySelector("table"));
  if (!sections.length) return;
  const wordsOf = new Map();
  for (const section of sections) {
    const heading = section.querySelector("h2").textContent;
    for (const row of section.querySelectorAll("tbody tr")) wordsOf.set(row, `${heading} ${row.textContent}`.toLowerCase());
  }
  const rows = [...wordsOf.keys()];

  const box = document.createElement("p");
  box.className = "filter";
  box.innerHTML = '<label for="filter">Filter the rows by words:</label> <input id="filter" type="search"> <output for="filter"></output>';
  sections[0].before(box);
  const input = box.querySelector("input");
  const count = box.querySelector("output");

  function filter() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      row.hidden = !words.every((word) => wordsOf.get(row).includes(word));
    }
    for (const section of sections) {
      section.hidden = ![...section.querySelectorAll("tbody tr")].some((row) => !row.hidden);
    }
    count.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    // What is filtered for is part of the address, so that it can be passed on.
    history.replaceState(null, "", words.length ? `?filter=${encodeURIComponent(input.value)}` : location.pathname);
  }

  input.value = new URLSearchParams(location.search).get("filter") ?? "";
  input.addEventListener("input", filter);
  if (input.value) filter();
  else count.value = `${rows.length} rows`;
});
