// A table that is wider than the page may first break its names, after "_", "=" and the like, then be set smaller, and
// scrolls in itself at last: then the keyboard has to reach it, too.
document.addEventListener("DOMContentLoaded", () => {
  const isWide = (table) => table.scrollWidth > table.clientWidth;
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (isWide(table) && innerWidth >= 1200) {
      const words = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
      const long = [];
      while (words.nextNode()) if (/\w[_=,./]\w/.test(words.currentNode.data)) long.push(words.currentNode);
      for (const text of long) {
        const parts = text.data.split(/(?<=\w[_=,./])(?=[A-Za-z])/);
        text.replaceWith(...parts.flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part])));
      }
    }
    if (isWide(table) && innerWidth >= 1200) table.classList.add("small");
    if (isWide(table)) table.tabIndex = 0;
  }
});
