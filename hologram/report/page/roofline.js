// The roofline: operations a byte along one axis, operations a second along the other, both logarithmic.

function rooflinePoints() {
  return mainKernels()
    .filter((k) => k.flops && k.bytes && secondsOf(k) > 0)
    .map((k) => ({ k, x: k.flops / k.bytes, y: (k.flops * k.times) / secondsOf(k), weight: shareOf(k) }));
}

function drawRoof() {
  const points = rooflinePoints(),
    { operation, byte, cached_byte } = part.limits,
    holder = bodyOf("roofline").querySelector(".map");
  const peak = 1e9 / operation,
    memory = 1e9 / byte,
    cached = 1e9 / cached_byte;
  const width = Math.max(280, holder.clientWidth),
    height = width < 500 ? 330 : 440,
    left = 74,
    right = 20,
    top = 22,
    bottom = 46;
  const xs = [...points.map((p) => p.x), peak / memory, peak / cached],
    ys = [...points.map((p) => p.y), peak];
  const x0 = Math.floor(Math.log10(Math.min(...xs)) - 0.3),
    x1 = Math.ceil(Math.log10(Math.max(...xs)) + 0.3),
    y1 = Math.log10(Math.max(...ys)) + 0.25;
  const y0 = Math.min(Math.floor(Math.log10(Math.min(...ys)) - 0.2), Math.floor(y1) - 2);
  const x = (v) => left + ((Math.log10(v) - x0) / (x1 - x0)) * (width - left - right),
    y = (v) => top + ((y1 - Math.log10(v)) / (y1 - y0)) * (height - top - bottom);
  const out = [
    `<svg viewBox="0 0 ${width} ${height}" height="${height}" role="img" aria-label="Roofline with ${points.length} kernels"><defs><clipPath id="inside"><rect x="${left}" y="${top}" width="${width - left - right}" height="${height - top - bottom}"/></clipPath></defs>`,
  ];
  for (let e = x0; e <= x1; e++)
    out.push(
      `<line class="grid" x1="${at(x(10 ** e))}" x2="${at(x(10 ** e))}" y1="${top}" y2="${height - bottom}"/><text class="tick" x="${at(x(10 ** e))}" y="${height - bottom + 17}" text-anchor="middle">${10 ** e >= 1 ? (10 ** e).toLocaleString("en") : (10 ** e).toPrecision(1)}</text>`,
    );
  for (let e = Math.ceil(y0); e <= y1; e++)
    out.push(
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${at(y(10 ** e))}" y2="${at(y(10 ** e))}"/><text class="tick" x="${left - 8}" y="${at(y(10 ** e) + 4)}" text-anchor="end">${rate(10 ** e, "").replace(/\.0+ /, " ")}</text>`,
    );
  out.push(
    `<text class="tick" x="${left + (width - left - right) / 2}" y="${height - 8}" text-anchor="middle">operations a byte</text><text class="tick" transform="translate(14 ${at((height - bottom + top) / 2)}) rotate(-90)" text-anchor="middle">FLOP/s</text><g clip-path="url(#inside)">`,
  );
  const roof = (rateOf, cls) =>
    `<path class="roof ${cls}" d="M${at(x(10 ** x0))} ${at(y(rateOf * 10 ** x0))}L${at(x(peak / rateOf))} ${at(y(peak))}L${at(x(10 ** x1))} ${at(y(peak))}"/>`;
  out.push(roof(memory, ""), cached > memory * 1.05 ? roof(cached, "second") : "", "</g>");
  out.push(
    `<text class="tick" x="${width - right - 4}" y="${at(y(peak) - 7)}" text-anchor="end" style="fill:var(--ink)">${rate(peak, "FLOP/s")}</text>`,
  );
  out.push(pointMarks(points, x, y), pointLabels(points, x, y, width - right), "</svg>");
  holder.innerHTML = out.join("");
}

const radius = (p) => 4 + 14 * Math.sqrt(p.weight);

function pointMarks(points, x, y) {
  return points
    .slice()
    .sort((a, b) => b.weight - a.weight)
    .map(
      (p) =>
        `<circle class="point${measured ? "" : " hollow"}" data-kernel="${p.k.id}" tabindex="0" role="link" aria-label="${escaped(`${p.k.id}, ${p.k.title}`)}" cx="${at(x(p.x))}" cy="${at(y(p.y))}" r="${at(radius(p))}" ${measured ? `fill="var(--h${hue(mainKernels().indexOf(p.k))})"` : ""} stroke="var(--e${hue(mainKernels().indexOf(p.k))})"/>`,
    )
    .join("");
}

// Names of the points that take the most time, where they do not cover one another.
function pointLabels(points, x, y, end) {
  const placed = [],
    out = [];
  for (const p of points
    .slice()
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 12)) {
    const px = x(p.x),
      py = y(p.y),
      name = p.k.id,
      w = name.length * 7.2 + 4;
    const spots = [
      [px + radius(p) + 4, py + 4],
      [px - radius(p) - w, py + 4],
      [px - w / 2, py + radius(p) + 14],
      [px - w / 2, py - radius(p) - 5],
    ];
    const free = spots.find(([a, b]) => a + w < end && !placed.some(([c, d, v]) => a < c + v && c < a + w && Math.abs(b - d) < 13));
    if (!free) continue;
    placed.push([...free, w]);
    out.push(
      `<text x="${at(free[0])}" y="${at(free[1])}" class="tick" style="fill:var(--ink);font-weight:600" pointer-events="none">${escaped(name)}</text>`,
    );
  }
  return out.join("");
}

function drawRoofline() {
  const body = bodyOf("roofline"),
    { operation, byte, cached_byte } = part.limits,
    without = mainKernels().length - rooflinePoints().length;
  const lead = measured
    ? "Each point is a kernel, the larger the more time it takes. The line is what this machine can do at most, dashed where the fastest cache holds the arrays; those in larger caches are limited in between: the nearer a point is to it, the less there is to gain."
    : "Each point is a kernel at the least time that this machine needs, so all lie on the line, by construction. With a profile they lie where they were measured.";
  body.replaceChildren(
    element("p", { class: "lead" }, lead),
    element(
      "div",
      { class: "card plot" },
      element("div", { class: "map" }),
      element("div", {
        class: "legend",
        html: `<span>measured on this machine: <b>${rate(1e9 / operation, "FLOP/s")}</b> of float32 in multiply-adds, memory <b>${rate(1e9 / byte, "B/s")}</b>, caches <b>${rate(1e9 / cached_byte, "B/s")}</b> (dashed; the fastest)</span>${without ? `<span>${count(without, "kernel")} without arithmetic ${without === 1 ? "is" : "are"} not shown</span>` : ""}`,
      }),
    ),
  );
  drawRoof();
  const open = (e) => {
    const id = e.target.dataset && e.target.dataset.kernel;
    if (id) location.hash = `#kernel-${id}`;
  };
  body.addEventListener("click", open);
  body.addEventListener("keydown", (e) => {
    if (e.key === "Enter") open(e);
  });
  tips(body, "[data-kernel]", (e) => kernelTip(e.dataset.kernel));
}
