// Elements, the tip beside the pointer, and the theme.

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k === "html") e.innerHTML = v;
    else if (k === "class") e.className = v;
    else e.setAttribute(k, v === true ? "" : v);
  }
  for (const c of children.flat()) if (c !== null && c !== undefined) e.append(c);
  return e;
}

const byId = (id) => document.getElementById(id);
const bodyOf = (section) => document.querySelector(`#${section} .body`);

function showTip(html, x, y) {
  const tip = byId("tip");
  tip.innerHTML = html;
  tip.hidden = false;
  const { offsetWidth: w, offsetHeight: h } = tip;
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - w - 8))}px`;
  tip.style.top = `${y + 18 + h > innerHeight ? Math.max(8, y - h - 12) : y + 18}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

// Shows `html(target)` beside whatever `find(target)` finds under the pointer or with the focus, inside of `root`.
function tips(root, selector, html) {
  root.addEventListener("pointermove", (e) => {
    const at = e.target.closest(selector);
    if (at && e.pointerType !== "touch") showTip(html(at), e.clientX, e.clientY);
    else hideTip();
  });
  root.addEventListener("pointerleave", hideTip);
  root.addEventListener("focusin", (e) => {
    const at = e.target.closest(selector);
    if (!at || !at.matches(":focus-visible")) return;
    const box = at.getBoundingClientRect();
    showTip(html(at), box.left, box.bottom - 12);
  });
  root.addEventListener("focusout", hideTip);
}

function rows(pairs) {
  return `<dl>${pairs
    .filter(([, v]) => v !== undefined && v !== "")
    .map(([k, v]) => `<dt>${escaped(k)}</dt><dd>${escaped(v)}</dd>`)
    .join("")}</dl>`;
}

const themes = { auto: "◐", light: "☀", dark: "☾" };

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = themes[name];
  byId("theme").title = `Theme: ${name}`;
}

function startTheme() {
  const names = Object.keys(themes);
  let stored = null;
  try {
    stored = localStorage.getItem("hologram-theme");
  } catch {
    /* pages from files may have no storage */
  }
  setTheme(names.includes(stored) ? stored : "auto");
  byId("theme").addEventListener("click", () => {
    const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
    setTheme(next);
    try {
      localStorage.setItem("hologram-theme", next);
    } catch {
      /* then it holds for this visit */
    }
  });
}
