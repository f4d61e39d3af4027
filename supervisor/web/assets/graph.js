// The graph of tasks: from left to right, in the colors of their states.
import { Save } from "./save.js";
import { html, useEffect, useMemo, useRef, useState } from "./vendor-ui.js";
import { allTasks, tasks, tick, loaded } from "./store.js";
import { route, refine, go, Link, taskAddress } from "./route.js";
import { final, lookOf } from "./states.js";
import { Command, Empty, Icon } from "./ui.js";
import { clip, count, fitted, short } from "./text.js";
import { Sentence } from "./task.js";
import { curve, place, height, width } from "./layout.js";

/** @typedef {import("./states.js").Task} Task */
/** @typedef {{id: string, x: number, y: number}} Spot */

const maxNodes = 400; // more of them are no picture
const readable = 0.75; // the smallest scale at which texts are read

/** Returns the tasks that are drawn. @param {Task[]} all @param {Record<string, string>} query */
function chosen(all, query) {
  if (query.of) {
    const found = new Set([query.of]);
    for (const id of found) { // grows meanwhile
      for (const d of tasks.get(id)?.dependencies ?? []) if (tasks.has(d) && found.size < maxNodes) found.add(d);
    }
    return all.filter((t) => found.has(t.id));
  }
  const linked = new Set(all.flatMap((t) => (t.dependencies?.length ? [t.id, ...t.dependencies] : [])));
  let some = all.filter((t) => linked.has(t.id) || all.length <= 60);
  if (query.done !== "show" && some.length > 60) some = some.filter((t) => t.state !== "done");
  return some.length > maxNodes ? [...some.filter((t) => !final(t)), ...some.filter(final).reverse()].slice(0, maxNodes) : some;
}

/** Returns the ends of the edges on the longest chain of open tasks. @param {Task[]} some */
function critical(some) {
  const open = new Map(some.filter((t) => !final(t)).map((t) => [t.id, t]));
  /** @type {Map<string, [number, string|null]>} */
  const longest = new Map();
  const depth = (/** @type {string} */ id) => {
    const known = longest.get(id);
    if (known) return known[0];
    longest.set(id, [1, null]);
    let best = 1, by = null;
    for (const d of open.get(id)?.dependencies ?? []) if (open.has(d) && depth(d) + 1 > best) [best, by] = [depth(d) + 1, d];
    longest.set(id, [best, by]);
    return best;
  };
  let end = null, best = 1;
  for (const id of open.keys()) if (depth(id) > best) [end, best] = [id, depth(id)];
  const found = new Set();
  for (let id = end; id; id = longest.get(id)?.[1] ?? null) { const by = longest.get(id)?.[1]; if (by) found.add(by + " " + id); }
  return found;
}

export function GraphPage() {
  const { query } = route.value;
  const all = allTasks.value;
  const some = useMemo(() => chosen(all, query), [all, query]);
  const shape = some.map((t) => t.id + ">" + t.dependencies).join();
  const drawn = useMemo(() => place(some), [shape]);
  const thick = useMemo(() => critical(some), [some]);
  if (!loaded.value) return html`<p class="loading">Loading…</p>`;
  if (!all.length) return html`<${Empty} title="No tasks yet" cli='orchestrator task add "API handlers" --needs TASK'><p>This page shows tasks that depend on other tasks. To add one:</p><//>`;
  const picked = query.task ? tasks.get(query.task) : undefined;
  const of = query.of ? tasks.get(query.of) : undefined;
  return html`<div class="page fill"><div class="bar"><h1>Graph <small>${some.length < all.length ? `${some.length} of ${count(all.length, "task")}` : count(all.length, "task")}</small></h1>
      ${of && html`<span class="row">dependencies of “${clip(of.name, 40)}” <button type="button" onClick=${() => refine({ of: undefined })}>Show all</button></span>`}
      ${all.length > 60 && html`<label class="row"><input type="checkbox" checked=${query.done === "show"} onChange=${() => refine({ done: query.done === "show" ? undefined : "show" })}/> Done tasks</label>`}
      <span class="legend">${drawn.edges.length > 0 && html`<${Arrow} word="is needed by"/>`}${thick.size > 0 && html`<${Arrow} thick word="longest chain of open tasks"/>`}</span>
      <span class="push row">${some.length > 0 && html`<${Save} of=".graph svg.canvas" name="graph.svg" size=${drawn.size}/>`}<${Command} text="orchestrator graph"/></span></div>
    ${!some.length ? html`<p class="dim">No tasks with dependencies.</p>` : html`<div class="graph"><${Canvas} drawn=${drawn} thick=${thick} picked=${query.task}/>
      ${picked && html`<${Drawer} t=${picked}/>`}</div>`}
    <details class="twin"><summary>Tasks as a list</summary><ul>${some.slice(0, 500).map((t) => html`<li key=${t.id}><${Link} to=${taskAddress(t.id)}>${clip(t.name, 100)}<//> (${lookOf(t).word})${t.dependencies?.length ? " needs " + t.dependencies.map((d) => clip(tasks.get(d)?.name ?? short(d), 60)).join(", ") : ""}</li>`)}</ul></details></div>`;
}

/** The legend of a kind of edges. @param {{word: string, thick?: boolean}} props */
const Arrow = ({ word, thick }) => html`<span><svg width="28" height="10" aria-hidden="true"><path class=${"edge" + (thick ? " thick" : "")} d="M0 5H26" marker-end=${thick ? "url(#thick-tip)" : "url(#tip)"}/></svg>${word}</span>`;

/** @param {{t: Task}} props */
const Drawer = ({ t }) => html`<aside class="card drawer" aria-label="Task"><div class="row"><h2>${clip(t.name, 120)}</h2><button type="button" class="quiet" aria-label="Close" onClick=${() => refine({ task: undefined })}><${Icon} name="cross"/></button></div>
  <code class="dim">${short(t.id)}</code><${Sentence} t=${t}/><div class="row"><${Link} to=${taskAddress(t.id)}>Open the task<//>
  ${t.dependencies?.length > 0 && html`<button type="button" onClick=${() => refine({ of: t.id })}>Only its dependencies</button>`}</div></aside>`;

/** @param {{drawn: ReturnType<typeof place>, thick: Set<string>, picked?: string}} props */
function Canvas({ drawn, thick, picked }) {
  const box = useRef(/** @type {SVGSVGElement|null} */ (null));
  const [view, setView] = useState(/** @type {{x: number, y: number, k: number}|null} */ (null));
  const drag = useRef(/** @type {any} */ (null));
  const { size, spots, edges } = drawn;
  tick.value;
  const fit = () => {
    const { clientWidth: w, clientHeight: h } = /** @type {SVGSVGElement} */ (box.current);
    const k = Math.max(0.15, Math.min(1.4, w / size.width, h / size.height));
    setView({ x: Math.max(0, (w - size.width * k) / 2), y: Math.max(0, (h - size.height * k) / 2), k });
  };
  useEffect(() => {
    const { clientWidth: w, clientHeight: h } = /** @type {SVGSVGElement} */ (box.current);
    if (Math.min(w / size.width, h / size.height) >= readable) fit();
    else setView({ x: 0, y: 0, k: 0.9 }); // from the top left
  }, [drawn]);
  const zoom = (/** @type {number} */ by, /** @type {number} */ px, /** @type {number} */ py) => setView((v) => {
    if (!v) return v;
    const k = Math.min(3, Math.max(0.1, v.k * by));
    return { k, x: px - ((px - v.x) * k) / v.k, y: py - ((py - v.y) * k) / v.k };
  });
  useEffect(() => {
    const svg = /** @type {SVGSVGElement} */ (box.current);
    const wheel = (/** @type {WheelEvent} */ e) => {
      e.preventDefault();
      const at = svg.getBoundingClientRect();
      if (e.ctrlKey || !e.shiftKey) zoom(Math.exp(-e.deltaY / 500), e.clientX - at.left, e.clientY - at.top);
    };
    svg.addEventListener("wheel", wheel, { passive: false });
    return () => svg.removeEventListener("wheel", wheel);
  }, []);
  const press = (/** @type {PointerEvent} */ e) => { if (/** @type {Element} */ (e.target).closest("a")) return; drag.current = { x: e.clientX, y: e.clientY, v: view }; /** @type {Element} */ (e.currentTarget).setPointerCapture(e.pointerId); };
  const move = (/** @type {PointerEvent} */ e) => { const d = drag.current; if (d?.v) setView({ ...d.v, x: d.v.x + e.clientX - d.x, y: d.v.y + e.clientY - d.y }); };
  const middle = () => { const b = /** @type {SVGSVGElement} */ (box.current); return [b.clientWidth / 2, b.clientHeight / 2]; };
  return html`<svg ref=${box} class="canvas" role="group" aria-label="Graph of tasks" onPointerDown=${press} onPointerMove=${move} onPointerUp=${() => (drag.current = null)}>
      <defs>${["tip", "thick-tip"].map((id) => html`<marker key=${id} id=${id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z"/></marker>`)}</defs>
      ${view && html`<g transform=${`translate(${view.x} ${view.y}) scale(${view.k})`}>
        ${edges.map((/** @type {any} */ e) => html`<path key=${e.from + e.to} class=${"edge" + (thick.has(e.from + " " + e.to) ? " thick" : "")} marker-end=${thick.has(e.from + " " + e.to) ? "url(#thick-tip)" : "url(#tip)"} d=${curve(e.points)}/>`)}
        ${spots.map((s) => html`<${Node} key=${s.id} spot=${s} picked=${s.id === picked}/>`)}</g>`}</svg>
    ${view && spots.length > 50 && html`<${MiniMap} drawn=${drawn} view=${view} box=${box.current} to=${(/** @type {number} */ x, /** @type {number} */ y) => { const [w, h] = middle(); setView({ ...view, x: w - x * view.k, y: h - y * view.k }); }}/>`}
    <div class="tools"><button type="button" aria-label="Zoom in" onClick=${() => { const [x, y] = middle(); zoom(1.3, x, y); }}>+</button><button type="button" aria-label="Zoom out" onClick=${() => { const [x, y] = middle(); zoom(1 / 1.3, x, y); }}>−</button><button type="button" onClick=${fit}>Fit</button></div>`;
}

/** The whole graph, small, with the part that is on the screen. A click goes there. @param {any} props */
function MiniMap({ drawn, view, box, to }) {
  const { size, spots } = drawn;
  const go = (/** @type {PointerEvent} */ e) => {
    if (!e.buttons) return;
    const at = /** @type {Element} */ (e.currentTarget).getBoundingClientRect();
    to(((e.clientX - at.left) / at.width) * size.width, ((e.clientY - at.top) / at.height) * size.height);
  };
  return html`<svg class="map" viewBox=${`0 0 ${size.width} ${size.height}`} preserveAspectRatio="none" aria-hidden="true" onPointerDown=${go} onPointerMove=${go}>
    ${spots.map((/** @type {Spot} */ s) => { const t = tasks.get(s.id); return t && html`<rect key=${s.id} class=${"t-" + lookOf(t).tone} x=${s.x - width / 2} y=${s.y - height / 2} width=${width} height=${height}/>`; })}
    <rect class="part" x=${-view.x / view.k} y=${-view.y / view.k} width=${box.clientWidth / view.k} height=${box.clientHeight / view.k}/></svg>`;
}

/** @param {{spot: Spot, picked: boolean}} props */
function Node({ spot, picked }) {
  const t = tasks.get(spot.id);
  if (!t) return null;
  const look = lookOf(t);
  const open = (/** @type {MouseEvent} */ e) => { e.preventDefault(); refine({ task: t.id }); };
  return html`<a class=${"node t-" + look.tone + (picked ? " picked" : "")} href=${taskAddress(t.id)} onClick=${open} onDblClick=${() => go(taskAddress(t.id))} transform=${`translate(${spot.x - width / 2} ${spot.y - height / 2})`} aria-label=${clip(t.name, 120) + ", " + look.word}>
    <title>${clip(t.name, 300)}</title><rect width=${width} height=${height} rx="9"/><rect class="edge-of" width="4" height=${height - 18} x="7" y="9" rx="2"/>
    <text class="name" x="19" y="19">${fitted(t.name, "600 12.5px", width - 27)}</text><text class="state" x="19" y="36">${fitted(`${look.word}${t.progress !== undefined && !final(t) ? ` ${Math.round(t.progress * 100)}%` : ""}${t.assignedTo ? " · " + t.assignedTo : ""}`, "11.5px", width - 27)}</text></a>`;
}
