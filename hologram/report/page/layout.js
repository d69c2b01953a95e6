// Places of what is visible: dagre lays out each open frame by itself, and the result is kept until something in it opens or closes.

const HEADER = 34,
  PADDING = 14;
const FAR = 7; // items between two, from which an arrow would be longer than it is worth: a stub stands for it
const pen = document.createElement("canvas").getContext("2d"),
  widths = new Map();

// The width of a text in one of the fonts of the drawing.
function widthOf(text, font) {
  const key = `${font}|${text}`;
  if (!widths.has(key)) {
    pen.font = FONTS[font];
    widths.set(key, pen.measureText(text).width);
  }
  return widths.get(key);
}

const style = getComputedStyle(document.documentElement);
const [sans, mono] = ["--sans", "--mono"].map((name) => style.getPropertyValue(name));
const FONTS = { op: `600 13px ${sans}`, type: `11.5px ${mono}`, stub: `11px ${mono}` };

function nodeLines(item) {
  const n = item.node;
  const what =
    n.op === "input"
      ? `argument ${item.id}`
      : n.op === "leaf"
        ? "constant array"
        : [n.op, ...item.constants, cut(n.attrs || "", 22)].filter(Boolean).join(" ");
  return [what, n.type];
}

function frameLines(item) {
  const inside = nodesIn(item).length;
  const kernels = kernelsIn(item);
  const line = item.kernels && item.kernels.length ? item.kernels[0].places[0] : item.place;
  const sub = item.node
    ? item.node.type
    : item.section
      ? kernels.length
        ? count(kernels.length, "kernel")
        : count(inside, "operation")
      : [placeName(line), count(inside, "op")].filter(Boolean).join(" · ");
  const time = kernels.reduce((s, k) => s + shareOf(k), 0);
  return [cut(item.label, 46), sub + (time > 0 ? ` · ${share(time)} of the time` : "")];
}

const isOpen = (item) => item.frame && item.open;

function sizeOf(item) {
  if (isOpen(item)) {
    layoutFrame(item);
    return [Math.max(item.inner.width + 2 * PADDING, widthOf(`▾ ${cut(item.label, 46)}`, "op") + 30), item.inner.height + HEADER + PADDING];
  }
  const [first, second] = item.frame ? frameLines(item) : nodeLines(item);
  const width = Math.max(widthOf(item.frame ? `▸ ${first}` : first, "op"), widthOf(second, "type"), 60) + 27;
  return [width, item.frame ? 52 : 44];
}

function layoutFrame(frame) {
  if (frame.inner) return;
  if (frame.node) return layoutBodies(frame);
  const g = new dagre.graphlib.Graph();
  g.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 34, marginx: 4, marginy: 4 });
  for (const c of frame.children) {
    const [width, height] = sizeOf(c);
    g.setNode(c.key, { width, height });
  }
  const [near, stubs] = arrows(frame);
  for (const [a, b] of near) g.setEdge(a.key, b.key, {});
  for (const [key, { from, to }] of stubs) {
    g.setNode(key, { width: widthOf(stubLabel(from), "stub") + 14, height: 20 });
    g.setEdge(key, to.key, {});
  }
  keepOrder(frame, g);
  if (g.nodeCount()) dagre.layout(g);
  else g.setGraph({ width: 80, height: 8 }); // a branch that computes nothing
  for (const c of frame.children) {
    const { x, y, width, height } = g.node(c.key);
    c.box = { x: x - width / 2, y: y - height / 2, width, height };
  }
  frame.stubBoxes = [...stubs].map(([key, { from }]) => ({ from, ...g.node(key) }));
  frame.paths = g
    .edges()
    .filter((e) => !g.edge(e).unseen)
    .map((e) => ({ from: e.v, to: e.w, points: g.edge(e).points }));
  frame.inner = { width: g.graph().width, height: g.graph().height };
}

const isGiven = (item) => item.node && (item.node.op === "input" || item.node.op === "leaf");

// What only stubs lead to stands below what is computed before it.
function keepOrder(frame, g) {
  let before = null;
  for (const c of frame.children.filter((x) => !isGiven(x))) {
    const first = g.predecessors(c.key).every((k) => k.startsWith("<") || g.predecessors(k).length === 0);
    if (before && first && !g.hasEdge(before.key, c.key)) g.setEdge(before.key, c.key, { weight: 0, unseen: true });
    before = c;
  }
}

// Which edges of a frame are arrows, and the stubs, one for each end: what comes from outside or from far, and arguments but for their first reader.
function arrows(frame) {
  const order = new Map(frame.children.map((c, i) => [c.key, i])),
    read = new Set(),
    near = [],
    stubs = new Map();
  const stub = (from, to) => stubs.set(`<${from.key}>${to.key}`, { from, to });
  for (const { from, to } of frame.stubs.values()) for (const x of to) stub(from, x);
  for (const [a, b] of [...frame.edges.values()].sort((x, y) => order.get(x[1].key) - order.get(y[1].key))) {
    if (isGiven(a) ? read.has(a) : order.get(b.key) - order.get(a.key) > FAR) stub(a, b);
    else near.push([a, b]);
    read.add(a);
  }
  return [near, stubs];
}

// The bodies of a loop or branch, side by side.
function layoutBodies(item) {
  let x = 0,
    height = 0;
  for (const body of item.children) {
    const [w, h] = sizeOf(body);
    body.box = { x, y: 0, width: w, height: h };
    x += w + PADDING;
    height = Math.max(height, h);
  }
  item.stubBoxes = [];
  item.paths = [];
  item.inner = { width: x - PADDING, height };
}

function stubLabel(u) {
  if (!u.node) return u.kernels && u.kernels.length ? u.kernels.map((k) => k.id).join(", ") : cut(u.label, 24);
  if (u.node && u.node.op === "input") return `argument ${u.id}`;
  const group = u.parent && u.group !== "" ? enclosing(u) : null;
  return group && group.kernels && group.kernels.length ? `${group.kernels.map((k) => k.id).join(", ")} %${u.id}` : `%${u.id} ${u.node.op}`;
}

function enclosing(item) {
  for (let x = item; x; x = x.parent) if (x.groupIndex !== undefined) return x;
  return null;
}

function forget(item) {
  for (let x = item; x; x = x.parent || x.holder) x.inner = null;
}
