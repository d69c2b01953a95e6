// Starts the page.

const SECTIONS = {
  graph: ["stages", drawGraph],
  kernels: ["kernels", drawKernels],
  memory: ["memory", drawMemory],
  roofline: ["limits", drawRoofline],
  rewrites: ["rewrites", drawRewrites],
  copies: ["copies", drawCopies],
};

// A profile alone has no more than kernels and limits.
function drawAll() {
  drawOverview();
  for (const [id, [known, draw]] of Object.entries(SECTIONS)) {
    byId(id).hidden = document.querySelector(`.bar nav a[href="#${id}"]`).hidden = part[known] === undefined;
    if (part[known] !== undefined) draw();
  }
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
    const now = sections.filter((s) => !s.hidden && s.getBoundingClientRect().top < innerHeight * 0.35).pop() || sections[0];
    for (const [id, a] of links)
      if (id === now.id) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
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
  if (part.memory && part.memory.arena) {
    drawMap();
    setStep(memoryView.step);
  }
  drawRoof();
});
document.documentElement.dataset.ready = "true";
