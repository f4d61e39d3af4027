// The table of tasks, with a sort order in the address.
import { html, useMemo } from "./vendor-ui.js";
import { refine, Link, taskAddress } from "./route.js";
import { lookOf, sinceOf, final } from "./states.js";
import { TaskBadge, Avatar, Age, Bar } from "./ui.js";
import { clip, short, clock } from "./text.js";
import { Virtual } from "./virtual.js";

/** @typedef {import("./states.js").Task} Task */

/** @type {Record<string, (t: Task) => string|number>} */
const orders = {
  id: (t) => t.id, name: (t) => t.name.toLowerCase(), state: (t) => lookOf(t).word, agent: (t) => t.assignedTo ?? "￿",
  progress: (t) => t.progress ?? -1, since: (t) => sinceOf(t), created: (t) => t.createdAt,
};
const columns = [
  ["id", "Id", "mid"], ["name", "Title", ""], ["state", "State", ""], ["agent", "Agent", "mid"], ["progress", "Progress", "far mid"], ["since", "Since", ""], ["created", "Created", "far mid"],
];

/** @param {{tasks: Task[], query: Record<string, string>}} props */
export function TaskTable({ tasks, query }) {
  const [by, down] = [query.sort?.replace(/^-/, "") ?? "created", !query.sort || query.sort.startsWith("-")];
  const sorted = useMemo(() => {
    const key = orders[by] ?? orders.created;
    const rows = tasks.map((t) => /** @type {const} */ ([key(t), t]));
    rows.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
    if (down) rows.reverse();
    return rows.map((r) => r[1]);
  }, [tasks, by, down]);
  const sort = (/** @type {string} */ name) => refine({ sort: by === name && !down ? "-" + name : by === name ? name : name === "created" || name === "since" ? "-" + name : name });
  return html`<div class="table" role="table" aria-label="Tasks" aria-rowcount=${sorted.length}>
    <div class="cells head of-tasks" role="row">${columns.map(([name, word, where]) => html`<span key=${name} class=${where} role="columnheader" aria-sort=${by === name ? (down ? "descending" : "ascending") : undefined}>
      <button type="button" onClick=${() => sort(name)}>${word}${by === name ? (down ? " ↓" : " ↑") : ""}</button></span>`)}</div>
    <${Virtual} items=${sorted} height=${38} role="rowgroup" label="Tasks" row=${(/** @type {Task} */ t) => html`<${Link} key=${t.id} role="row" class="cells of-tasks" to=${taskAddress(t.id)}>
      <code class="mid dim" role="cell">${short(t.id)}</code><span role="cell">${clip(t.name, 200)}</span><span role="cell"><${TaskBadge} task=${t}/></span>
      <span class="mid with" role="cell">${t.assignedTo && html`<${Avatar} name=${t.assignedTo}/> ${clip(t.assignedTo, 60)}`}</span>
      <span class="far mid" role="cell">${!final(t) && html`<${Bar} value=${t.progress}/>`}</span>
      <span class="dim" role="cell"><${Age} at=${sinceOf(t)}/></span><span class="far mid dim" role="cell">${clock(t.createdAt)}</span><//>`}/></div>`;
}
