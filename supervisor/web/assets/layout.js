// Where the tasks of the graph are drawn. Tasks that are not linked are laid out by themselves.
import { Graph, layout } from "./vendor-graph.js";

export const width = 190, height = 46;
const gap = 24;

/** @typedef {import("./states.js").Task} Task */
/** @typedef {{id: string, x: number, y: number}} Spot */
/** @typedef {{from: string, to: string, points: {x: number, y: number}[]}} Edge */

/** Lays tasks out from left to right. @param {Task[]} some @returns {{spots: Spot[], edges: Edge[], size: {width: number, height: number}}} */
export function place(some) {
  const parts = components(some).map(placeOne).sort((a, b) => b.height - a.height);
  const area = parts.reduce((n, p) => n + (p.width + gap) * (p.height + gap), 0);
  const room = Math.max(parts.length ? Math.max(...parts.map((p) => p.width)) : 0, Math.sqrt(area * 1.9));
  /** @type {Spot[]} */ const spots = [];
  /** @type {Edge[]} */ const edges = [];
  let x = gap / 2, y = gap / 2, row = 0, right = 0;
  for (const p of parts) { // in rows, the highest first
    if (x > gap && x + p.width > room) { x = gap / 2; y += row + gap; row = 0; }
    for (const s of p.spots) spots.push({ ...s, x: s.x + x, y: s.y + y });
    for (const e of p.edges) edges.push({ ...e, points: e.points.map((q) => ({ x: q.x + x, y: q.y + y })) });
    x += p.width + gap;
    row = Math.max(row, p.height);
    right = Math.max(right, x);
  }
  return { spots, edges, size: { width: right, height: y + row + gap } };
}

/** Returns the tasks in groups that are linked. @param {Task[]} some */
function components(some) {
  const parent = new Map(some.map((t) => [t.id, t.id]));
  const root = (/** @type {string} */ id) => {
    let r = id;
    while (parent.get(r) !== r) r = /** @type {string} */ (parent.get(r));
    for (let at = id; at !== r; ) { const next = /** @type {string} */ (parent.get(at)); parent.set(at, r); at = next; }
    return r;
  };
  for (const t of some) for (const d of t.dependencies) if (parent.has(d)) parent.set(root(t.id), root(d));
  /** @type {Map<string, Task[]>} */
  const groups = new Map();
  for (const t of some) groups.set(root(t.id), [...(groups.get(root(t.id)) ?? []), t]);
  return [...groups.values()];
}

/** @param {Task[]} some @returns {{spots: Spot[], edges: Edge[], width: number, height: number}} */
function placeOne(some) {
  if (some.length === 1) return { spots: [{ id: some[0].id, x: width / 2, y: height / 2 }], edges: [], width, height };
  const g = new Graph().setGraph({ rankdir: "LR", nodesep: 14, ranksep: 56 }).setDefaultEdgeLabel(() => ({}));
  const ids = new Set(some.map((t) => t.id));
  for (const t of some) g.setNode(t.id, { width, height });
  for (const t of some) for (const d of new Set(t.dependencies)) if (ids.has(d)) g.setEdge(d, t.id);
  layout(g);
  const { width: w, height: h } = g.graph();
  return {
    spots: some.map((t) => ({ id: t.id, x: g.node(t.id).x, y: g.node(t.id).y })), width: w, height: h,
    edges: g.edges().map((/** @type {any} */ e) => {
      const inner = g.edge(e).points.slice(1, -1), a = g.node(e.v), b = g.node(e.w); // from the right side of one to the left side of the other
      return { from: e.v, to: e.w, points: [{ x: a.x + width / 2, y: a.y }, ...inner, { x: b.x - width / 2, y: b.y }] };
    }),
  };
}

/** Returns the path of an edge, which arrives from the left as its arrowhead points. @param {{x: number, y: number}[]} points */
export function curve(points) {
  const [first, ...rest] = points;
  let d = `M${first.x} ${first.y}`;
  for (let i = 0; i < rest.length - 2; i++) d += `Q${rest[i].x} ${rest[i].y} ${(rest[i].x + rest[i + 1].x) / 2} ${(rest[i].y + rest[i + 1].y) / 2}`;
  const last = rest.at(-1) ?? first, turn = rest.at(-2) ?? { x: (first.x + last.x) / 2, y: first.y };
  return d + `C${turn.x} ${turn.y} ${(turn.x + last.x) / 2} ${last.y} ${last.x} ${last.y}`;
}
