// A graph as a tree of frames: what is drawn is one level at a time, so a program of any size is a few dozen boxes.
//
// Items are nodes and frames. Runs of consecutive items of a topological order make frames, so edges between siblings never form a cycle.

const MAX_CHILDREN = 30; // of a section
const MAX_SHOWN = 60; // boxes that one level shows without sections

function outline(stage) {
  const items = stage.groups ? groupItems(stage) : lineItems(stage);
  const root = { key: stage.prefix || "root", label: stage.name, children: sections(items, `${stage.prefix || ""}s`), open: true, frame: true };
  adopt(root, null, 0);
  connect(root, stage);
  return root;
}

const isHidden = (n) => n.op === "const";

// As Reduction counts them: those of each body once; neither arguments and constants nor the results of several-valued ops.
const NO_OPERATIONS = ["leaf", "project"];
const operationsOf = (graph) =>
  graph.nodes.reduce(
    (n, x) => n + (x.bodies ? x.bodies.reduce((m, b) => m + operationsOf(b), 0) : NO_OPERATIONS.includes((data.ops[x.op] || {}).kind) ? 0 : 1),
    0,
  );

function nodeItem(stage, i, group) {
  const node = stage.nodes[i];
  const item = { key: `${stage.prefix || ""}${group}:${i}`, id: i, node, group };
  item.constants = (node.in || []).filter((k) => isHidden(stage.nodes[k])).map((k) => stage.nodes[k].attrs);
  if (node.bodies) {
    item.frame = true;
    item.open = false;
    item.label = node.op;
    item.children = node.bodies.map((b, k) => {
      const name = node.bodies.length > 1 ? `${node.op} ${k}` : `body of ${node.op}`;
      return Object.assign(outline({ ...b, name, prefix: `${item.key}/${k}/` }), { open: node.bodies.length === 1, holder: item });
    });
  }
  return item;
}

// Arguments, and a frame for each fusion group.
function groupItems(stage) {
  const inside = new Set(stage.groups.flatMap((g) => g.nodes));
  const out = [];
  stage.nodes.forEach((n, i) => {
    if (!inside.has(i) && !isHidden(n) && (n.op === "input" || n.op === "leaf")) out.push(nodeItem(stage, i, ""));
  });
  stage.groups.forEach((g, k) => {
    const children = g.nodes.filter((i) => !isHidden(stage.nodes[i])).map((i) => nodeItem(stage, i, k));
    if (g.call && children.length === 1) return out.push({ ...children[0], values: new Set(g.values), group: k });
    const kernels = (g.kernels || []).map((id) => kernelById.get(id)).filter(Boolean);
    const ids = kernels.map((x) => x.id).join(", ");
    const label = g.call ? [g.call, ids].filter(Boolean).join(" · ") : kernels.length ? `${ids} · ${kernels[0].title}` : "group";
    out.push({
      key: `g${k}`,
      frame: true,
      open: false,
      label,
      kernels,
      call: g.call,
      groupIndex: k,
      space: g.shape,
      children: sections(children, `g${k}.`),
    });
  });
  return usedWhereNeeded(out, stage);
}

// Arguments stand right before what reads them first.
function usedWhereNeeded(items, stage) {
  const leaves = new Map(items.filter((x) => x.id !== undefined && x.group === "").map((x) => [x.id, x]));
  const out = [];
  const take = (i) => {
    const x = leaves.get(i);
    if (x) {
      leaves.delete(i);
      out.push(x);
    }
  };
  for (const item of items) {
    if (item.group === "" && item.id !== undefined) continue;
    const nodes = item.groupIndex !== undefined ? stage.groups[item.groupIndex].nodes : item.id !== undefined ? [item.id] : [];
    for (const i of nodes) (stage.nodes[i].in || []).forEach(take);
    out.push(item);
  }
  return [...leaves.values(), ...out];
}

// Nodes in order; consecutive ones of one line of the user's make a frame where there are many.
function lineItems(stage) {
  const items = stage.nodes.map((n, i) => (isHidden(n) ? null : nodeItem(stage, i, ""))).filter(Boolean);
  const inputs = items.filter((x) => x.node.op === "input"),
    rest = items.filter((x) => x.node.op !== "input");
  const ordered = arranged(inputs, rest);
  if (ordered.length <= MAX_SHOWN) return ordered;
  const out = [];
  for (const run of runs(ordered)) {
    if (run.length === 1) out.push(run[0]);
    else
      out.push({
        key: `l${run[0].key}`,
        frame: true,
        open: false,
        place: run[0].node.place,
        label: cut(placeText(run[0].node.place) || "operations", 44),
        children: sections(run, `l${run[0].key}.`),
      });
  }
  return out;
}

function arranged(inputs, rest) {
  const waiting = new Map(inputs.map((x) => [x.id, x])),
    out = [];
  for (const item of rest) {
    for (const i of item.node.in || [])
      if (waiting.has(i)) {
        out.push(waiting.get(i));
        waiting.delete(i);
      }
    out.push(item);
  }
  return [...waiting.values(), ...out];
}

function runs(items) {
  const out = [];
  for (const x of items) {
    const last = out[out.length - 1];
    if (last && x.node.place !== undefined && last[0].node.place === x.node.place && x.node.op !== "input" && last[0].node.op !== "input")
      last.push(x);
    else out.push([x]);
  }
  return out;
}

// Few children: where there are more than MAX_SHOWN, consecutive ones become sections, level by level.
function sections(items, prefix, level = 0) {
  if (items.length <= MAX_SHOWN) return items;
  const size = Math.max(2, Math.ceil(items.length / Math.ceil(items.length / MAX_CHILDREN)));
  const out = [];
  for (let i = 0; i < items.length; i += size) {
    const children = items.slice(i, i + size);
    out.push(
      children.length === 1
        ? children[0]
        : { key: `${prefix}${level}.${i}`, frame: true, open: false, section: true, label: sectionLabel(children), children },
    );
  }
  return sections(out, prefix, level + 1);
}

function sectionLabel(children) {
  const kernels = children.flatMap(kernelsIn);
  if (kernels.length) return `${kernels[0].id} … ${kernels[kernels.length - 1].id}`;
  const nodes = children.flatMap(nodesIn);
  const byFile = new Map();
  for (const x of nodes) {
    const place = data.places[x.node.place];
    if (place) byFile.set(place[0], [...(byFile.get(place[0]) || []), place[1]]);
  }
  const [file, lines] = [...byFile].sort((a, b) => b[1].length - a[1].length)[0] || [];
  if (!lines) return count(nodes.length, "operation");
  const [low, high] = [Math.min(...lines), Math.max(...lines)];
  return `${fileName(data.files[file].name)}:${low}${high > low ? `–${high}` : ""}`;
}

const kernelsIn = (item) => item.kernels || (item.children ? item.children.flatMap(kernelsIn) : []);
const nodesIn = (item) => (item.node ? [item] : (item.children || []).flatMap(nodesIn));

function adopt(item, parent, depth) {
  item.parent = parent;
  item.depth = depth;
  item.edges = new Map();
  item.stubs = new Map();
  if (item.children && !item.node) for (const c of item.children) adopt(c, item, depth + 1);
}

// Edges of the graph, each drawn in the innermost frame that holds both ends; frames on the way down to its end show it as a stub.
function connect(root, stage) {
  const leaves = nodesIn(root),
    byKey = new Map(),
    home = new Map();
  for (const x of leaves) byKey.set(`${x.group}:${x.id}`, x);
  if (stage.groups) stage.groups.forEach((g, k) => g.values.forEach((i) => home.set(i, k)));
  root.byId = new Map();
  for (const x of leaves) if (!root.byId.has(x.id) || home.get(x.id) === x.group) root.byId.set(x.id, x);
  for (const v of leaves)
    for (const i of v.node.in || []) {
      const u = byKey.get(`${v.group}:${i}`) || (home.has(i) ? byKey.get(`${home.get(i)}:${i}`) : byKey.get(`:${i}`)) || root.byId.get(i);
      if (u && u !== v) link(u, v);
    }
  const outputs = new Set(stage.outputs);
  for (const x of leaves) if (outputs.has(x.id)) x.output = true;
}

function link(u, v) {
  let a = u,
    b = v;
  const down = [];
  while (a.depth > b.depth) a = a.parent;
  while (b.depth > a.depth) {
    down.push(b);
    b = b.parent;
  }
  while (a.parent !== b.parent) {
    down.push(b);
    a = a.parent;
    b = b.parent;
  }
  if (a === b) return;
  const frame = a.parent;
  frame.edges.set(`${a.key}>${b.key}`, [a, b, (frame.edges.get(`${a.key}>${b.key}`) || [0, 0, 0])[2] + 1]);
  for (const at of down) {
    const stub = at.parent.stubs.get(u.key) || { from: u, to: new Set() };
    stub.to.add(at);
    at.parent.stubs.set(u.key, stub);
  }
}
