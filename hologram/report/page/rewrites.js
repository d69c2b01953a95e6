// What each pass and each rule did, step by step.

const rewriteView = { rule: null, page: 0 };
const PAGE_STEPS = 25;

function stepsShown() {
  return part.rewrites.steps.map((s, i) => [s, i]).filter(([s]) => !rewriteView.rule || s.rule === rewriteView.rule);
}

function rewriteStep([s, i]) {
  const rule = part.rewrites.rules[s.rule] || {},
    run = part.rewrites.passes[s.run];
  const where = Object.entries(s.where)
    .map(([k, t]) => `${k}: ${t}`)
    .join("   ");
  return element(
    "div",
    { class: "step" },
    element(
      "header",
      {},
      element("span", { class: "muted" }, `${i + 1}`),
      element("b", {}, s.rule),
      rule.guarantee ? element("span", { class: "badge" }, rule.guarantee) : null,
      element("span", { class: "muted" }, [run ? `pass ${run.name}` : "", placeName(s.place)].filter(Boolean).join(" · ")),
    ),
    element(
      "div",
      { class: "change" },
      element("code", {}, s.before),
      element("span", { "aria-label": "becomes" }, "→"),
      element("code", {}, s.after),
    ),
    element("div", { class: "where" }, [where, `result: ${s.type}`].filter(Boolean).join("   ")),
  );
}

function drawSteps() {
  const all = stepsShown(),
    pages = Math.max(1, Math.ceil(all.length / PAGE_STEPS));
  rewriteView.page = Math.max(0, Math.min(rewriteView.page, pages - 1));
  const from = rewriteView.page * PAGE_STEPS,
    shown = all.slice(from, from + PAGE_STEPS);
  const turn = (by, label) =>
    element(
      "button",
      {
        type: "button",
        disabled: rewriteView.page + by < 0 || rewriteView.page + by >= pages,
        onclick: () => {
          rewriteView.page += by;
          drawSteps();
        },
      },
      label,
    );
  const known = rewriteView.rule ? part.rewrites.rules[rewriteView.rule] : null;
  const words = all.length
    ? `${from + 1}–${from + shown.length} of ${count(all.length, "firing")}${part.rewrites.left_out && !rewriteView.rule ? `, and ${part.rewrites.left_out} that are not kept` : ""}`
    : `${rewriteView.rule} changes whole graphs: ${count(known ? known.count : 0, "time")}; the drawings show the result`;
  bodyOf("rewrites")
    .querySelector(".steps")
    .replaceChildren(
      element(
        "div",
        { class: "pager" },
        turn(-1, "← Earlier"),
        turn(1, "Later →"),
        element("span", { class: "muted small" }, words),
        known && known.algebra ? element("code", {}, known.algebra) : null,
      ),
      element("div", { tabindex: 0, role: "region", "aria-label": "Steps" }, shown.map(rewriteStep)),
    );
  for (const e of bodyOf("rewrites").querySelectorAll(".rules .pick"))
    e.setAttribute("aria-selected", (e.dataset.rule || null) === rewriteView.rule ? "true" : "false");
}

function chooseRule(rule) {
  Object.assign(rewriteView, { rule, page: 0 });
  drawSteps();
}

function ruleRows() {
  const rules = Object.entries(part.rewrites.rules),
    total = rules.reduce((n, [, r]) => n + r.count, 0);
  const row = (name, label, n, title) =>
    element(
      "tr",
      {
        class: "pick",
        "data-rule": name || "",
        tabindex: 0,
        role: "option",
        title,
        onclick: () => chooseRule(name),
        onkeydown: (e) => {
          if (e.key === "Enter") chooseRule(name);
        },
      },
      element("td", {}, label),
      element("td", { class: "number" }, n.toLocaleString("en")),
    );
  return [row(null, element("b", {}, "all rules"), total, ""), ...rules.map(([name, r]) => row(name, name, r.count, r.algebra || ""))];
}

// One row a pass that changed something.
function passTable() {
  const runs = part.rewrites.passes,
    changed = runs.filter((r) => r.changed),
    seconds = runs.reduce((s, r) => s + r.seconds, 0);
  const fired = (r) =>
    Object.entries(r.rules)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 4)
      .map(([k, n]) => `${k} ${n}`)
      .join(", ");
  const table = element(
    "table",
    {},
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        element("th", {}, "Pass"),
        element("th", { class: "number" }, "Nodes after it"),
        element("th", { class: "number" }, "Time"),
        element("th", { class: "wide" }, "Rules that fired most"),
      ),
    ),
    element(
      "tbody",
      {},
      changed.map((r) =>
        element(
          "tr",
          {},
          element("td", {}, element("b", {}, r.name)),
          element("td", { class: "number" }, r.nodes === undefined ? "" : String(r.nodes)),
          element("td", { class: "number" }, duration(r.seconds)),
          element("td", { class: "muted wide" }, fired(r)),
        ),
      ),
    ),
  );
  return element(
    "details",
    { class: "card passes" },
    element(
      "summary",
      { style: "padding:12px 16px;cursor:pointer" },
      `${count(changed.length, "pass", "passes")} of ${runs.length} changed the program, in ${duration(seconds)}`,
    ),
    element("div", { class: "scroll" }, table),
  );
}

function drawRewrites() {
  Object.assign(rewriteView, { rule: null, page: 0 });
  bodyOf("rewrites").replaceChildren(
    element(
      "p",
      { class: "lead" },
      "What each pass and each rewrite rule did to the graph, in order. Letters stand for what a step leaves as it is. A rule's guarantee says what it keeps: exact, the same bits; standard, special values and 2 ULP; fast, finite values.",
    ),
    passTable(),
    element(
      "div",
      { class: "rewrites" },
      element("div", { class: "card rules" }, element("table", { role: "listbox", "aria-label": "Rules" }, element("tbody", {}, ruleRows()))),
      element("div", { class: "card steps" }),
    ),
  );
  drawSteps();
}
