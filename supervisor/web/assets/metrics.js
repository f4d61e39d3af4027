// Figures over time. They are sampled while the view is open, and the range is shared.
import { html, useEffect, useRef, useState } from "./vendor-ui.js";
import Plot from "./vendor-plot.js";
import { list } from "./api.js";
import { loose, requests, status, refreshStatus } from "./store.js";
import { groups, groupOf } from "./states.js";
import { route, refine } from "./route.js";
import { Command, now } from "./ui.js";
import { clip } from "./text.js";
import { samples, sample, rate } from "./samples.js";

const ranges = [["15m", "15 min", 900], ["1h", "1 h", 3600], ["6h", "6 h", 6 * 3600]];
const every = 5000; // between samples

export function Metrics() {
  const range = /** @type {any} */ (ranges.find((r) => r[0] === route.value.query.range) ?? ranges[0]);
  const [n, setN] = useState(0);
  const [trouble, setTrouble] = useState("");
  const [ends, setEnds] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    const take = () => document.hidden || Promise.all([sample(), refreshStatus()]).then(() => { setTrouble(""); setN((old) => old + 1); }, (e) => setTrouble(e.message));
    take();
    const timer = setInterval(take, every);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    const abort = new AbortController();
    const after = new Date(Date.now() - range[2] * 1000).toISOString();
    Promise.all(["task.done", "task.failed", "message.sent"].map((type) => list("events", { type, after }, abort.signal).then((all) => all.map((e) => ({ at: Date.parse(e.at) / 1000, kind: e.kind }))))).then((found) => setEnds(found.flat()), () => {});
    return () => abort.abort();
  }, [range[0], Math.floor(n / 6)]);
  const to = Date.now() / 1000, from = to - range[2];
  const buckets = perMinute(ends, from, to);
  return html`<div class="page"><div class="bar"><h1>Metrics</h1>
      <span class="switch" role="group" aria-label="Range">${ranges.map((r) => html`<button type="button" key=${r[0]} aria-pressed=${r[0] === range[0]} onClick=${() => refine({ range: /** @type {string} */ (r[0]) })}>${r[1]}</button>`)}</span>
      <span class="dim">Bars cover the whole range. Lines are sampled while this page is open.</span>
      <span class="push row"><a href="/metrics" target="_blank" rel="noreferrer">Prometheus</a></span></div>
    ${trouble && html`<p class="bad">${clip(trouble)}</p>`}
    <${Figures}/>
    <div class="charts">
      <${Chart} title="Ended tasks" unit="per minute" from=${from} to=${to} bars data=${[buckets.t, buckets["task.done"], buckets["task.failed"]]} series=${[["done", "--green"], ["failed", "--red"]]}/>
      <${Chart} title="Messages between actors" unit="per minute" from=${from} to=${to} bars data=${[buckets.t, buckets["message.sent"]]} series=${[["messages", "--accent"]]}/>
      <${Chart} title="Open tasks" from=${from} to=${to} data=${[samples.t, samples.get("running"), samples.get("pending"), samples.get("blocked"), samples.get("needs_human"), samples.get("in_review")]}
        series=${[["running", "--blue"], ["pending", "--ink"], ["blocked", "--soft"], ["needs you", "--amber"], ["in review", "--violet"]]}/>
      <${Chart} title="Requests and events" unit="per second" from=${from} to=${to} data=${[samples.t, rate("stdio"), rate("http")]} series=${[["agents", "--blue"], ["HTTP", "--violet"]]}/>
      <${Chart} title="Age of the oldest waiting task" unit="seconds" from=${from} to=${to} data=${[samples.t, samples.get("queue_age")]} series=${[["age", "--amber"]]}/>
      <${Chart} title="Time to record a batch" unit="milliseconds" from=${from} to=${to} data=${[samples.t, samples.get("commit")]} series=${[["mean", "--green"]]}/>
      <${Chart} title="Messages not yet written to stdin" from=${from} to=${to} data=${[samples.t, samples.get("mailbox")]} series=${[["messages", "--blue"]]}/>
      <${Chart} title="Memory of agents" unit="MiB" from=${from} to=${to} data=${[samples.t, samples.get("rss")]} series=${[["all agents", "--violet"]]}/>
    </div><${Command} text="curl --unix-socket .orchestrator/api.sock http://localhost/metrics"/></div>`;
}

/** The figures of now, counted as the columns of the board are. */
function Figures() {
  const s = status.value;
  if (!s) return null;
  const all = groups.map((g) => /** @type {[string, number, string]} */ ([g.word, requests.value.filter((t) => groupOf(t) === g.id).length + (g.id === "you" ? loose.value.length : 0), "t-" + g.tone]));
  all.push(["Restarts", s.agents.reduce((/** @type {number} */ n, /** @type {any} */ a) => n + a.restarts, 0), ""]);
  if (s.used?.cost) all.push([clip(s.used.currency ?? "Cost", 8), Number(s.used.cost.toFixed(2)), ""]);
  return html`<div class="figures">${all.map(([word, n, tone]) => html`<div key=${word} class="card"><b class=${n ? tone : "dim"}>${n.toLocaleString("en-US")}</b><span class="dim">${word}</span></div>`)}</div>`;
}

/** Counts events by minutes. @param {{at: number, kind: string}[]} events @param {number} from @param {number} to */
function perMinute(events, from, to) {
  const size = Math.max(60, Math.round((to - from) / 90 / 60) * 60);
  const start = Math.floor(from / size) * size;
  const t = Array.from({ length: Math.ceil((to - start) / size) }, (_, i) => start + i * size);
  /** @type {any} */
  const found = { t, "task.done": t.map(() => null), "task.failed": t.map(() => null), "message.sent": t.map(() => null) };
  for (const e of events) { const i = Math.floor((e.at - start) / size); if (i >= 0 && i < t.length) found[e.kind][i] = (found[e.kind][i] ?? 0) + 60 / size; }
  return found;
}

/** @param {number|null|undefined} v */
const figure = (v) => (v === null || v === undefined ? "–" : +v.toFixed(2));

/** What the legend shows while no moment is pointed at: the total of the bars, or the latest sample. @param {number[]} t @param {(number|null)[]} all @param {boolean} [bars] */
const atRest = (t, all, bars) => (bars ? Math.round((all.reduce((/** @type {number} */ n, v) => n + (v ?? 0), 0) * (t[1] - t[0])) / 60) + " in total" : figure(all.findLast((v) => v !== null)));

/** @param {{title: string, unit?: string, from: number, to: number, bars?: boolean, data: any[], series: string[][]}} props */
function Chart({ title, unit = "", from, to, bars, data, series }) {
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const limits = useRef([from, to]);
  limits.current = [from, to];
  useEffect(() => {
    const div = /** @type {HTMLDivElement} */ (box.current);
    const make = () => {
      plot.current?.destroy();
      const style = getComputedStyle(div);
      // The canvas needs colors that are resolved: light-dark() is none.
      const color = (/** @type {string} */ name) => { div.style.color = `var(${name})`; const c = getComputedStyle(div).color; div.style.color = ""; return c; };
      const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px " + style.fontFamily, size: 26 };
      plot.current = new Plot({
        width: div.clientWidth, height: 150, cursor: { sync: { key: "metrics" }, y: false }, legend: { live: true, markers: { width: 0, fill: (/** @type {any} */ u, /** @type {number} */ i) => color(series[i - 1]?.[1] ?? "--ink") } },
        scales: { x: { range: () => limits.current }, y: { range: (/** @type {any} */ u, /** @type {number} */ lo, /** @type {number} */ hi) => [0, Math.max(1, hi * 1.1)] } },
        axes: [{ ...axis, space: 70, values: (/** @type {any} */ u, /** @type {number[]} */ all) => all.map((s) => new Date(s * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false })) }, { ...axis, size: 44 }],
        series: [{ value: (/** @type {any} */ u, /** @type {number} */ s) => (s ? new Date(s * 1000).toLocaleTimeString([], { hour12: false }) : "") }, ...series.map(([label, name]) => ({ label, stroke: color(name), width: 1.6, fill: bars ? color(name) : undefined, points: { show: !bars && data[0].length < 3, fill: color(name) },
          paths: bars ? /** @type {any} */ (Plot).paths.bars({ size: [0.7, 40] }) : undefined, value: (/** @type {any} */ u, /** @type {number|null} */ v, /** @type {number} */ at, /** @type {number|null} */ i) => i === null ? atRest(u.data[0], u.data[at], bars) : figure(v) }))],
      }, data, div);
    };
    make();
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: div.clientWidth, height: 150 }));
    watch.observe(div);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    return () => { watch.disconnect(); dark.removeEventListener("change", make); plot.current?.destroy(); plot.current = null; };
  }, []);
  useEffect(() => plot.current?.setData(data), [data]);
  return html`<section class="card chart"><h2>${title} <small>${unit}</small></h2><div ref=${box}></div>
    ${data.slice(1).every((all) => all.every((/** @type {number|null} */ v) => v === null)) && html`<p class="none dim">No data yet</p>`}</section>`;
}
