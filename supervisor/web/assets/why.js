// Why a task does not move: links to what it waits for, and the words of the command.
import { html, useEffect, useState } from "./vendor-ui.js";
import { ask } from "./api.js";
import { tasks, status, questions, tick } from "./store.js";
import { Link, address, taskAddress, agentAddress } from "./route.js";
import { final, holds, lookOf } from "./states.js";
import { AgentBadge, Command, TaskBadge } from "./ui.js";
import { clip, count, short, visible, idWord, firstLine } from "./text.js";
import { reasonOf } from "./agents.js";

/** @param {{t: any}} props */
export function Why({ t }) {
  const [match, setMatch] = useState(/** @type {any[]|null} */ (null));
  tick.value;
  const waiting = t.state === "pending" && !t.waitsFor?.length;
  useEffect(() => { if (waiting && t.requirements) ask("match-agents", { taskId: t.id }).then((a) => setMatch(a.servers), () => setMatch([])); }, [t.id, t.state, waiting]);
  const id = idWord(t.id);
  const holder = status.value?.agents.find((/** @type {any} */ a) => a.name === t.assignedTo);
  const asked = questions.value.filter((q) => q.task === t.id || (q.agent === t.assignedTo && q.blocking && !q.task));
  return html`<div class="card why"><h2>${headline(t, holder, asked)}</h2>
    ${t.waitsFor?.length > 0 && html`<p>Waiting for:</p><ul class="plain">${t.waitsFor.slice(0, 100).map((/** @type {string} */ x) => html`<li key=${x}><${Chain} id=${x} depth=${0}/></li>`)}</ul>`}
    ${waiting && html`<${Candidates} t=${t} match=${match}/>`}
    ${holder && !final(t) && html`<p><${Link} to=${agentAddress(holder.name)}>${clip(holder.name, 60)}<//> is <${AgentBadge} state=${holder.state}/> ${reasonOf(holder)}</p>`}
    ${asked.map((q) => html`<p key=${q.id} class="t-amber">${clip(q.agent, 60)} asks: <${Link} to=${address("inbox", { q: q.id })}>${firstLine(q.question, 200)}<//></p>`)}
    <${Words} of=${t.id} about=${t}/><${Command} text=${`orchestrator why ${id}`}/></div>`;
}

/** The output of the command why, read again when what it is about changes. @param {{of: string, about: any}} props */
function Words({ of, about }) {
  const [words, setWords] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    ask("explain", { of }, abort.signal).then((a) => setWords(a.text), () => {});
    return () => abort.abort();
  }, [of, about]);
  return words && html`<pre>${visible(words, true)}</pre>`;
}

/** @param {any} t @param {any} holder @param {any[]} asked */
function headline(t, holder, asked) {
  if (holds(t)) return t.workspace.merge === "refused" ? "Done. The merge queue refused the branch." : "Done. The branch is in the merge queue.";
  if (final(t)) return `Ended: ${lookOf(t).word}.`;
  if (t.waitsFor?.length) return `Blocked by ${count(t.waitsFor.length, "task")}.`;
  if (t.state === "pending") return "Waiting for an agent that fits.";
  if (t.state === "plan_review") return "The plan needs your approval.";
  if (asked.length) return `Waiting for the answer to ${count(asked.length, "question")}.`;
  if (holder && holder.state !== "running") return `The agent is ${holder.state}.`;
  if (t.state === "verifying") return "The verify commands are running.";
  if (t.state === "in_review") return "Waiting for a review.";
  return t.state === "assigned" ? "The agent is notified and has not started." : "The agent is working on it.";
}

/** A dependency and what that waits for. @param {{id: string, depth: number}} props */
function Chain({ id, depth }) {
  const t = tasks.get(id);
  if (!t) return html`<${Link} to=${taskAddress(id)}>${short(id)}<//>`;
  return html`<${Link} to=${taskAddress(id)}>${clip(t.name, 100)}<//> <${TaskBadge} task=${t}/>${t.assignedTo && html` <span class="dim">${clip(t.assignedTo, 60)}</span>`}
    ${depth < 4 && (t.waitsFor?.length ?? 0) > 0 && html`<ul class="plain">${t.waitsFor?.slice(0, 20).map((x) => html`<li key=${x}><${Chain} id=${x} depth=${depth + 1}/></li>`)}</ul>`}`;
}

/** How each agent fits. @param {{t: any, match: any[]|null}} props */
function Candidates({ t, match }) {
  if (!t.requirements) {
    const caps = t.requiredCapabilities ?? [];
    if (!t.requiredRole && !caps.length) return html`<p>This task names no role, capability or agent, so it is not matched. Assign it by hand.</p>`;
    const fits = (status.value?.agents ?? []).filter((/** @type {any} */ a) => !t.requiredRole || a.role === t.requiredRole);
    return html`<p>Requires ${[t.requiredRole && "the role " + clip(t.requiredRole, 40), caps.length && "the capabilities " + clip(caps.join(", "), 200)].filter(Boolean).join(" and ")}.${t.requiredRole ? ` ${count(fits.length, "agent has", "agents have")} the role.` : ""}</p>`;
  }
  if (!match) return html`<p class="dim">Loading…</p>`;
  return html`<table class="simple"><thead><tr><th>Agent</th><th>Score</th><th>Why</th></tr></thead><tbody>${match.slice(0, 100).map((m) => html`<tr key=${m.server_name}>
    <td><${Link} to=${agentAddress(m.server_name)}>${clip(m.server_name, 60)}<//></td><td>${m.score < 0 ? "–" : m.score}</td><td class="dim">${clip((m.reasons ?? []).join(", "), 300)}</td></tr>`)}</tbody></table>`;
}
