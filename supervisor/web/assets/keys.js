// The keyboard. Pages bind keys while they are shown.
import { useEffect, signal } from "./vendor-ui.js";
import { address, go } from "./route.js";
import { asked } from "./ui.js";

/** Which layer is open: the list of keys, the search, or the dialog for a new task. */
export const overlay = signal(/** @type {""|"keys"|"search"|"add"} */ (""));

/** Pages by the key after g. */
export const places = [
  ["b", "board", "Board"], ["i", "inbox", "Inbox"], ["a", "agents", "Agents"], ["g", "graph", "Graph"], ["t", "timeline", "Timeline"],
  ["m", "bus", "Bus"], ["x", "metrics", "Metrics"], ["r", "reviews", "Reviews"], ["s", "settings", "Settings"],
];

/** @type {Set<Record<string, (e: KeyboardEvent) => void>>} */
const bound = new Set();

/** Binds keys while a page is shown. @param {Record<string, (e: KeyboardEvent) => void>} keys */
export function useKeys(keys) {
  useEffect(() => {
    bound.add(keys);
    return () => { bound.delete(keys); };
  });
}

let afterG = 0;
let swallowed = ""; // a key that was a command and must not be written into a field that it opened

addEventListener("keypress", (e) => {
  if (swallowed && e.key === swallowed) e.preventDefault();
  swallowed = "";
});

addEventListener("keydown", (e) => {
  swallowed = "";
  if (e.isComposing || asked.value) return;
  if (e.key === "k" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); overlay.value = "search"; return; }
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const at = /** @type {HTMLElement} */ (e.target);
  if (e.key === "Escape") {
    if (overlay.value) overlay.value = "";
    else if (writes(at)) at.blur();
    return;
  }
  if (overlay.value || writes(at)) return;
  if (afterG && Date.now() - afterG < 1500) {
    afterG = 0;
    const place = places.find(([key]) => key === e.key);
    if (place) { e.preventDefault(); go(address(place[1])); return; }
  }
  if (e.key === "g") { afterG = Date.now(); return; }
  if (e.key === "/") { e.preventDefault(); swallowed = e.key; overlay.value = "search"; return; }
  if (e.key === "?") { overlay.value = "keys"; return; }
  for (const keys of bound) {
    const run = keys[e.key];
    if (!run || (e.key === "Enter" && at.closest("a, button, summary"))) continue;
    e.preventDefault();
    swallowed = e.key;
    run(e);
    return;
  }
});

/** Reports whether keys are text for an element. @param {HTMLElement} at */
const writes = (at) => !!at.closest?.("input, textarea, select, [contenteditable]");
