// The table of kernels, and one kernel in full.

const kernelTable = { sort: "time", down: true, all: false, chosen: null };
const COLUMNS = [
  ["id", "Kernel", (k) => part.kernels.indexOf(k), false],
  ["title", "Computes", (k) => k.title, false],
  ["line", "Line", (k) => placeName(k.places[0]), false],
  ["time", measured ? "Time" : "Time, at least", (k) => secondsOf(k), true],
  ["limit", "Of the limit", (k) => efficiency(k) ?? -1, true],
  ["bound", "Bound by", (k) => k.bound, false],
];
const SHOWN_ROWS = 14;

function kernelRow(k) {
  const reached = efficiency(k);
  const meter = (x, cls) => element("span", { class: `meter ${cls}` }, element("i", { style: `width:${(100 * Math.min(1, x)).toFixed(1)}%` }));
  return element(
    "tr",
    {
      class: `pick${kernelTable.chosen === k.id ? " chosen" : ""}`,
      "data-kernel": k.id,
      tabindex: 0,
      onclick: () => chooseKernel(k.id),
      onkeydown: (e) => {
        if (e.key === "Enter") chooseKernel(k.id);
      },
    },
    element("td", {}, element("b", {}, k.id), k.once ? element("span", { class: "badge", title: "runs once, before the first call" }, "once") : null),
    element("td", {}, k.title, k.path.length ? element("span", { class: "muted small" }, ` in ${k.path.join(" in ")}`) : null),
    element(
      "td",
      { class: "mono wide line" },
      placeName(k.places[0]),
      element("span", { class: "muted", title: placeText(k.places[0]) }, `  ${cut(placeText(k.places[0]), 44)}`),
    ),
    element(
      "td",
      { class: "number" },
      meter(shareOf(k), ""),
      element("span", { class: "figure" }, duration(secondsOf(k))),
      element("span", { class: "muted small wide figure" }, share(shareOf(k))),
      k.untimed
        ? element("span", { class: "badge", title: "its share of the loop's time, by estimate: it is too short to be timed by itself" }, "of a loop")
        : null,
    ),
    element(
      "td",
      { class: "number wide" },
      ...(reached === null ? ["–"] : [meter(reached, "limit"), element("span", { class: "figure" }, share(reached))]),
    ),
    element("td", { class: "wide" }, k.bound),
  );
}

function drawTable() {
  const [, , value] = COLUMNS.find((c) => c[0] === kernelTable.sort);
  const order = (a, b) => {
    const x = value(a),
      y = value(b);
    return (x < y ? -1 : x > y ? 1 : 0) * (kernelTable.down ? -1 : 1);
  };
  const sorted = part.kernels.slice().sort(order),
    shown = kernelTable.all ? sorted : sorted.slice(0, SHOWN_ROWS);
  const head = COLUMNS.map(([key, name, , number]) =>
    element(
      "th",
      {
        class: `${number ? "number" : ""}${["line", "limit", "bound"].includes(key) ? " wide" : ""}`,
        "aria-sort": kernelTable.sort === key ? (kernelTable.down ? "descending" : "ascending") : null,
      },
      element(
        "button",
        {
          type: "button",
          onclick: () => {
            Object.assign(kernelTable, { down: kernelTable.sort === key ? !kernelTable.down : number, sort: key });
            drawTable();
          },
        },
        name + (kernelTable.sort === key ? (kernelTable.down ? " ↓" : " ↑") : ""),
      ),
    ),
  );
  const more =
    sorted.length > shown.length
      ? element(
          "div",
          { class: "pager" },
          element(
            "button",
            {
              type: "button",
              onclick: () => {
                kernelTable.all = true;
                drawTable();
              },
            },
            `Show all ${sorted.length}`,
          ),
        )
      : null;
  bodyOf("kernels")
    .querySelector(".list")
    .replaceChildren(
      ...[element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, shown.map(kernelRow))), more].filter(Boolean),
    );
}

function chooseKernel(id) {
  openKernel(id, false);
  history.replaceState(null, "", `#kernel-${id}`);
}

function openKernel(id, scroll) {
  const k = kernelById.get(id);
  if (!k) return;
  kernelTable.chosen = id;
  for (const row of bodyOf("kernels").querySelectorAll("tr.pick")) row.classList.toggle("chosen", row.dataset.kernel === id);
  bodyOf("kernels").querySelector(".detail").replaceChildren(kernelCard(k));
  if (scroll) byId(`kernel-${id}`).scrollIntoView();
}

function facts(pairs) {
  return element(
    "div",
    { class: "facts" },
    pairs.filter(([, v]) => v).map(([name, value]) => element("div", {}, element("b", {}, value), element("span", {}, name))),
  );
}

function balance(k) {
  const busy = (k.threads || []).filter((t) => t > 0);
  if (busy.length < 2) return "";
  return `${share(busy.reduce((a, b) => a + b) / busy.length / Math.max(...busy))} of ${busy.length}`;
}

function kernelCard(k) {
  const reached = efficiency(k),
    seconds = secondsOf(k);
  const speeds =
    measured && seconds
      ? [
          ["arithmetic", rate((k.flops * k.times) / seconds, "FLOP/s")],
          ["memory", rate((k.bytes * k.times) / seconds, "B/s")],
        ]
      : [];
  const values = [
    [measured ? "time" : "at least", duration(seconds)],
    ["of all kernels", k.once ? "runs once" : share(shareOf(k))],
    ["of the limit", reached === null ? "" : share(reached)],
    ["the limit, by " + k.bound, measured ? duration(k.least_seconds * k.times) : ""],
    ...speeds,
    ["operations", k.flops ? k.flops.toLocaleString("en") : ""],
    ["read and written", bytes(k.bytes)],
    [part.code ? "runs in one call" : "calls", k.times > 1 ? k.times.toLocaleString("en") : ""],
    ["balance of threads", balance(k)],
  ];
  if (!part.code) return profiledCard(k, values);
  const texts = part.code.texts,
    code =
      k.code === undefined
        ? element("p", { class: "why" }, `Not shown: ${k.no_code}.`)
        : element("pre", { html: paintedLines(texts[k.code], part.code.language === "assembly" ? ASSEMBLY : IR), tabindex: 0 });
  const pane = (title, body) => element("div", { class: "pane" }, element("h3", {}, title), body);
  const buffers = element(
    "table",
    {},
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        ["Name", "Role", "Type", "What it is"].map((t) => element("th", {}, t)),
      ),
    ),
    element(
      "tbody",
      {},
      k.buffers.map((b) =>
        element(
          "tr",
          {},
          element("td", { class: "mono" }, b.name),
          element("td", {}, { in: "read", out: "written", inout: "read and written" }[b.role] || b.role),
          element("td", { class: "mono" }, b.type),
          element("td", {}, b.is),
        ),
      ),
    ),
  );
  return element(
    "article",
    { class: "card kernel", id: `kernel-${k.id}` },
    element(
      "header",
      {},
      element("h3", {}, `${k.id} · ${k.title}`),
      element("span", { class: "muted" }, k.loops.join(" › ")),
      element("span", { class: "gap" }),
      element("button", { type: "button", onclick: () => graphView.revealKernel(k.id) }, "Show in the graph"),
    ),
    facts(values),
    element(
      "div",
      { class: "panes" },
      pane("Your lines", element("pre", { html: sourceHtml(k.places), tabindex: 0 })),
      pane("Loop nest", element("pre", { html: paintedLines(k.text, IR), tabindex: 0 })),
      pane(capitalized(part.code.language || "code"), code),
    ),
    element("div", { class: "scroll", style: "margin-top:14px" }, buffers),
  );
}

// A kernel of which a profile alone is known.
function profiledCard(k, values) {
  return element(
    "article",
    { class: "card kernel", id: `kernel-${k.id}` },
    element("header", {}, element("h3", {}, `${k.id} · ${k.title}`), element("span", { class: "muted" }, k.loops.join(" › "))),
    facts(values),
    element("div", { class: "pane" }, element("h3", {}, "Your lines"), element("pre", { html: sourceHtml(k.places), tabindex: 0 })),
  );
}

function drawKernels() {
  const lead = measured
    ? "Measured in this run. “Of the limit” is the least time that this machine needs for the kernel's bytes and operations, over the time that it took."
    : "This run was not profiled: times are the least that this machine needs for each kernel's bytes and operations, by its measured rates. With a profile they are measured ones.";
  bodyOf("kernels").replaceChildren(
    element("p", { class: "lead" }, lead),
    element("div", { class: "card scroll list" }),
    element("div", { class: "detail" }),
  );
  kernelTable.all = false;
  drawTable();
  const first = mainKernels()
    .slice()
    .sort((a, b) => secondsOf(b) - secondsOf(a))[0];
  if (first) openKernel(first.id, false);
}
