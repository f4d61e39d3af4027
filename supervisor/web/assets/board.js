// The board: tasks by their states. The table has the same filters.
import { html, useMemo, signal } from "./vendor-ui.js";
import { loaded, loose, parts, questions, requests, status, tasks, tick } from "./store.js";
import { address, route, refine, Link, taskAddress } from "./route.js";
import { groups, groupOf, lookOf, sinceOf, final, holds, mayRetry } from "./states.js";
import { Icon, Avatar, Age, Bar, Empty } from "./ui.js";
import { clip, short, count, duration, firstLine } from "./text.js";
import { Virtual } from "./virtual.js";
import { useKeys, overlay } from "./keys.js";
import { mayAct } from "./api.js";
import { AddButton } from "./add.js";
import { TaskTable } from "./table.js";
import { Retry } from "./retry.js";

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
  if (!all.length && !loose.value.length) return html`<${Empty} title="No tasks yet" cli='orchestrator task add "Say hello"'><p>Agents and people create tasks. Add the first one:</p><${AddButton}/><//>`;
  return html`<div class="page fill"><${Filters} query=${query} all=${all} n=${found.length} table=${table}/>
    ${table ? html`<${TaskTable} tasks=${found} query=${query}/>` : html`<${Columns} tasks=${found} query=${query}/>`}</div>`;
}

/** @param {{query: Record<string, string>, all: Task[], n: number, table: boolean}} props */
function Filters({ query, all, n, table }) {
  const agents = status.value?.agents ?? [];
  const repos = useMemo(() => [...new Set(all.map((t) => t.targetRepo).filter(Boolean))].sort(), [all]);
  const any = query.text || query.agent || query.repo || query.state;
  const choose = (/** @type {string} */ name) => (/** @type {any} */ e) => refine({ [name]: e.target.value || undefined });
  return html`<div class="bar tools-of-board"><h1>Board <small>${any ? `${n} of ${count(all.length, "task")}` : count(all.length, "task")}</small></h1>
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
    /** @type {Record<string, any[]>} */
    const found = Object.fromEntries(groups.map((g) => [g.id, []]));
    for (const t of tasks) found[groupOf(t)].push(t);
    for (const id of ["done", "failed", "cancelled"]) found[id].sort((a, b) => (sinceOf(a) < sinceOf(b) ? 1 : -1));
    found.you.push(...loose.value.filter((q) => !query.repo && (!query.agent || q.agent === query.agent) && (!query.text || q.question.toLowerCase().includes(query.text.toLowerCase()))));
    return found;
  }, [tasks, query, loose.value, tick.value]);
  const fallback = ["you", "running", "review", "pending", "blocked", "failed", "done"].find((id) => by[id].length) ?? "running";
  const tab = query.tab ?? fallback;
  return html`<div class="tabs only-small" role="tablist">${groups.map((g) => html`<button type="button" role="tab" key=${g.id} aria-selected=${g.id === tab} onClick=${() => refine({ tab: g.id })}>${g.word} ${by[g.id].length}</button>`)}</div>
    <div class="board">${groups.map((g) => html`<${Column} key=${g.id} group=${g} tasks=${by[g.id]} small=${g.id === tab}/>`)}</div>`;
}

/** States that the column does not tell. */
const spoken = new Set(["assigned", "planning", "plan_review"]);
const rowHeight = 92; // of a card and the gap below it, where there are many
const few = 50; // tasks of a column whose cards are as high as their texts

/** @param {{group: any, tasks: any[], small: boolean}} props */
const Column = ({ group, tasks, small }) => html`<section class=${"column" + (small ? "" : " wide") + (tasks.length ? "" : " thin")} aria-label=${group.word}>
    <header title=${group.help} class=${"t-" + group.tone}><${Icon} name=${group.icon}/><h2>${group.word}</h2><span class="n">${tasks.length}</span></header>
    ${tasks.length > few ? html`<${Virtual} items=${tasks} height=${rowHeight} label=${group.word} row=${one}/>`
      : tasks.length > 0 && html`<div class="virtual few" role="list" aria-label=${group.word} tabindex="0">${tasks.map(one)}</div>`}</section>`;

/** @param {any} t a task, or a question */
const one = (t) => t.question === undefined ? html`<${Card} key=${t.id} t=${t} lit=${lit.value.has(t.id)}/>` : html`<${Asked} key=${"?" + t.id} q=${t}/>`;

/** A question that no task in the column is about. @param {{q: any}} props */
const Asked = ({ q }) => html`<div class="slot" role="listitem"><${Link} class="task" to=${address("inbox", { q: q.id })}><span class="name">${firstLine(q.question, 160)}</span>
    <span class="meta"><span class="of"><span class="who"><${Avatar} name=${q.agent}/> ${clip(q.agent, 60)}</span><code>${clip(q.id, 24)}</code></span><span class="since">for <${Age} at=${q.askedAt}/></span></span><//></div>`;

/** The line below the name: what the task waits for, what it does, or how it ended. @param {{t: Task, look: any}} props */
function Line({ t, look }) {
  const part = final(t) ? undefined : parts.value.get(t.id);
  const asked = look.group === "you" ? questions.value.find((q) => q.task === t.id || q.task === part?.id) : undefined;
  const line = (/** @type {string} */ words, tone = "dim") => html`<span class=${"under t-" + tone}>${words}</span>`;
  if (asked) return line(firstLine(asked.question, 160), "amber");
  if (part) return line(`${clip(part.assignedTo ?? "its part", 40)}: ${lookOf(part).word}`);
  const waits = t.waitsFor ?? [];
  if (waits.length > 0 && !final(t)) return line(`blocked by ${clip(tasks.get(waits[0])?.name ?? short(waits[0]), 80)}${waits.length > 1 ? ` and ${waits.length - 1} more` : ""}`);
  if (t.state === "cancelled" && t.reason) return line(firstLine(t.reason, 160));
  if (t.state === "failed" && t.error) return line(firstLine(t.error, 160), "red");
  if (t.progress !== undefined && !final(t)) return html`<span class="under far"><${Bar} value=${t.progress}/> ${Math.round(t.progress * 100)}%</span>`;
  if (holds(t)) return line(look.word, look.tone);
  if (t.state === "done" && t.startedAt && t.endedAt) return line(`took ${duration(Date.parse(t.endedAt) - Date.parse(t.startedAt))}`);
  const asks = [t.requiredRole, t.targetRepo, ...(t.requiredCapabilities ?? [])].filter(Boolean);
  if (!t.assignedTo && asks.length > 0) return line(`requires ${clip(asks.join(", "), 100)}`);
  return (spoken.has(t.state) || look.group === "review") && line(look.word, look.tone);
}

/** @param {{t: Task, lit: boolean}} props */
function Card({ t, lit: bright }) {
  const look = lookOf(t);
  const waits = t.waitsFor?.length ?? 0;
  const over = () => { if (waits) lit.value = new Set(t.waitsFor); };
  const out = () => { if (lit.value.size) lit.value = new Set(); };
  return html`<div class="slot" role="listitem"><${Link} class=${"task" + (bright ? " lit" : "")} title=${clip(t.name)} to=${taskAddress(t.id)} onMouseEnter=${over} onMouseLeave=${out} onFocus=${over} onBlur=${out}>
    <span class="name">${clip(t.name, 160)}</span><${Line} t=${t} look=${look}/>
    <span class="meta"><span class="of">${t.assignedTo && html`<span class="who"><${Avatar} name=${t.assignedTo}/> ${clip(t.assignedTo, 60)}</span>`}<code>${short(t.id)}</code></span>
      <span class="since">${final(t) ? html`<${Age} at=${sinceOf(t)}/> ago` : html`for <${Age} at=${sinceOf(t)}/>`}</span></span>
    <//>${mayRetry(t) && html`<${Retry} t=${t}/>`}</div>`;
}
