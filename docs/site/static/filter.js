"use strict";

// A field above a list that shows only the rows and cards that contain all its words.  Without scripts there is none.

function addFilter(place) {
  const entries = [...document.querySelectorAll("article tbody tr, article .card")];
  const field = document.createElement("input"), count = document.createElement("output");
  field.type = "search";
  field.placeholder = "Filter: words of a name or a description";
  field.setAttribute("aria-label", "Filter");
  const texts = entries.map((entry) => entry.textContent.toLowerCase());
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = texts.map((text) => words.every((word) => text.includes(word)));
    entries.forEach((entry, i) => { entry.hidden = !fits[i]; });
    for (const section of document.querySelectorAll("article section section")) {
      section.hidden = words.length > 0 && !section.querySelector("tbody tr:not([hidden]), .card:not([hidden])");
    }
    count.textContent = words.length ? `${fits.filter(Boolean).length} of ${entries.length}` : "";
  });
  place.append(field, count);
}

document.querySelectorAll(".filter").forEach(addFilter);

// Where a column is narrow, names break behind an underscore.
for (const name of document.querySelectorAll("article td:first-child a span:not(:has(*))")) {
  name.innerHTML = name.innerHTML.replaceAll("_", "_<wbr>");
}
