// Numbers and names as text.

const escaped = (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const digits = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));

function scaled(x, units) {
  for (const [unit, scale] of units) if (x >= scale) return `${digits(x / scale)} ${unit}`;
  const [unit, scale] = units[units.length - 1];
  return `${digits(x / scale)} ${unit}`;
}

const duration = (s) =>
  scaled(s, [
    ["s", 1],
    ["ms", 1e-3],
    ["µs", 1e-6],
    ["ns", 1e-9],
  ]);
const bytes = (n) =>
  n < 1024
    ? `${n} B`
    : scaled(n, [
        ["GiB", 2 ** 30],
        ["MiB", 2 ** 20],
        ["KiB", 2 ** 10],
      ]);
const rate = (x, unit) =>
  scaled(x, [
    [`T${unit}`, 1e12],
    [`G${unit}`, 1e9],
    [`M${unit}`, 1e6],
    [`k${unit}`, 1e3],
  ]);
const share = (x) => (x >= 0.0995 ? `${(100 * x).toFixed(0)} %` : `${(100 * x).toFixed(1)} %`);
const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many || `${one}s`}`;
const capitalized = (s) => s.charAt(0).toUpperCase() + s.slice(1);
const cut = (s, n) => (s.length <= n ? s : `${s.slice(0, n - 1)}…`);
const fileName = (path) => path.replace(/\\/g, "/").split("/").pop();
