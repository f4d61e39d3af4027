// The board: tasks by their states. The table has the same filters.
import { html, useMemo, signal } from "./vendor-ui.js";
import { loaded, parts, questions, requests, status, tick } from "./store.js";
import { route, refine, Link, taskAddress } from "./route.js";
import { groups, groupOf, lookOf, sinceOf, final } from "./states.js";
import { Icon, Avatar, Age, Bar, Empty, narrow } from "./ui.js";
import { clip, short, count } from "./text.js";
import { Virtual } from "./virtual.js";
import { useKeys, overlay } from "./keys.js";
import { mayAct } from "./api.js";
import { AddButton } from "./add.js";
import { TaskTable } from "./table.js";

/** @typedef {import("./states.js").Task} Task */

/** Ids of the tasks that the card under the pointer waits for. */
const lit = signal(/** @type {Set<string>} */ (new Set()));

/** Returns the tasks that fit the filters. @param {Task[]} all @param {Record<string, string>} query */
export function filtered(all, query) {
  const text = query.text?.toLowerCase();
  if (!text && !query.agent && !query.repo && !query.state) return all;
  return all.filter((t) => (!query.agent || t.assignedTo === query.agent) && (!query.repo || t.targetRepo === query.repo) &&
    (!query.state || groupOf(t) === query.state) && (!text || t.name.toLowerCase().includes(text) || t.id.startsWith(text)));
}

export function Board() {
  const { query } = route.value;
  const all = requests.value;
  const found = useMemo(() => filtered(all, query), [all, query]);
  const table = query.view === "table";
  useKeys({ n: () => { if (mayAct()) overlay.value = "add"; }, v: () => refine({ view: table ? undefined : "table" }), f: () => /** @type {HTMLElement|null} */ (document.querySelector("#filter"))?.focus() });
  if (!loaded.value && !all.length) return html`<p class="loading">Loading…</p>`;
  if (!all.length) return html`<${Empty} title="No tasks yet" cli='orchestrator task add "Say hello"'><p>Agents and people create tasks. This adds one:</p><${AddButton}/><//>`;
  return html`<div class="page fill"><${Filters} query=${query} all=${all} n=${found.length} table=${table}/>
    ${table ? html`<${TaskTable} tasks=${found} query=${query}/>` : html`<${Columns} tasks=${found} query=${query}/>`}</div>`;
}

/** @param {{query: Record<string, string>, all: Task[], n: number, table: boolean}} props */
function Filters({ query, all, n, table }) {
  const agents = status.value?.agents ?? [];
  const repos = useMemo(() => [...new Set(all.map((t) => t.targetRepo).filter(Boolean))].sort(), [all]);
  const any = query.text || query.agent || query.repo || query.state;
  const choose = (/** @type {string} */ name) => (/** @type {any} */ e) => refine({ [name]: e.target.value || undefined });
  return html`<div class="bar"><h1>Board <small>${any ? `${n} of ${count(all.length, "task")}` : count(all.length, "task")}</small></h1>
    <input id="filter" type="search" placeholder="Filter" aria-label="Filter by name or id" value=${query.text ?? ""} onInput=${choose("text")}/>
    <select aria-label="Agent" value=${query.agent ?? ""} onChange=${choose("agent")}><option value="">All agents</option>${agents.map((/** @type {any} */ a) => html`<option key=${a.name} value=${a.name}>${clip(a.name, 40)}</option>`)}</select>
    ${repos.length > 0 && html`<select aria-label="Repository" value=${query.repo ?? ""} onChange=${choose("repo")}><option value="">All repositories</option>${repos.map((r) => html`<option key=${r} value=${r}>${clip(r, 40)}</option>`)}</select>`}
    ${table && html`<select aria-label="State" value=${query.state ?? ""} onChange=${choose("state")}><option value="">All states</option>${groups.map((g) => html`<option key=${g.id} value=${g.id}>${g.word}</option>`)}</select>`}
    ${any && html`<button type="button" class="quiet" onClick=${() => refine({ text: "", agent: "", repo: "", state: "" })}>Clear</button>`}
    <span class="push"><${AddButton}/></span><span class="switch" role="group" aria-label="View"><button type="button" aria-pressed=${!table} onClick=${() => refine({ view: undefined })}>Board</button>
      <button type="button" aria-pressed=${table} onClick=${() => refine({ view: "table" })}>Table</button></span></div>`;
}

/** @param {{tasks: Task[], query: Record<string, string>}} props */
function Columns({ tasks, query }) {
  const by = useMemo(() => {
    /** @type {Record<string, Task[]>} */
    const found = Object.fromEntries(groups.map((g) => [g.id, []]));
    for (const t of tasks) found[groupOf(t)].push(t);
    for (const id of ["done", "failed"]) found[id].sort((a, b) => (sinceOf(a) < sinceOf(b) ? 1 : -1));
    return found;
  }, [tasks, tick.value]);
  const fallback = ["you", "running", "review", "ready", "waiting", "failed", "done"].find((id) => by[id].length) ?? "running";
  const tab = query.tab ?? fallback;
  return html`<div class="tabs only-small" role="tablist">${groups.map((g) => html`<button type="button" role="tab" key=${g.id} aria-selected=${g.id === tab} onClick=${() => refine({ tab: g.id })}>${g.word} ${by[g.id].length}</button>`)}</div>
    <div class="board">${groups.map((g) => html`<${Column} key=${g.id} group=${g} tasks=${by[g.id]} open=${query.open?.split(".").includes(g.id)} small=${g.id === tab}/>`)}</div>`;
}

/** States that the column does not tell. */
const spoken = new Set(["assigned", "planning", "plan_review", "needs_human", "cancelled"]);
const rowHeight = 100; // of a card and the gap below it

/** @param {{group: any, tasks: Task[], open?: boolean, small: boolean}} props */
function Column({ group, tasks, open, small }) {
  const folded = group.id === "done" && !open && !narrow.value;
  return html`<section class=${"column" + (small ? "" : " wide") + (!tasks.length || folded ? " thin" : "")} aria-label=${group.word}>
    <header title=${group.help} class=${"t-" + group.tone}><${Icon} name=${group.icon}/><h2>${group.word}</h2><span class="n">${tasks.length}</span>
      ${group.id === "done" && tasks.length > 0 && open && html`<button type="button" class="quiet wide" onClick=${() => refine({ open: undefined })}>Fold</button>`}</header>
    ${!tasks.length ? html`<p class="none">none</p>`
      : folded ? html`<button type="button" class="fold" onClick=${() => refine({ open: "done" })}>Show ${tasks.length === 1 ? "it" : "them"}</button>`
      : html`<${Virtual} items=${tasks} height=${rowHeight} label=${group.word} row=${(/** @type {Task} */ t) => html`<${Card} key=${t.id} t=${t} lit=${lit.value.has(t.id)}/>`}/>`}</section>`;
}

/** @param {{t: Task, lit: boolean}} props */
function Card({ t, lit: bright }) {
  const look = lookOf(t);
  const waits = t.waitsFor?.length ?? 0;
  const part = final(t) ? undefined : parts.value.get(t.id);
  const asked = look.group === "you" ? questions.value.find((q) => q.task === t.id || q.task === part?.id) : undefined;
  const over = () => { if (waits) lit.value = new Set(t.waitsFor); };
  const out = () => { if (lit.value.size) lit.value = new Set(); };
  return html`<${Link} class=${"task" + (bright ? " lit" : "")} role="listitem" title=${short(t.id)} to=${taskAddress(t.id)} onMouseEnter=${over} onMouseLeave=${out} onFocus=${over} onBlur=${out}>
    <span class="name">${clip(t.name, 160)}</span>
    ${asked ? html`<span class="asks t-amber">${clip(asked.question, 160)}</span>`
      : part ? html`<span class="asks dim">${clip(part.assignedTo ?? "its part", 40)}: ${lookOf(part).word}</span>`
      : t.progress !== undefined && !final(t) && html`<span class=${"t-" + look.tone}><${Bar} value=${t.progress}/></span>`}
    <span class="meta">${t.assignedTo ? html`<${Avatar} name=${t.assignedTo}/><span class="who">${clip(t.assignedTo, 60)}</span>` : ""}
      ${spoken.has(t.state) ? html`<span class=${"t-" + look.tone}>${look.word}</span>` : html`<code>${short(t.id)}</code>`}
      ${waits > 0 && html`<span class="chip">blocked by ${waits}</span>`}
      ${!t.assignedTo && [t.targetRepo, ...(t.requiredCapabilities ?? [])].filter(Boolean).slice(0, 2).map((c) => html`<span key=${c} class="chip">${clip(c, 30)}</span>`)}
      ${t.progress !== undefined && !final(t) && html`<span>${Math.round(t.progress * 100)} %</span>`}<${Age} at=${sinceOf(t)}/></span>
    <//>`;
}
