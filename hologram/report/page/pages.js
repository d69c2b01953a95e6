// The 96 pages of the pool, by their three coordinates, at one step.

function pageOwners(step) {
  const m = part.memory,
    owners = new Array(m.pages).fill(null);
  const mark = (b, i, first, last, linear) => {
    for (let p = first; p <= Math.min(last, m.pages - 1); p++) if (!owners[p] || !linear) owners[p] = { i, linear };
  };
  for (const [b, i] of aliveAt(step)) {
    const last = Math.floor((b.offset + b.bytes - 1) / m.page_bytes);
    mark(b, i, Math.floor(b.offset / m.page_bytes), last, b.page === undefined);
  }
  return owners;
}

function drawPages(step) {
  const owners = pageOwners(step);
  const block = (h2) =>
    element(
      "div",
      { class: "pageblock", role: "group", "aria-label": `pages ${24 * h2} to ${24 * h2 + 23}` },
      element("b", {}, `h₂ = ${h2}`),
      owners.slice(24 * h2, 24 * h2 + 24).map((o, k) => pageCell(o, 24 * h2 + k)),
    );
  bodyOf("memory")
    .querySelector(".blocks")
    .replaceChildren(...[0, 1, 2, 3].map(block));
}

function pageCell(owner, number) {
  const [d, l] = [Math.floor(number / 8) % 3, number % 8];
  const where = `page ${number}, h2 = ${Math.floor(number / 24)}, d = ${d}, l = ${l}`;
  if (!owner) return element("span", { class: "page", title: `${where}: free` }, String(number));
  return element(
    "span",
    {
      class: `page owned${owner.linear ? " linear" : ""}`,
      "data-buffer": owner.i,
      "data-page": number,
      "aria-label": `${where}: ${bufferName(owner.i)}`,
      style: `background-color:var(--h${bufferHue(owner.i)});border-color:var(--e${bufferHue(owner.i)})`,
    },
    String(number),
  );
}
