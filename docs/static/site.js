// What those need who hear pages, or go through them by keys, and the theme leaves out. Pages can be read without it.
for (const heading of document.querySelectorAll("p[role=heading]")) heading.ariaLevel = "2";
for (const [place, name] of [["sidebar", "Site"], ["toc", "This page"]])
  document.querySelector(`aside.${place}-drawer`)?.setAttribute("aria-label", name);
// A list of parameters without terms is no list of definitions.
for (const parameters of document.querySelectorAll(".sig dl")) {
  const list = document.createElement("ul");
  for (const one of [...parameters.children]) {
    const item = document.createElement("li");
    item.append(...one.childNodes);
    list.append(item);
  }
  list.className = "parameters";
  parameters.replaceWith(list);
}
const results = document.querySelector("#search-results");
if (results && !document.querySelector("h1")) results.before(Object.assign(document.createElement("h1"), { textContent: "Search" }));
// Whatever scrolls sideways can be scrolled by keys.
const reach = () => {
  for (const one of document.querySelectorAll("pre, .table-wrapper, div.math"))
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
};
reach();
addEventListener("resize", reach);
// An entry of the index leads to an empty place: what is shown of its page is the page's beginning.
if (typeof Search !== "undefined") {
  const summary = Search.makeSearchSummary;
  Search.makeSearchSummary = (page, words, anchor) => summary(page, words, anchor) ?? summary(page, words) ?? document.createElement("p");
}
