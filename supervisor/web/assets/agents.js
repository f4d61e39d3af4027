// The agents: what each does, how often it was restarted and why, and what it uses.
import { html, useEffect, useMemo } from "./vendor-ui.js";
import { status, refreshStatus, questions } from "./store.js";
import { route, refine, Link, agentAddress, taskAddress, address } from "./route.js";
import { AgentBadge, Avatar, Age, Bar, Empty } from "./ui.js";
import { clip, bytes, brief, count } from "./text.js";
import { useKeys } from "./keys.js";

/** Reads the status every few seconds while a page shows figures of agents. */
export function useFreshStatus() {
  useEffect(() => {
    refreshStatus();
    const timer = setInterval(() => document.hidden || refreshStatus(), 3000);
    return () => clearInterval(timer);
  }, []);
}

/** Returns why an agent is in its state, in words. @param {any} a */
export function reasonOf(a) {
  const parts = [];
  if (a.state === "backoff" && a.next_start_ms) parts.push(`starts in ${brief(a.next_start_ms)}`);
  if (a.reason) parts.push(a.reason);
  else if (a.last_exit && a.state !== "running") parts.push(a.last_exit);
  if (a.activity?.limited_until) parts.push(`limited${a.activity.limited_by ? ": " + a.activity.limited_by : ""}`);
  else if (a.activity?.what && a.state === "running") parts.push(a.activity.what);
  return clip(parts.join(" · "), 200);
}

export function Agents() {
  useFreshStatus();
  const { query } = route.value;
  useKeys({ f: () => /** @type {HTMLElement|null} */ (document.querySelector("#filter"))?.focus() });
  const all = status.value?.agents ?? [];
  const found = useMemo(() => all.filter((/** @type {any} */ a) => (!query.text || a.name.toLowerCase().includes(query.text.toLowerCase())) && (!query.state || a.state === query.state)), [all, query]);
  if (!status.value) return html`<p class="loading">Loading…</p>`;
  if (!all.length) return html`<${Empty} title="No agents" cli="orchestrator help config"><p>Declare agents in the configuration:</p><//>`;
  const states = [...new Set(all.map((/** @type {any} */ a) => a.state))];
  const running = all.filter((/** @type {any} */ a) => a.state === "running").length;
  return html`<div class="page"><div class="bar"><h1>Agents <small>${running} of ${count(all.length, "agent")} running</small></h1>
    <input id="filter" type="search" placeholder="Filter" aria-label="Filter by name" value=${query.text ?? ""} onInput=${(/** @type {any} */ e) => refine({ text: e.target.value })}/>
    <select aria-label="State" value=${query.state ?? ""} onChange=${(/** @type {any} */ e) => refine({ state: e.target.value })}><option value="">All states</option>${states.map((s) => html`<option key=${s} value=${s}>${s}</option>`)}</select></div>
    <div class="table still" role="table" aria-label="Agents"><div class="cells head of-agents" role="row">
      ${["Agent", "State", "Task", "Restarts", "Up", "CPU time", "Memory", "Mailbox"].map((w, i) => html`<span key=${w} role="columnheader" class=${i > 2 ? "mid num-cell" + (i > 4 ? " far" : "") : ""}>${w}</span>`)}</div>
      ${found.map((/** @type {any} */ a) => html`<${Row} key=${a.name} a=${a}/>`)}</div>
    ${!found.length && html`<p class="dim">No agents match the filter.</p>`}</div>`;
}

/** @param {{a: any}} props */
function Row({ a }) {
  const asks = questions.value.filter((q) => q.agent === a.name).length;
  const task = a.tasks[0];
  const why = reasonOf(a);
  return html`<div class="cells of-agents" role="row">
    <span role="cell" class="with"><${Avatar} name=${a.name}/><${Link} to=${agentAddress(a.name)} class="strong" title=${clip(a.description)}>${clip(a.name, 60)}<//>${a.host && html` <small class="dim">on ${clip(a.host, 40)}</small>`}</span>
    <span role="cell" class="two"><${AgentBadge} state=${a.state}/>${asks > 0 ? html` <${Link} class="t-amber" to=${address("inbox")}>asks you<//>` : why && html`<small class="dim" title=${why}>${why}</small>`}</span>
    <span role="cell" class="two">${task ? html`<${Link} to=${taskAddress(task.id)}>${clip(task.name, 90)}<//>${a.tasks.length > 1 && html` <small class="dim">and ${a.tasks.length - 1} more</small>`}<${Bar} value=${task.progress || undefined}/>` : html`<span class="dim">–</span>`}</span>
    <span role="cell" class=${"mid num-cell" + (a.restarts ? " t-amber" : " dim")} title=${a.last_exit ? "last exit: " + clip(a.last_exit) : ""}>${a.restarts}</span>
    <span role="cell" class="mid num-cell dim">${a.started_at && a.up_ms ? html`<${Age} at=${a.started_at}/>` : "–"}</span>
    <span role="cell" class="mid far num-cell dim">${a.pid ? (a.cpu_ms / 1000).toFixed(1) + " s" : "–"}</span><span role="cell" class="mid far num-cell dim">${a.rss_bytes ? bytes(a.rss_bytes) : "–"}</span>
    <span role="cell" class=${"mid far num-cell" + (a.mailbox.messages ? " t-amber" : " dim")} title=${bytes(a.mailbox.unread) + " unread in its stdin"}>${a.mailbox.messages}</span></div>`;
}
