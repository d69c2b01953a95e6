// The memory map: steps along one axis, addresses along the other.

const memoryView = { step: 0, chosen: null };
// The last step in which memory is a buffer's own: where an heir takes it over in place, that step is the heir's.
const ownUntil = (b) => (b.heir === undefined ? b.last : b.last - 1);
const aliveAt = (step) => part.memory.buffers.map((b, i) => [b, i]).filter(([b]) => b.bytes && b.first <= step && step <= ownUntil(b));
const bufferName = (i) => `${part.memory.buffers[i].is} ${part.memory.buffers[i].type}`;

function stepName(i) {
  const s = part.steps[i];
  return s ? (s.kernels.length === 1 ? `${s.kernels[0]} · ${s.title}` : s.title) : "";
}

function bufferTip(i) {
  const b = part.memory.buffers[i];
  const place =
    b.page === undefined
      ? "linear"
      : `${Math.ceil(b.bytes / part.memory.page_bytes) === 1 ? "page" : "pages"} ${b.page}${b.bytes > part.memory.page_bytes ? `…${b.page + Math.ceil(b.bytes / part.memory.page_bytes) - 1}` : ""}`;
  return `<b>${escaped(b.type)}</b>${rows([
    ["what", b.is],
    ["size", bytes(b.bytes)],
    ["address", `${b.offset.toLocaleString("en")} … ${(b.offset + b.bytes).toLocaleString("en")}`],
    ["place", place],
    ["written in", `step ${b.first}: ${stepName(b.first)}`],
    ["last read in", `step ${b.last}: ${stepName(b.last)}`],
    ["taken over by", b.heir === undefined ? "" : `${bufferName(b.heir)}, in place`],
    ["line", placeName(b.place)],
    ["", placeText(b.place)],
  ])}`;
}

// Colours of buffers: of those whose boxes overlap in time or touch, the nearest addresses count most.
function bufferHues() {
  const buffers = part.memory.buffers,
    hues = [];
  buffers.forEach((b, i) => {
    const used = new Array(HUES).fill(0);
    for (let j = 0; j < i; j++) {
      const c = buffers[j];
      if (!c.bytes || c.first > b.last + 1 || c.last + 1 < b.first) continue;
      const apart = Math.max(0, b.offset - c.offset - c.bytes, c.offset - b.offset - b.bytes);
      used[hues[j]] += 1 / (1 + apart / part.memory.page_bytes);
    }
    const least = Math.min(...used);
    hues.push([...used.keys()].map((k) => (hue(i) + k) % HUES).find((k) => used[k] === least));
  });
  return hues;
}

function bufferHue(i) {
  if (memoryView.of !== part) Object.assign(memoryView, { of: part, hues: bufferHues() });
  return memoryView.hues[i];
}

function drawMap() {
  const m = part.memory,
    holder = bodyOf("memory").querySelector(".map");
  const width = Math.max(280, holder.clientWidth),
    left = 62,
    right = 10,
    high = width < 500 ? 300 : 470,
    steps = part.steps.length;
  const x = (s) => left + ((width - left - right) * s) / steps,
    y = (a) => 22 + (high * a) / (m.arena || 1);
  const out = [
    `<svg viewBox="0 0 ${width} ${high + 62}" height="${high + 62}" role="img" aria-label="Memory map: ${m.buffers.length} buffers over ${steps} steps">`,
  ];
  const tick = 2 ** Math.floor(Math.log2(Math.max(4, m.arena) / 4));
  for (let a = 0; a <= m.arena; a += tick)
    out.push(
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${at(y(a))}" y2="${at(y(a))}"/><text class="tick" x="${left - 7}" y="${at(y(a) + 4)}" text-anchor="end">${bytes(a).replace(/\.0+ /, " ")}</text>`,
    );
  const every = Math.max(1, Math.ceil(steps / (width / 46)));
  for (let s = 0; s < steps; s += every) out.push(`<text class="tick" x="${at(x(s + 0.5))}" y="${high + 38}" text-anchor="middle">${s}</text>`);
  out.push(`<rect x="${at(x(m.peak_step))}" y="22" width="${at(Math.max(2, x(1) - x(0)))}" height="${high}" fill="var(--warm-soft)"/>`);
  m.buffers.forEach((b, i) => {
    if (b.bytes) out.push(mapBuffer(b, i, x, y));
  });
  const near = y(m.lower_bound);
  out.push(`<line class="bound" x1="${left}" x2="${width - right}" y1="${at(near)}" y2="${at(near)}"/>`);
  const mid = x(m.peak_step + 0.5),
    anchor = mid > width - 110 ? "end" : mid < 150 ? "start" : "middle";
  out.push(`<text class="peak-label" x="${at(mid)}" y="15" text-anchor="${anchor}">peak ${bytes(m.arena)}</text>`);
  out.push(
    `<line class="cursor" y1="18" y2="${high + 22}"/><text class="tick" x="${at(left + (width - left - right) / 2)}" y="${high + 51}" text-anchor="middle">step</text></svg>`,
  );
  holder.innerHTML = out.join("");
  memoryView.x = x;
  memoryView.stepAt = (px) => Math.max(0, Math.min(steps - 1, Math.floor(((px - left) / (width - left - right)) * steps)));
}

function mapBuffer(b, i, x, y) {
  const px = x(b.first),
    w = Math.max(1.5, x(ownUntil(b) + 1) - px - 1),
    py = y(b.offset),
    h = Math.max(1, y(b.offset + b.bytes) - py - 0.6);
  const name = h > 13 ? [`${b.type}  ${bytes(b.bytes)}`, b.type, bytes(b.bytes)].find((t) => t.length * 6.5 + 8 < w) : "";
  const label = name
    ? `<text class="tick" x="${at(px + 5)}" y="${at(py + Math.min(h / 2 + 4, 16))}" style="fill:var(--ink)">${escaped(name)}</text>`
    : "";
  return `<g><rect class="buffer" data-buffer="${i}" x="${at(px)}" y="${at(py)}" width="${at(w)}" height="${at(h)}" rx="2" fill="var(--h${bufferHue(i)})" stroke="var(--e${bufferHue(i)})"/><g pointer-events="none">${label}</g></g>`;
}

function setStep(step) {
  memoryView.step = step;
  const root = bodyOf("memory"),
    m = part.memory,
    alive = aliveAt(step);
  root.querySelector("input").value = step;
  root.querySelector("output").innerHTML = `step <b>${step}</b> of ${part.steps.length - 1}: ${escaped(stepName(step))}`;
  const cursor = root.querySelector(".cursor"),
    middle = at(memoryView.x(step + 0.5));
  cursor.setAttribute("x1", middle);
  cursor.setAttribute("x2", middle);
  drawPages(step);
  const list = alive
    .sort((a, b) => b[0].bytes - a[0].bytes)
    .map(([b, i]) =>
      element(
        "tr",
        { class: "pick", "data-buffer": i },
        element(
          "td",
          {},
          element("i", {
            class: "swatch",
            style: `display:inline-block;width:11px;height:11px;border-radius:3px;background:var(--h${bufferHue(i)});border:1px solid var(--e${bufferHue(i)})`,
          }),
        ),
        element(
          "td",
          {},
          element("code", {}, b.type),
          element("div", { class: "muted small" }, [b.is, placeName(b.place)].filter(Boolean).join(" · ")),
        ),
        element("td", { class: "number" }, bytes(b.bytes), element("div", { class: "muted small" }, share(b.bytes / (m.alive[step] || 1)))),
      ),
    );
  root.querySelector(".alive h3").textContent =
    `Alive in step ${step}: ${bytes(m.alive[step])} in ${count(alive.length, "buffer")}${step === m.peak_step ? " · the peak" : ""}`;
  root.querySelector(".alive tbody").replaceChildren(...list.slice(0, 40));
}

function memoryFacts() {
  const m = part.memory;
  return facts([
    ["peak of intermediates", bytes(m.arena)],
    ["no plan needs less than", bytes(m.lower_bound)],
    ["arguments", bytes(m.arguments)],
    ["constants", m.constants ? bytes(m.constants) : ""],
    ["results", bytes(m.results)],
    ["scratch of a thread", m.scratch ? bytes(m.scratch) : ""],
  ]);
}

function drawMemory() {
  const m = part.memory,
    body = bodyOf("memory");
  const lead = `Intermediates live in one arena, planned ahead. Its first ${m.pages} pages of ${bytes(m.page_bytes)} are the pool: 4 × 3 × 8. Each box is a buffer, as long as it lives and as high as it is large.`;
  if (!m.arena)
    return body.replaceChildren(
      element("p", { class: "lead" }, "The program keeps no intermediates: kernels read arguments and write results."),
      memoryFacts(),
    );
  const slider = element("input", {
    type: "range",
    min: 0,
    max: part.steps.length - 1,
    value: m.peak_step,
    "aria-label": "Step",
    oninput: (e) => setStep(+e.target.value),
  });
  const toPeak = element("button", { type: "button", onclick: () => setStep(m.peak_step) }, "Go to the peak");
  body.replaceChildren(
    element("p", { class: "lead" }, lead),
    memoryFacts(),
    element("div", { class: "time" }, slider, element("output", { "aria-live": "polite" }), toPeak),
    element(
      "div",
      { class: "mem" },
      element(
        "div",
        { class: "card plot" },
        element("h3", {}, "Addresses over time"),
        element("div", { class: "map" }),
        element("div", {
          class: "legend",
          html: `<span><i style="background:var(--warm-soft);border-color:var(--warm)"></i>step of the peak</span><span><i style="background:none;border-color:var(--e2);border-style:dotted"></i>lower bound ${bytes(m.lower_bound)}</span><span><i style="background:var(--accent);border-color:var(--accent);width:2px"></i>the step that is shown</span>`,
        }),
      ),
      element(
        "div",
        { class: "side" },
        element(
          "div",
          { class: "card plot" },
          element("h3", {}, "The pages of the pool"),
          element("div", { class: "blocks" }),
          element("div", {
            class: "legend",
            html: `<span><i style="background:var(--h0);border-color:var(--e0)"></i>owned by a buffer</span><span><i class="page linear" style="border-color:var(--strong)"></i>under a linear buffer</span><span><i style="background:var(--sunken);border-color:var(--line)"></i>free</span><span>blocks h₂, rows d, columns l</span>`,
          }),
        ),
        element(
          "div",
          { class: "card plot alive" },
          element("h3", {}),
          element("div", { tabindex: 0, role: "region", "aria-label": "Buffers" }, element("table", {}, element("tbody", {}))),
        ),
      ),
    ),
  );
  drawMap();
  tips(body, "[data-buffer]", (e) => bufferTip(+e.dataset.buffer));
  body
    .querySelector(".map")
    .addEventListener("click", (e) => setStep(memoryView.stepAt(e.clientX - body.querySelector(".map").getBoundingClientRect().left)));
  setStep(m.peak_step);
}
