// Small charts of one agent: CPU, memory and lines of the last minutes, while its page is open.
import { html, signal, effect } from "./vendor-ui.js";
import { status } from "./store.js";
import { bytes } from "./text.js";

const most = 180;

/** The samples of each agent: a time in seconds, CPU and lines as counters, and memory. @type {Map<string, number[][]>} */
const kept = new Map();
const changed = signal(0);

effect(() => {
  const now = Date.now() / 1000;
  for (const a of status.value?.agents ?? []) {
    const all = kept.get(a.name) ?? [];
    if (all.length && now - all[all.length - 1][0] < 0.8) continue;
    all.push([now, a.pid ? a.cpu_ms / 1000 : NaN, a.pid ? a.rss_bytes : NaN, a.output?.lines ?? NaN]);
    if (all.length > most) all.shift();
    kept.set(a.name, all);
  }
  changed.value = changed.peek() + 1;
});

/** The growth of a counter in a second, or the figure itself. @param {number[][]} all @param {number} at @param {boolean} grows */
function figures(all, at, grows) {
  if (!grows) return all.map((s) => s[at]);
  return all.slice(1).map((s, i) => { const d = (s[at] - all[i][at]) / (s[0] - all[i][0]); return d >= 0 ? d : NaN; });
}

/** @param {{name: string}} props */
export function Sparks({ name }) {
  changed.value; // draw again with each sample
  const all = kept.get(name) ?? [];
  if (all.length < 3) return null;
  const seconds = Math.round(all[all.length - 1][0] - all[0][0]);
  return html`<div class="sparks">
    <${Spark} word="CPU" values=${figures(all, 1, true)} say=${(/** @type {number} */ v) => (v * 100).toFixed(v < 0.1 ? 1 : 0) + "%"} seconds=${seconds}/>
    <${Spark} word="Memory" values=${figures(all, 2, false)} say=${bytes} seconds=${seconds}/>
    <${Spark} word="Lines" values=${figures(all, 3, true)} say=${(/** @type {number} */ v) => v.toFixed(v < 10 ? 1 : 0) + "/s"} seconds=${seconds}/></div>`;
}

/** One chart, from zero to its largest figure. @param {{word: string, values: number[], say: (v: number) => string, seconds: number}} props */
function Spark({ word, values, say, seconds }) {
  const known = values.filter((v) => !Number.isNaN(v));
  if (!known.length) return null;
  const top = Math.max(...known) || 1, last = known[known.length - 1];
  const points = values.map((v, i) => (Number.isNaN(v) ? "" : `${((i / Math.max(1, values.length - 1)) * 200).toFixed(1)},${(38 - (v / top) * 36).toFixed(1)}`)).filter(Boolean).join(" ");
  return html`<figure><figcaption><b>${word}</b> ${say(last)} <small class="dim">at most ${say(top)}, ${seconds} s</small></figcaption>
    <svg viewBox="0 0 200 40" preserveAspectRatio="none" role="img" aria-label=${`${word}: ${say(last)} now, at most ${say(top)} in ${seconds} seconds`}><line x1="0" y1="39.5" x2="200" y2="39.5"/><polyline points=${points}/></svg></figure>`;
}
