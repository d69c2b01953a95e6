// The section with the graphs of all stages.

const WORDS = {
  traced: "what the function recorded",
  canonical: "after rewriting: equal programs are equal graphs",
  legalized: "in ops that have kernels",
  initializer: "computed once, from constants",
  kernels: "a frame is a kernel",
};

const graphView = { goals: [], stage: null, root: null, view: null, chosen: null, items: new Map() };

function visibleItems(item, out) {
  for (const c of item.children) {
    out.set(c.key, c);
    if (isOpen(c)) visibleItems(c, out);
  }
  return out;
}

graphView.draw = function () {
  layoutFrame(this.root);
  this.items = visibleItems(this.root, new Map());
  this.goals = []; // what stubs lead to
  this.svg.querySelector("#scene").innerHTML = drawInside(this.root, 0, 0);
  this.view.width = this.root.inner.width;
  this.view.height = this.root.inner.height;
  const first = this.root.children.length ? this.root.children[0].box : { x: 0, width: this.view.width };
  this.view.start = first.x + first.width / 2; // where the drawing begins
  this.mark();
};

graphView.show = function (name) {
  this.stage = part.stages.find((s) => s.name === name) || part.stages[part.stages.length - 1];
  this.stage.outline = this.root = this.stage.outline || outline(this.stage);
  this.chosen = null;
  for (const b of bodyOf("graph").querySelectorAll(".tabs button")) {
    b.setAttribute("aria-selected", b.dataset.stage === this.stage.name ? "true" : "false");
    if (b.dataset.stage === this.stage.name) b.parentElement.scrollLeft = b.offsetLeft + b.offsetWidth - b.parentElement.clientWidth;
  }
  this.draw();
  this.view.fit(false);
  this.describe(null);
};

graphView.toggle = function (item) {
  if (!item.frame) return;
  const old = this.absolute(item);
  item.open = !item.open;
  forget(item);
  this.draw();
  const now = this.absolute(item);
  this.view.x += now.x - old.x;
  this.view.y += now.y - old.y;
  this.view.apply();
  const again = this.element(item);
  if (again) again.focus({ preventScroll: true });
};

graphView.collapse = function () {
  const close = (item) => {
    for (const c of item.children || []) {
      if (c.frame && !c.holder) c.open = false;
      c.inner = null;
      close(c);
    }
  };
  close(this.root);
  this.root.inner = null;
  this.draw();
  this.view.fit(false);
};

// Where an item is in the drawing.
graphView.absolute = function (item) {
  let x = 0,
    y = 0;
  for (let i = item; i && i !== this.root; i = i.parent || i.holder) {
    const outer = i.parent || i.holder;
    x += i.box.x;
    y += i.box.y;
    if (outer !== this.root) {
      x += ((outer.box.width || 0) - outer.inner.width) / 2;
      y += HEADER;
    }
  }
  return { x, y, ...(item.box && { width: item.box.width, height: item.box.height }) };
};

graphView.element = function (item) {
  return this.svg.querySelector(`[data-key="${CSS.escape(item.key)}"]`);
};

graphView.open = function (item) {
  for (let i = item.parent; i && i !== this.root; i = i.parent || i.holder) i.open = true;
  forget(item);
  this.draw();
  const box = this.absolute(item);
  this.view.center(box.x + box.width / 2, box.y + Math.min(box.height, 300) / 2);
  this.choose(item);
};

graphView.reveal = function (i) {
  const item = this.root.byId.get(i);
  if (!item) return;
  byId("graph").scrollIntoView();
  this.open(item);
  this.element(item).focus({ preventScroll: true });
};

graphView.revealKernel = function (id) {
  this.show(id.startsWith("i") ? "initializer" : "kernels");
  const find = (item) =>
    item.kernels && item.kernels.some((k) => k.id === id) ? item : (item.node ? [] : item.children || []).map(find).find(Boolean);
  const frame = find(this.root);
  byId("graph").scrollIntoView();
  if (!frame) return;
  frame.open = true;
  this.open(frame);
};

graphView.choose = function (item) {
  this.chosen = item;
  this.mark();
  this.describe(item);
};

// Lights the chosen item and its edges.
graphView.mark = function () {
  for (const e of this.svg.querySelectorAll(".chosen, .lit")) e.classList.remove("chosen", "lit");
  if (!this.chosen) return;
  const e = this.element(this.chosen);
  if (e) e.classList.add("chosen");
  for (const path of this.svg.querySelectorAll(".edge"))
    if (path.dataset.from === this.chosen.key || path.dataset.to === this.chosen.key) path.classList.add("lit");
};

function nodeFacts(item) {
  const n = item.node,
    inputs = (n.in || []).map((i) => `%${i} ${graphView.stage.nodes[i] ? graphView.stage.nodes[i].op : ""}`);
  const frame = enclosing(item);
  return rows([
    ["type", n.type],
    ["attributes", n.op === "input" ? "" : n.attrs || ""],
    ["reads", item.key.includes("/") ? "" : inputs.join(", ")],
    ["line", placeName(n.place)],
    ["", placeText(n.place)],
    ["accuracy", guarantee(n.op)],
    ["kernel", frame && frame.kernels ? frame.kernels.map((k) => k.id).join(", ") : ""],
    ["", item.output ? "a result of the program" : ""],
  ]);
}

function itemTip(item) {
  if (item.node && !isOpen(item)) return `<b>${escaped(nodeLines(item)[0])}</b> %${item.id}${nodeFacts(item)}`;
  const kernels = kernelsIn(item);
  if (item.kernels && item.kernels.length === 1 && !item.call) return kernelTip(item.kernels[0].id);
  return `<b>${escaped(item.label)}</b>${rows([
    ["ops", String(nodesIn(item).length)],
    ["kernels", kernels.length ? kernels.map((k) => k.id).join(", ") : ""],
    ["line", placeName(item.place)],
  ])}`;
}

graphView.describe = function (item) {
  const panel = bodyOf("graph").querySelector(".details");
  if (!item) {
    const counted = new Map();
    for (const n of this.stage.nodes) if (!isHidden(n) && n.op !== "input") counted.set(n.op, (counted.get(n.op) || 0) + 1);
    const top = [...counted]
      .sort((a, b) => b[1] - a[1])
      .slice(0, 10)
      .map(([op, n]) => [op, String(n)]);
    panel.innerHTML = `<h3>${escaped(this.stage.name)}</h3><p class="muted small">${escaped(WORDS[this.stage.name] || "")}. ${count(this.stage.nodes.filter((n) => !isHidden(n)).length, "node")}. Choose a box for what is known of it.</p>${rows(top)}`;
    return;
  }
  panel.innerHTML = item.node && !item.kernels ? `<h3>%${item.id} = ${escaped(item.node.op)}</h3>${nodeFacts(item)}` : itemTip(item);
  const kernels = kernelsIn(item).concat(item.node && enclosing(item) ? enclosing(item).kernels || [] : []);
  for (const k of kernels.slice(0, 6))
    panel.append(element("p", {}, element("a", { href: `#kernel-${k.id}` }, `${k.id} · ${k.title}: loops, source, code →`)));
};

function graphToolbar() {
  const stages = part.stages.map((s) =>
    element(
      "button",
      { type: "button", role: "tab", "data-stage": s.name, onclick: () => graphView.show(s.name) },
      s.name,
      element("small", { title: "operations" }, ` ${operationsOf(s).toLocaleString("en")}`),
    ),
  );
  const button = (text, label, act) => element("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: act }, text);
  return element(
    "div",
    { class: "toolbar" },
    element("div", { class: "tabs", role: "tablist", "aria-label": "Stage" }, stages),
    element("span", { class: "gap" }),
    button("Collapse", "Close all frames", () => graphView.collapse()),
    button("−", "Zoom out", () => graphView.view.zoom(1 / 1.3)),
    button("+", "Zoom in", () => graphView.view.zoom(1.3)),
    button("Fit", "Show the whole drawing", () => graphView.view.fit(true)),
  );
}

function graphKeys(e) {
  const view = graphView.view,
    step = 60;
  const acts = {
    "+": () => view.zoom(1.3),
    "=": () => view.zoom(1.3),
    "-": () => view.zoom(1 / 1.3),
    0: () => view.fit(true),
    ArrowLeft: () => view.move(-step, 0),
    ArrowRight: () => view.move(step, 0),
    ArrowUp: () => view.move(0, -step),
    ArrowDown: () => view.move(0, step),
  };
  if (e.key === "Enter" || e.key === " ") {
    const item = graphView.items.get(document.activeElement.dataset && document.activeElement.dataset.key);
    const stub = document.activeElement.dataset && document.activeElement.dataset.go;
    if (stub !== undefined) {
      graphView.open(graphView.goals[+stub]);
      e.preventDefault();
    }
    if (item) {
      graphView.choose(item);
      graphView.toggle(item);
      e.preventDefault();
    }
  } else if (acts[e.key] && !e.ctrlKey && !e.metaKey) {
    acts[e.key]();
    e.preventDefault();
  }
}

function drawGraph() {
  const drawing = element("div", {
    class: "card drawing",
    tabindex: 0,
    role: "group",
    "aria-label": "Drawing of the graph: arrows move, plus and minus zoom, 0 shows all, Tab goes through boxes, Enter opens one",
  });
  drawing.innerHTML = `<svg><defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path class="edge-head" d="M0 0L8 4L0 8z"/></marker></defs><g id="scene"></g></svg><span class="hint">drag to move · Ctrl and wheel to zoom · click a frame to open it</span>`;
  const legend = element("div", {
    class: "legend",
    html:
      LEGEND.map(([name, c]) => `<span><i style="background:var(--h${c});border-color:var(--e${c})"></i>${name}</span>`).join("") +
      "<span>thick border: a result</span><span>dotted arrow: from elsewhere, a click leads there</span>",
  });
  const lead = element(
    "p",
    { class: "lead" },
    "The program at each stage of the compiler. Frames hold operations: those of one line of yours, or of one kernel. Constants stand beside the op that uses them.",
  );
  bodyOf("graph").replaceChildren(
    lead,
    graphToolbar(),
    element("div", { class: "split" }, drawing, element("aside", { class: "card details", "aria-live": "polite" })),
    legend,
  );
  graphView.svg = drawing.querySelector("svg");
  graphView.view = new Viewport(drawing, graphView.svg);
  const under = (e) => {
    const found = e.target.closest("[data-key]");
    return found && graphView.items.get(found.dataset.key);
  };
  drawing.addEventListener("click", (e) => {
    const item = under(e);
    const stub = e.target.closest("[data-go]");
    if (graphView.view.moved > 4) return;
    if (stub) graphView.open(graphView.goals[+stub.dataset.go]);
    else if (item) {
      graphView.choose(item);
      graphView.toggle(item);
    } else {
      graphView.chosen = null;
      graphView.mark();
      graphView.describe(null);
    }
  });
  drawing.addEventListener("keydown", graphKeys);
  drawing.addEventListener("focusin", (e) => {
    const item = under(e);
    if (item && e.target.matches(":focus-visible")) {
      graphView.chosen = item;
      graphView.mark();
      graphView.describe(item);
    }
  });
  tips(drawing, "[data-key]", (e) => itemTip(graphView.items.get(e.dataset.key)));
  graphView.show(part.stages[part.stages.length - 1].name);
}
