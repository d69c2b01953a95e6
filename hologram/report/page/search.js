// Find: kernels, ops and lines by text.

const MAX_FOUND = 12;

function kernelHits(words) {
  const hits = [];
  for (const k of part.kernels) {
    const lines = k.places.map((p) => `${placeName(p)} ${placeText(p)}`).join(" ");
    const text = `${k.id} ${k.title} ${k.path.join(" ")} ${lines} ${k.text || ""}`.toLowerCase();
    if (!words.every((w) => text.includes(w))) continue;
    const named = words.every((w) => `${k.id} ${k.title} ${lines}`.toLowerCase().includes(w));
    hits.push({
      rank: (k.id === words.join(" ") ? 1e9 : named ? 1e3 : 0) + shareOf(k),
      label: `${k.id} · ${k.title}`,
      more: `${placeName(k.places[0])}  ${placeText(k.places[0])}`,
      kind: "kernel",
      go: () => {
        location.hash = `#kernel-${k.id}`;
        openKernel(k.id, true);
      },
    });
  }
  return hits.sort((a, b) => b.rank - a.rank);
}

function nodeHits(words, limit) {
  const hits = [],
    stage = graphView.stage;
  if (!part.stages) return hits;
  for (let i = 0; i < stage.nodes.length && hits.length < limit; i++) {
    const n = stage.nodes[i];
    const text = `%${i} ${n.op} ${n.attrs || ""} ${n.type} ${placeName(n.place)} ${placeText(n.place)}`.toLowerCase();
    if (words.every((w) => text.includes(w)))
      hits.push({
        label: `%${i} = ${n.op}`,
        more: `${n.type}  ${placeName(n.place)}  ${placeText(n.place)}`,
        kind: stage.name,
        go: () => graphView.reveal(i),
      });
  }
  return hits;
}

function startSearch() {
  const box = byId("find"),
    list = byId("found");
  let hits = [],
    at = 0;
  const close = () => {
    list.hidden = true;
    box.setAttribute("aria-expanded", "false");
  };
  const go = (i) => {
    if (hits[i]) {
      close();
      box.blur();
      hits[i].go();
    }
  };
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return close();
    const kernels = kernelHits(words).slice(0, MAX_FOUND - 4);
    hits = [...kernels, ...nodeHits(words, MAX_FOUND - kernels.length)];
    at = Math.min(at, Math.max(0, hits.length - 1));
    list.replaceChildren(
      ...(hits.length
        ? hits.map((hit, i) =>
            element(
              "div",
              {
                role: "option",
                id: `found-${i}`,
                "aria-selected": i === at ? "true" : "false",
                onpointerdown: (e) => {
                  e.preventDefault();
                  go(i);
                },
              },
              element("span", {}, hit.label),
              element("span", { class: "badge" }, hit.kind),
              element("small", {}, hit.more),
            ),
          )
        : [element("p", {}, "Nothing has this text.")]),
    );
    box.setAttribute("aria-activedescendant", hits.length ? `found-${at}` : "");
    list.hidden = false;
    box.setAttribute("aria-expanded", "true");
  };
  box.addEventListener("input", () => {
    at = 0;
    show();
  });
  box.addEventListener("focus", show);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && hits.length) {
      at = (at + step + hits.length) % hits.length;
      show();
      e.preventDefault();
    } else if (e.key === "Enter") {
      go(at);
      e.preventDefault();
    } else if (e.key === "Escape") {
      box.value = "";
      close();
    }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) {
      box.focus();
      e.preventDefault();
    }
  });
}
