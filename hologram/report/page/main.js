// Starts the page.

function drawAll() {
  drawOverview();
  drawGraph();
  drawKernels();
  drawMemory();
  drawRoofline();
  drawRewrites();
  drawCopies();
}

function followHash() {
  const kernel = /^#kernel-(.+)$/.exec(location.hash);
  if (kernel) openKernel(decodeURIComponent(kernel[1]), true);
}

// Marks the section in sight in the bar.
function followScroll() {
  const links = new Map([...document.querySelectorAll(".bar nav a")].map((a) => [a.hash.slice(1), a]));
  const sections = [...links.keys()].map(byId);
  const mark = () => {
    const now = sections.filter((s) => s.getBoundingClientRect().top < innerHeight * 0.35).pop() || sections[0];
    for (const [id, a] of links) if (id === now.id) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current");
  };
  addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
  mark();
}

startTheme();
drawAll();
startSearch();
followScroll();
followHash();
addEventListener("hashchange", followHash);
let drawnWidth = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === drawnWidth) return;
  drawnWidth = innerWidth;
  nameStrip();
  if (part.memory.arena) { drawMap(); setStep(memoryView.step); }
  drawRoof();
});
document.documentElement.dataset.ready = "true";
