// Places of what is visible: dagre lays out each open frame by itself, and the result is kept until something in it opens or closes.

const HEADER = 34, PADDING = 14;
const pen = document.createElement("canvas").getContext("2d"), widths = new Map();

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
  const what = n.op === "input" ? `argument ${item.id}` : n.op === "leaf" ? "constant array" : [n.op, ...item.constants, cut(n.attrs || "", 22)].filter(Boolean).join(" ");
  return [what, n.type];
}

function frameLines(item) {
  const inside = nodesIn(item).length;
  const kernels = kernelsIn(item);
  const line = item.kernels && item.kernels.length ? item.kernels[0].places[0] : item.place;
  const sub = item.node ? item.node.type : item.section ? (kernels.length ? count(kernels.length, "kernel") : count(inside, "operation"))
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
  for (const [key, stub] of frame.parent ? frame.stubs : []) {
    g.setNode(`<${key}`, { width: widthOf(stubLabel(stub.from), "stub") + 14, height: 20 });
    for (const to of stub.to) g.setEdge(`<${key}`, to.key, {});
  }
  for (const [, [a, b]] of frame.edges) g.setEdge(a.key, b.key, {});
  if (g.nodeCount()) dagre.layout(g);
  else g.setGraph({ width: 80, height: 8 }); // a branch that computes nothing
  for (const c of frame.children) {
    const { x, y, width, height } = g.node(c.key);
    c.box = { x: x - width / 2, y: y - height / 2, width, height };
  }
  frame.stubBoxes = [...(frame.parent ? frame.stubs : [])].map(([key, stub]) => ({ stub, ...g.node(`<${key}`) }));
  frame.paths = g.edges().map((e) => ({ from: e.v, to: e.w, points: g.edge(e).points }));
  frame.inner = { width: g.graph().width, height: g.graph().height };
}

// The bodies of a loop or branch, side by side.
function layoutBodies(item) {
  let x = 0, height = 0;
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
