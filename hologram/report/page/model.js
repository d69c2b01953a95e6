// The data, and what is asked of it everywhere.

const data = JSON.parse(byId("data").textContent);
const measured = "profile" in data;
let part = data.parts[0];
let kernelById = new Map();

function choosePart(i) {
  part = data.parts[i];
  kernelById = new Map(part.kernels.map((k) => [k.id, k]));
}
choosePart(0);

const secondsOf = (k) => (measured && !k.once ? k.seconds || 0 : k.least_seconds * k.times);
const mainKernels = () => part.kernels.filter((k) => !k.once);
const totalSeconds = () => mainKernels().reduce((s, k) => s + secondsOf(k), 0);
const shareOf = (k) => (k.once ? 0 : secondsOf(k) / (totalSeconds() || 1));
const efficiency = (k) => (measured && k.seconds ? (k.least_seconds * k.times) / k.seconds : null);

function placeName(i) {
  if (i === undefined || i === null) return "";
  const [file, line] = data.places[i];
  return `${fileName(data.files[file].name)}:${line}`;
}

function placeText(i) {
  if (i === undefined || i === null) return "";
  const [file, line] = data.places[i];
  return (data.files[file].lines[line] || "").trim();
}

const ACCURACY = {
  leaf: "as given",
  movement: "bits as they are",
  project: "bits as they are",
  gather: "bits as they are",
  sort: "bits as they are",
  mark: "bits as they are",
  reduce: "steps rounded as IEEE 754 says, in one order, whatever the number of threads",
  scan: "steps rounded as IEEE 754 says, in one order, whatever the number of threads",
  attention: "sums in blocks: other roundings than in the written order",
  host: "what the library's routine gives",
  control: "as what is inside",
};

function guarantee(op) {
  const known = data.ops[op] || {};
  return ACCURACY[known.kind] || (known.ulps ? `within ${known.ulps} ULP of the exact result` : "the bits of the reference");
}

// The colours of things that are numbered: 0 to 7.
const HUES = 8;
const hue = (i) => (i * 5) % HUES;
