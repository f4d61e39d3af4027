// Search and colors of the manual. Without scripts all pages can still be read.
"use strict";
const root = document.currentScript.dataset.root;
const html = document.documentElement;
const modes = ["auto", "light", "dark"];
const kept = { get: () => { try { return localStorage.getItem("colors") ?? "auto"; } catch { return "auto"; } }, set: (v) => { try { localStorage.setItem("colors", v); } catch { } } };

function paint(mode) {
  html.classList.remove("light", "dark");
  if (mode !== "auto") html.classList.add(mode);
  document.querySelector(".colors").textContent = "Colors: " + mode;
}
const colors = document.querySelector(".colors");
colors.hidden = false;
paint(kept.get());
colors.addEventListener("click", () => {
  const next = modes[(modes.indexOf(kept.get()) + 1) % modes.length];
  kept.set(next);
  paint(next);
});

const contents = document.querySelector("nav details");
if (matchMedia("(max-width: 46rem)").matches) contents.open = false;

let index = null;
function found(entries) { // called by search.js
  index = entries.map((e) => ({ ...e, low: (e.p + " " + e.t + " " + e.x).toLowerCase(), title: e.t.toLowerCase() }));
  show();
}
const input = document.querySelector(".search input");
const list = document.querySelector(".search ol");
input.hidden = false;

function load() {
  if (document.querySelector("script[data-index]")) return;
  const script = document.createElement("script"); // a fetch is refused in a folder
  script.src = root + "search.js";
  script.dataset.index = "";
  document.head.append(script);
}

function matches(words) {
  const score = (e) => words.reduce((sum, w) => sum + (e.title === w ? 20 : e.title.startsWith(w) ? 8 : e.title.includes(w) ? 5 : 0) + (e.p.toLowerCase() === w ? 3 : 0) + Math.min(3, e.low.split(w).length - 1), 0);
  return index.filter((e) => words.every((w) => e.low.includes(w))).map((e) => ({ e, n: score(e) })).sort((a, b) => b.n - a.n).slice(0, 12);
}

function piece(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (at > 0 ? "… " : "") + text.slice(at, at + 120);
}

function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length === 0 || !index;
  if (list.hidden) return;
  const hits = matches(words);
  list.replaceChildren(...hits.map(({ e }, i) => {
    const item = document.createElement("li"), link = document.createElement("a"), more = document.createElement("small");
    link.href = root + e.a;
    link.className = i === 0 ? "chosen" : "";
    link.append(e.p === e.t ? e.t : e.p + " › " + e.t);
    more.append(piece(e.x, words[0]));
    link.append(more);
    item.append(link);
    return item;
  }));
  if (!hits.length) {
    const item = document.createElement("li");
    item.className = "none";
    item.append("No results");
    list.append(item);
  }
}

input.addEventListener("focus", load);
input.addEventListener("input", () => { load(); show(); });
input.addEventListener("keydown", (e) => {
  const links = [...list.querySelectorAll("a")], at = links.findIndex((l) => l.className === "chosen");
  if (e.key === "Escape") { input.value = ""; show(); input.blur(); }
  else if (e.key === "Enter" && links[at]) links[at].click();
  else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && links.length) {
    e.preventDefault();
    const next = (at + (e.key === "ArrowDown" ? 1 : links.length - 1)) % links.length;
    links.forEach((l, i) => (l.className = i === next ? "chosen" : ""));
    links[next].scrollIntoView({ block: "nearest" });
  }
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "")) { e.preventDefault(); input.focus(); }
});
document.addEventListener("click", (e) => { if (!e.target.closest(".search")) list.hidden = true; });
