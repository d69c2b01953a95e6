// The drawing of an outline: SVG of what is open, moved and scaled by its view box.

const KINDS = {
  leaf: 7,
  elementwise: 0,
  movement: 7,
  reduce: 1,
  scan: 1,
  control: 2,
  project: 7,
  gather: 5,
  scatter: 5,
  sort: 5,
  native: 5,
  host: 3,
  contraction: 4,
  attention: 4,
  digits: 5,
  runs: 5,
};
const LEGEND = [
  ["elementwise", 0],
  ["sum, maximum …", 1],
  ["loop, branch", 2],
  ["host routine", 3],
  ["matrix product, attention", 4],
  ["gather, scatter, sort", 5],
  ["array, movement", 7],
];
const colour = (node) => KINDS[(data.ops[node.op] || {}).kind] ?? 7;
const at = (x) => x.toFixed(1);

function text(x, y, s, cls) {
  return `<text x="${at(x)}" y="${at(y)}" class="${cls}">${escaped(s)}</text>`;
}

function drawItem(item, x, y) {
  const { width, height } = item.box;
  const open = isOpen(item);
  const lines = item.frame ? frameLines(item) : nodeLines(item);
  const label = `${lines[0]}, ${lines[1]}${item.frame ? (open ? ", open" : ", closed") : ""}`;
  const cls = `item ${item.frame ? "frame" : "node"}${open ? " open" : ""}`;
  const head = `<g class="${cls}" data-key="${escaped(item.key)}" tabindex="0" role="button" aria-label="${escaped(label)}"${item.frame ? ` aria-expanded="${open}"` : ""} transform="translate(${at(x)} ${at(y)})">`;
  if (open) {
    const inside = drawInside(item, (width - item.inner.width) / 2, HEADER);
    return `${head}<rect class="box" width="${at(width)}" height="${at(height)}" rx="10"/>${text(14, 22, `▾ ${lines[0]}`, "op")}</g><g transform="translate(${at(x)} ${at(y)})">${inside}</g>`;
  }
  return head + (item.frame ? closedFrame(item, lines) : drawnNode(item, lines)) + "</g>";
}

function drawnNode(item, lines) {
  const { width, height } = item.box,
    c = colour(item.node);
  const thick = item.output ? ` stroke-width="2.6"` : "";
  return `<rect class="box" width="${at(width)}" height="${at(height)}" rx="7" fill="var(--h${c})" stroke="var(--e${c})"${thick}/>${text(13, 19, lines[0], "op")}${text(13, 35, lines[1], "type")}`;
}

function closedFrame(item, lines) {
  const { width, height } = item.box;
  const time = kernelsIn(item).reduce((s, k) => s + shareOf(k), 0);
  const stack = `<rect class="stack" x="4" y="-4" width="${at(width - 8)}" height="10" rx="6"/>`;
  const box = `<rect class="box" width="${at(width)}" height="${at(height)}" rx="9"/>`;
  const heat =
    time > 0
      ? `<rect class="heat track" x="12" y="${at(height - 7)}" width="${at(width - 24)}" height="3" rx="1.5"/><rect class="heat" x="12" y="${at(height - 7)}" width="${at(Math.max(2, (width - 24) * time))}" height="3" rx="1.5"/>`
      : "";
  return `${stack}${box}${text(13, 21, `▸ ${lines[0]}`, "op")}${text(13, 38, lines[1], "type")}${heat}`;
}

function drawInside(frame, dx, dy) {
  const out = [`<g transform="translate(${at(dx)} ${at(dy)})">`];
  for (const p of frame.paths)
    out.push(
      `<path class="edge${p.from.startsWith("<") ? " quiet" : ""}" data-from="${escaped(p.from)}" data-to="${escaped(p.to)}" d="${curve(p.points)}" marker-end="url(#head)"/>`,
    );
  for (const s of frame.stubBoxes)
    out.push(
      `<g class="stub" tabindex="0" role="link" aria-label="go to ${escaped(stubLabel(s.from))}" data-go="${graphView.goals.push(s.from) - 1}" transform="translate(${at(s.x - s.width / 2)} ${at(s.y - 10)})"><rect width="${at(s.width)}" height="20" rx="10"/>${text(7, 14, stubLabel(s.from), "")}</g>`,
    );
  for (const c of frame.children) out.push(drawItem(c, c.box.x, c.box.y));
  out.push("</g>");
  return out.join("");
}

// Smooth, through the middles of the layout's points.
function curve(points) {
  const p = points.map(({ x, y }) => [at(x), at(y)]);
  let d = `M${p[0]}`;
  for (let i = 1; i < points.length - 1; i++) d += `Q${p[i]} ${at((points[i].x + points[i + 1].x) / 2)},${at((points[i].y + points[i + 1].y) / 2)}`;
  return `${d}L${p[p.length - 1]}`;
}

// Moving and scaling: buttons, keys, dragging, two fingers, and the wheel with Ctrl or when the drawing was clicked.
class Viewport {
  constructor(holder, svg) {
    Object.assign(this, { holder, svg, x: 0, y: 0, scale: 1, width: 1, height: 1, fingers: new Map() });
    holder.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    holder.addEventListener("pointerdown", (e) => this.down(e));
    holder.addEventListener("pointermove", (e) => this.drag(e));
    for (const name of ["pointerup", "pointercancel"]) holder.addEventListener(name, (e) => this.up(e));
    holder.addEventListener("focusout", (e) => {
      if (!holder.contains(e.relatedTarget)) this.engaged = false;
    });
    new ResizeObserver(() => this.apply()).observe(holder);
  }

  apply() {
    const { clientWidth: w, clientHeight: h } = this.holder;
    this.svg.setAttribute("viewBox", `${at(this.x)} ${at(this.y)} ${at(w / this.scale)} ${at(h / this.scale)}`);
  }

  fit(whole) {
    const { clientWidth: w, clientHeight: h } = this.holder;
    const scale = Math.min((w - 24) / this.width, (h - 24) / this.height, 1.25);
    this.scale = whole ? scale : Math.max(scale, Math.min(0.85, Math.max(0.7, (w - 24) / Math.min(this.width, 900))));
    this.x = (this.scale > scale ? this.start : this.width / 2) - w / 2 / this.scale;
    this.y = this.height * this.scale + 24 <= h ? this.height / 2 - h / 2 / this.scale : -14 / this.scale;
    this.apply();
  }

  zoom(by, px = this.holder.clientWidth / 2, py = this.holder.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.04, this.scale * by));
    this.x += px / this.scale - px / scale;
    this.y += py / this.scale - py / scale;
    this.scale = scale;
    this.apply();
  }

  move(dx, dy) {
    this.x += dx / this.scale;
    this.y += dy / this.scale;
    this.apply();
  }

  center(x, y, scale) {
    this.scale = Math.max(this.scale, scale || 0.8);
    this.x = x - this.holder.clientWidth / 2 / this.scale;
    this.y = y - this.holder.clientHeight / 2 / this.scale;
    this.apply();
  }

  wheel(e) {
    if (!e.ctrlKey && !e.metaKey && !this.engaged) return;
    e.preventDefault();
    const box = this.holder.getBoundingClientRect();
    this.zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.008 : 0.0018)), e.clientX - box.left, e.clientY - box.top);
  }

  down(e) {
    this.engaged = true;
    this.holder.classList.add("engaged"); // the hint has been of use
    this.moved = 0;
    this.fingers.set(e.pointerId, [e.clientX, e.clientY]);
  }

  drag(e) {
    const before = this.fingers.get(e.pointerId);
    if (!before) return;
    const now = [e.clientX, e.clientY],
      others = [...this.fingers].filter(([id]) => id !== e.pointerId);
    if (others.length) this.pinch(before, now, others[0][1]);
    else this.move(before[0] - now[0], before[1] - now[1]);
    this.moved += Math.abs(before[0] - now[0]) + Math.abs(before[1] - now[1]);
    this.fingers.set(e.pointerId, now);
    if (this.moved > 4 && !this.holder.classList.contains("moving")) {
      this.holder.classList.add("moving");
      this.holder.setPointerCapture(e.pointerId);
    }
  }

  pinch(before, now, other) {
    const box = this.holder.getBoundingClientRect();
    const spread = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
    this.zoom(spread(now) / spread(before), (now[0] + other[0]) / 2 - box.left, (now[1] + other[1]) / 2 - box.top);
  }

  up(e) {
    this.fingers.delete(e.pointerId);
    this.holder.classList.remove("moving");
  }
}
