// Source lines, loop nests and assembly, with a little colour.

const paint = (s, rules) => {
  const pattern = new RegExp(rules.map(([, r]) => `(${r})`).join("|"), "g");
  let out = "",
    last = 0;
  for (const m of s.matchAll(pattern)) {
    const i = rules.findIndex((_, k) => m[k + 1] !== undefined);
    out += escaped(s.slice(last, m.index)) + `<span class="${rules[i][0]}">${escaped(m[0])}</span>`;
    last = m.index + m[0].length;
  }
  return out + escaped(s.slice(last));
};

const IR = [
  ["k", "\\b(?:kernel|parallel|lanes|serial|scratch|prefetch|ready)\\b"],
  ["t", ": (?:u?int|float|bfloat|bool|complex)\\w*"],
  ["c", "\\b(?:from|count|with|below|shared by|repeating|where)\\b"],
  ["s", "\\b[av]\\d+ (?:=|<-)"],
];
const PYTHON = [
  ["c", "#.*"],
  ["s", "\"[^\"]*\"|'[^']*'"],
  ["k", "\\b(?:def|return|for|in|if|else|lambda|import|from|with|while|and|or|not|is|None|True|False)\\b"],
];
const ASSEMBLY = [
  ["s", "^\\s*[.\\w]+:"],
  ["k", "^\\s+v?f[a-z0-9]*madd\\w*|^\\s+j\\w+"],
  ["t", "[%$][\\w.-]+"],
];

const paintedLines = (s, rules) =>
  s
    .split("\n")
    .map((line) => paint(line, rules))
    .join("\n");

// The user's lines of a kernel, with those around them.
function sourceHtml(places) {
  if (!places.length) return `<span class="c">No line of yours is known for it.</span>`;
  const wanted = new Map();
  for (const p of places) {
    const [file, line] = data.places[p];
    if (!wanted.has(file)) wanted.set(file, new Set());
    wanted.get(file).add(line);
  }
  return [...wanted].map(([file, lines]) => fileHtml(data.files[file], lines)).join("\n\n");
}

function fileHtml(file, hits) {
  const shown = Object.keys(file.lines)
    .map(Number)
    .filter((n) => hits.has(n) || hits.has(n - 1) || hits.has(n + 1))
    .sort((a, b) => a - b);
  const out = [`<span class="c">${escaped(fileName(file.name))}</span>`];
  if (!shown.length) out.push(...[...hits].map((n) => `<span class="n">${n}</span><span class="c">the source is not there</span>`));
  shown.forEach((n, i) => {
    if (i && shown[i - 1] !== n - 1) out.push(`<span class="n">⋮</span>`);
    const line = `<span class="n">${n}</span>${paint(file.lines[n], PYTHON)}`;
    out.push(hits.has(n) ? `<span class="hit">${line}</span>` : line);
  });
  return out.join("\n");
}
