// The answers, and where the time goes.

function subtitle() {
  const r = part.reduction,
    p = data.program;
  const sizes = Object.entries(p.sizes)
    .map(([k, v]) => `${k} = ${v}`)
    .join(", ");
  if (!r)
    return `${count(data.parts.length, "program")}, ${count(
      data.parts.reduce((n, x) => n + x.kernels.length, 0),
      "kernel",
    )}`;
  return [
    `${p.precision} precision`,
    data.parts.map((x) => x.device).join(" and "),
    sizes,
    `${count(r.traced, "operation")} traced → ${count(r.canonical, "operation")} canonical → ${count(r.kernels, "kernel")}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

const timeBadge = () =>
  measured
    ? element("span", { class: "badge measured" }, part.reduction ? `measured, ${count(data.profile.runs, "run")}` : "measured, all calls")
    : element(
        "span",
        { class: "badge estimate", title: "The least time that this machine's rates allow each kernel. Give a profile for measured times." },
        "estimated: not profiled",
      );

function drawStrip() {
  const ordered = mainKernels()
    .slice()
    .sort((a, b) => secondsOf(b) - secondsOf(a));
  return element(
    "div",
    { class: "strip", role: "list", "aria-label": "Share of time of each kernel" },
    ordered.map((k, i) => {
      const part = shareOf(k);
      return element("a", {
        role: "listitem",
        href: `#kernel-${k.id}`,
        style: `flex:${Math.max(part, 1e-4)} 1 0;background:var(--h${hue(i)})`,
        "data-kernel": k.id,
        "aria-label": `${k.id}, ${k.title}, ${share(part)}`,
        "data-share": part,
      });
    }),
  );
}

// Names in the strip, where there is room.
function nameStrip() {
  for (const a of document.querySelectorAll(".strip a")) {
    const full = `${a.dataset.kernel} ${share(+a.dataset.share)}`,
      room = a.clientWidth / 7.6;
    a.textContent = full.length + 1 < room ? full : a.dataset.kernel.length + 0.6 < room ? a.dataset.kernel : "";
  }
}

function kernelTip(id) {
  const k = kernelById.get(id);
  const reached = efficiency(k);
  return `<b>${escaped(k.id)} · ${escaped(k.title)}</b>${rows([
    [measured ? "time" : "at least", duration(secondsOf(k))],
    ["share", share(shareOf(k))],
    ["of the limit", reached === null ? "" : share(reached)],
    ["bound by", k.bound],
    ["line", placeName(k.places[0])],
    ["", placeText(k.places[0])],
  ])}`;
}

function drawOverview() {
  const answers = data.overview.map((a) =>
    element(
      "article",
      { class: "card answer" },
      element("h2", {}, a.question),
      element("strong", {}, a.headline),
      a.place === undefined ? null : element("code", { title: placeName(a.place) }, placeText(a.place)),
      element("p", {}, a.answer),
      element(
        "a",
        { href: a.link },
        a.link.startsWith("#kernel-")
          ? `Show ${a.link.slice(8)} →`
          : `Show the ${{ "#memory": "memory map", "#roofline": "roofline" }[a.link] || "section"} →`,
      ),
    ),
  );
  const chooser =
    data.parts.length > 1
      ? element(
          "select",
          {
            id: "part",
            "aria-label": "Part of the program",
            onchange: (e) => {
              choosePart(+e.target.value);
              drawAll();
            },
          },
          data.parts.map((p, i) =>
            element("option", { value: i, selected: p === part }, p.name ? `${p.name} on ${p.device}` : `part ${i} on ${p.device}`),
          ),
        )
      : null;
  const times = element(
    "div",
    { class: "card times" },
    element(
      "header",
      {},
      element("h3", {}, `Where the time goes: ${duration(totalSeconds())} in ${count(mainKernels().length, "kernel")}`),
      timeBadge(),
    ),
    drawStrip(),
  );
  byId("overview").replaceChildren(
    element("div", { class: "title" }, element("h1", {}, data.program.name), chooser),
    element("p", { class: "muted" }, subtitle()),
    element("div", { class: "answers" }, answers),
    times,
  );
  nameStrip();
  tips(times, "[data-kernel]", (e) => kernelTip(e.dataset.kernel));
  byId("about").textContent = `Hologram ${data.program.hologram}. This file needs no network; its data is the JSON in the element “data”.`;
}
