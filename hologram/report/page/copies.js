// Copies of whole arrays that are left, with the reasons.

function drawCopies() {
  const found = part.copies;
  if (!found.length)
    return bodyOf("copies").replaceChildren(element("p", { class: "lead" }, "No array is copied: every update is made in place, or there is none."));
  bodyOf("copies").replaceChildren(
    element("p", { class: "lead" }, "Updates that copy the array that they change, and why they cannot change it where it is."),
    element(
      "div",
      { class: "card scroll" },
      element(
        "table",
        {},
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            ["Step", "Array", "Why"].map((t) => element("th", {}, t)),
          ),
        ),
        element(
          "tbody",
          {},
          found.map((c) => element("tr", {}, element("td", {}, String(c.step)), element("td", { class: "mono" }, c.of), element("td", {}, c.why))),
        ),
      ),
    ),
  );
}
