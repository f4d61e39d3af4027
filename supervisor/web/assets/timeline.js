// Where the time went: one lane for each agent, with its tasks, reviews, questions and crashes.
import { Save } from "./save.js";
import { html, useEffect, useMemo, useRef, useState } from "./vendor-ui.js";
import { list } from "./api.js";
import { tasks, status, useEvents } from "./store.js";
import { route, refine, go, Link, taskAddress, agentAddress } from "./route.js";
import { Avatar, Command, Empty, narrow, now } from "./ui.js";
import { clip, clock, count, duration, fitted } from "./text.js";
import { EventText } from "./task.js";
import { Virtual } from "./virtual.js";
import { spansOf, wanted } from "./spans.js";

const ranges = [["15m", "15 min", 15 * 60_000], ["1h", "1 h", 3600_000], ["6h", "6 h", 6 * 3600_000], ["24h", "24 h", 24 * 3600_000]];
const lane = 34;
const maxEvents = 100_000;
const maxIdle = 20; // agents of a team whose idle ones have a lane, too

export function Timeline() {
  const { query } = route.value;
  const range = /** @type {any} */ (ranges.find((r) => r[0] === query.range) ?? ranges[1]);
  const [brush, setBrush] = useState(/** @type {[number, number]|null} */ (null));
  const [events, trouble] = useEvents(async (signal) => {
    const after = new Date(Date.now() - range[2]).toISOString();
    const found = await Promise.all(["task.*", "agent.*", "question.*", "review.*"].map((type) => list("events", { type, after }, signal)));
    return found.flat().filter((e) => wanted[e.kind]).sort((a, b) => a.seq - b.seq);
  }, (e) => !!wanted[e.kind], [range[0]], maxEvents);
  const end = now.value;
  const first = events?.length ? Date.parse(events[0].at) : 0;
  const from = brush ? brush[0] : Math.max(end - range[2], first - (end - first) / 50);
  const to = brush ? brush[1] : end;
  const spans = useMemo(() => spansOf(events ?? []), [events]);
  if (trouble) return html`<p class="bad">${clip(trouble)}</p>`;
  if (!events) return html`<p class="loading">Loading…</p>`;
  const seen = [...new Set(spans.flatMap((s) => (s.to ?? end) > from && s.from < to ? [s.agent] : []))];
  const order = (status.value?.agents ?? []).map((/** @type {any} */ a) => a.name);
  if (seen.length > 0 && order.length <= maxIdle) seen.push(...order.filter((/** @type {string} */ a) => !seen.includes(a)));
  seen.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const inside = events.filter((e) => { const at = Date.parse(e.at); return at >= from && at <= to && (!query.agent || e.agent === query.agent); });
  return html`<div class="page fill"><div class="bar"><h1>Timeline <small>${!brush && from > end - range[2] ? clock(events[0]?.at) + " (first event)" : clock(new Date(from).toISOString())} to ${brush ? clock(new Date(to).toISOString()) : "now"}</small></h1>
      <span class="switch" role="group" aria-label="Range">${ranges.map((r) => html`<button type="button" key=${r[0]} aria-pressed=${r[0] === range[0] && !brush} onClick=${() => { setBrush(null); refine({ range: /** @type {string} */ (r[0]) }); }}>${r[1]}</button>`)}</span>
      ${brush ? html`<button type="button" onClick=${() => setBrush(null)}>Whole range</button>` : html`<span class="dim">Drag to zoom in</span>`}
      ${seen.length > 0 && html`<span class="push"><${Save} of=".gantt svg" name="timeline.svg" lanes=${seen}/></span>`}</div>
    ${!seen.length ? html`<${Empty} part title="No events in this range"/>` : html`<${Lanes} agents=${seen} spans=${spans} from=${from} to=${to} end=${end} onBrush=${setBrush}/>
      <div class="legend">${legend.map(([kind, word]) => html`<span key=${word}><svg class=${kind} width="16" height="12" aria-hidden="true">${kind === "k-crash" ? html`<path d="M8 0v12"/>`
        : html`<rect x="1" y=${kind.startsWith("k-task") ? 1 : 3} width="14" height=${kind.startsWith("k-task") ? 10 : 6} rx="3" fill=${kind === "k-question" ? "url(#hatch)" : undefined}/>`}</svg>${word}</span>`)}</div>`}
    <${Happened} events=${inside}/></div>`;
}

/** The classes of bars and their words. */
const legend = [
  ["k-task o-open", "running"], ["k-task o-done", "done"], ["k-task o-failed", "failed"], ["k-task o-requeued", "back in the queue"], ["k-task o-cancelled", "cancelled"],
  ["k-review", "review"], ["k-question", "question"], ["k-crash", "crash"],
];

/** @param {{agents: string[], spans: any[], from: number, to: number, end: number, onBrush: (range: [number, number]|null) => void}} props */
function Lanes({ agents, spans, from, to, end, onBrush }) {
  const box = useRef(/** @type {SVGSVGElement|null} */ (null));
  const [width, setWidth] = useState(900);
  const [drag, setDrag] = useState(/** @type {[number, number]|null} */ (null));
  useEffect(() => {
    const watch = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 900));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const x = (/** @type {number} */ at) => ((at - from) / (to - from)) * width;
  const time = (/** @type {number} */ px) => from + (px / width) * (to - from);
  const y = new Map(agents.map((a, i) => [a, 22 + i * lane]));
  const px = (/** @type {PointerEvent} */ e) => e.clientX - /** @type {Element} */ (box.current).getBoundingClientRect().left;
  const press = (/** @type {PointerEvent} */ e) => { if (!/** @type {Element} */ (e.target).closest("a")) setDrag([px(e), px(e)]); };
  const move = (/** @type {PointerEvent} */ e) => drag && setDrag([drag[0], px(e)]);
  const release = () => {
    if (drag && Math.abs(drag[0] - drag[1]) > 6) onBrush([time(Math.min(...drag)), time(Math.max(...drag))]);
    setDrag(null);
  };
  const visible = spans.filter((s) => y.has(s.agent) && (s.to ?? end) >= from && s.from <= to).slice(-4000);
  const height = 26 + agents.length * lane;
  const nexts = followers(visible);
  return html`<div class="gantt"><div class="names">${agents.map((a) => html`<${Link} key=${a} to=${agentAddress(a)}><${Avatar} name=${a}/> <span>${clip(a, 40)}</span><//>`)}</div>
    <svg ref=${box} height=${height} role="img" aria-label=${`Activity of ${count(agents.length, "agent")}`} onPointerDown=${press} onPointerMove=${move} onPointerUp=${release} onPointerLeave=${release}>
      <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="3" height="6"/></pattern></defs>
      ${steps(from, to).map((t) => html`<g key=${t} class="grid"><path d=${`M${x(t)} 16V${height}`}/><text x=${Math.min(x(t) + 3, width - 3)} y="11" text-anchor=${x(t) > width - 60 ? "end" : "start"}>${new Date(t).toLocaleTimeString([], { hour12: false })}</text></g>`)}
      ${agents.map((a) => html`<path key=${a} class="base" d=${`M0 ${(y.get(a) ?? 0) + lane - 4}H${width}`}/>`)}
      ${visible.map((s) => html`<${Span} key=${s.key} s=${s} x1=${Math.max(-4, x(s.from))} x2=${Math.min(width + 4, x(s.to ?? end))} room=${(nexts.has(s) ? x(nexts.get(s) ?? 0) : width) - Math.max(4, x(s.from))} y=${y.get(s.agent)}/>`)}
      ${drag && html`<rect class="brush" x=${Math.min(...drag)} width=${Math.abs(drag[0] - drag[1])} y="16" height=${height}/>`}</svg></div>`;
}

/** Returns when the next task of the same agent begins, for each that has one. @param {any[]} spans */
function followers(spans) {
  const found = new Map(), last = new Map();
  for (const s of spans) {
    if (s.kind !== "task" && s.kind !== "crash") continue;
    if (last.has(s.agent)) found.set(last.get(s.agent), s.from);
    if (s.kind === "task") last.set(s.agent, s); else last.delete(s.agent);
  }
  return found;
}

/** @param {{s: any, x1: number, x2: number, room: number, y: number}} props room is that up to the next bar */
function Span({ s, x1, x2, room, y }) {
  const name = s.task ? clip(tasks.get(s.task)?.name ?? s.name ?? "", 60) : "";
  const words = `${s.words}${name ? " " + name : ""}, ${duration((s.to ?? Date.now()) - s.from)}`;
  if (s.kind === "crash") return html`<g class="k-crash"><title>${clip(s.words, 200)} at ${clock(new Date(s.from).toISOString())}</title><path d=${`M${x1} ${y}v${lane - 8}`}/></g>`;
  const w = Math.max(2, x2 - x1);
  const high = s.kind === "task" ? 20 : 6;
  const top = s.kind === "task" ? y + 2 : y + 22;
  const beside = w < 60 && room - w > 44; // the name stands in the bar, or behind it
  const body = html`<title>${words}</title><rect x=${x1} y=${top} width=${w} height=${high} rx="3" fill=${s.kind === "question" ? "url(#hatch)" : undefined}/>
    ${s.kind === "question" && html`<path class="diamond" d=${`M${x1} ${y + 25}m-4 0l4-4 4 4-4 4z`}/>`}${s.kind === "task" && (beside || w > 44) && html`<text x=${beside ? x2 + 5 : Math.max(4, x1 + 6)} y=${y + 16}>${fitted(name, "11.5px", beside ? room - w - 10 : w - 10)}</text>`}`;
  return s.task ? html`<a class=${`k-${s.kind} o-${s.outcome ?? "open"}`} href=${taskAddress(s.task)} onClick=${(/** @type {Event} */ e) => { e.preventDefault(); go(taskAddress(s.task)); }}>${body}</a>` : html`<g class=${"k-" + s.kind}>${body}</g>`;
}

/** Returns round times within a range. @param {number} from @param {number} to */
function steps(from, to) {
  const sizes = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].map((s) => s * 1000);
  const size = sizes.find((s) => (to - from) / s <= 8) ?? 4 * 3600_000;
  const found = [];
  for (let t = Math.ceil(from / size) * size; t < to; t += size) found.push(t);
  return found;
}

/** The events of the range, the latest last. @param {{events: any[]}} props */
function Happened({ events }) {
  return html`<section class="happened"><div class="row"><h2>Events <small>${count(events.length, "event")}</small></h2><span class="push"><${Command} text="orchestrator events -f"/></span></div>
    <${Virtual} class="lines" height=${narrow.value ? 44 : 22} stick items=${events} label="Events" row=${(/** @type {any} */ e) => html`<div key=${e.seq} class="line"><span class="dim">${clock(e.at)}</span><b>${clip(e.kind, 40)}</b><span class="words">${e.agent && !(e.text ?? "").startsWith(e.agent + " ") && html`<${Link} to=${agentAddress(e.agent)}>${clip(e.agent, 40)}<//> `}<${EventText} e=${e}/></span></div>`}/></section>`;
}
