// One task: what it is, how it stands, what can be done about it, and its story.
import { html, useEffect, useState } from "./vendor-ui.js";
import { ask, list } from "./api.js";
import { tasks, tick, onEvents, status, questions, refreshTask, useEvents } from "./store.js";
import { route, refine, Link, address, taskAddress, agentAddress } from "./route.js";
import { final, lookOf, mayRetry, sinceOf } from "./states.js";
import { Act, Age, Badge, Bar, Command, Empty, TaskBadge, confirm, note } from "./ui.js";
import { clip, clock, count, duration, lastLines, pretty, quoted, short, visible, idWord, firstLine } from "./text.js";
import { LogView } from "./log.js";
import { Plan } from "./inbox.js";
import { Why } from "./why.js";
import { Artifacts } from "./artifacts.js";
import { Changes } from "./changes.js";
import { Retry } from "./retry.js";

const tabs = [["summary", "Summary"], ["changes", "Changes"], ["timeline", "Timeline"], ["log", "Log"], ["why", "Why"]];

/** Reads a task in full, and again when an event is about it. @param {string} id */
export function useTask(id) {
  const [found, setFound] = useState(/** @type {any} */ (undefined));
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const read = () => {
      timer = 0;
      ask("get-task", { taskId: id }, abort.signal).then((a) => setFound(a.task), (e) => { if (!abort.signal.aborted) setFound((/** @type {any} */ old) => old ?? e); });
    };
    read();
    const off = onEvents((events) => { if (!timer && events.some((e) => e.task === id)) timer = window.setTimeout(read, 300); });
    return () => { abort.abort(); clearTimeout(timer); off(); };
  }, [id]);
  return found;
}

export function TaskPage() {
  const { query } = route.value;
  const id = query.id ?? "";
  const task = useTask(id);
  const tab = query.tab ?? "summary";
  if (task === undefined) return html`<p class="loading">Loading…</p>`;
  if (task instanceof Error) return html`<${Empty} title="The task cannot be shown" cli="orchestrator task ls"><p>${clip(task.message)}</p><//>`;
  return html`<div class=${"page" + (tab === "log" ? " fill" : "")}><${Head} t=${task} brief=${tab === "why"}/>
    <div class="tabs" role="tablist">${tabs.filter(([name]) => name !== "changes" || task.workspace).map(([name, word]) => html`<button type="button" role="tab" key=${name} aria-selected=${tab === name} onClick=${() => refine({ tab: name === "summary" ? undefined : name })}>${word}</button>`)}</div>
    ${tab === "summary" ? html`<${Summary} t=${task}/>` : tab === "timeline" ? html`<${Story} of="task" id=${task.id}/>` : tab === "log" ? html`<${Log} t=${task}/>` : tab === "changes" ? html`<${Changes} key=${task.id} id=${task.id} ended=${final(task)}/>` : html`<${Why} t=${task}/>`}</div>`;
}

/** The names of tasks, the first two of them. @param {string[]} ids */
const names = (ids) => html`${ids.slice(0, 2).map((id, i) => html`${i > 0 && ", "}<${Link} key=${id} to=${taskAddress(id)}>${clip(tasks.get(id)?.name ?? short(id), 60)}<//>`)}${ids.length > 2 && ` and ${ids.length - 2} more`}`;

/** A sentence about the state of a task. @param {{t: any}} props */
export function Sentence({ t }) {
  const look = lookOf(t);
  const who = t.assignedTo && html`<${Link} to=${agentAddress(t.assignedTo)}>${clip(t.assignedTo, 60)}<//>`;
  const far = t.progress !== undefined && !final(t) ? html`, ${Math.round(t.progress * 100)}%${t.message ? ": " + clip(t.message, 160) : ""}` : "";
  const took = t.endedAt && t.startedAt ? html`, took ${duration(Date.parse(t.endedAt) - Date.parse(t.startedAt))}` : "";
  return html`<p class="sentence"><${Badge} look=${look}/>
    <span>${t.state === "pending" ? (t.waitsFor?.length ? html`waiting for ${names(t.waitsFor)}` : "waiting for an agent") : who ? html`${final(t) ? "by" : "on"} ${who}` : ""}
    ${" "}${final(t) ? html`<${Age} at=${sinceOf(t)} long/> ago${took}` : html`for <${Age} at=${sinceOf(t)} long/>${far}`}</span></p>
    ${!final(t) && t.progress !== undefined && html`<${Bar} value=${t.progress}/>`}`;
}

/** The reason of a failure: its first line, and the end of the output below it. @param {{text: string}} props */
export function Reason({ text }) {
  const [first, ...rest] = text.trim().split("\n");
  return html`<div class="page reason"><p class="bad">${visible(first.slice(0, 1000))}</p>${rest.length > 0 && html`<pre class="output">${lastLines(rest)}</pre>`}</div>`;
}

/** @param {{t: any, brief: boolean}} props brief leaves out what the tab says */
function Head({ t, brief }) {
  const asks = questions.value.filter((q) => q.task === t.id);
  return html`<header class="page head-of-task"><h1><span>${clip(t.name, 400)}</span> <code class="dim">${short(t.id)}</code></h1>
    <${Sentence} t=${t}/>
    ${(t.error || t.reason) && final(t) && !brief && html`<${Reason} text=${t.error || t.reason}/>`}
    ${asks.map((q) => html`<p key=${q.id} class="t-amber">Needs your answer: <${Link} to=${address("inbox", { q: q.id })}>${firstLine(q.question, 200)}<//></p>`)}
    <${Actions} t=${t}/></header>`;
}

/** What is legal in the state of the task. @param {{t: any}} props */
function Actions({ t }) {
  const id = idWord(t.id);
  const [agent, setAgent] = useState("");
  const done = async (/** @type {string} */ words) => { note(words); await refreshTask(t.id); };
  const cancel = async () => {
    const cli = `orchestrator task cancel ${id}`;
    const reason = await confirm({ title: `Cancel “${clip(t.name, 80)}”?`, text: t.assignedTo ? `${clip(t.assignedTo, 60)} is asked to stop. Tasks that depend on this one may be cancelled as well.` : "Tasks that depend on this one may be cancelled as well.", yes: "Cancel task", cli, danger: true });
    if (reason === null) return;
    await ask("cancel-task", { taskId: t.id });
    await done(`Cancelled ${t.name}`);
  };
  const annotate = async () => {
    const text = await confirm({ title: "Add a note", input: "A note for everyone who reads the task", yes: "Add note", cli: `orchestrator task note ${id} TEXT` });
    if (text === null) return;
    await ask("add-note", { taskId: t.id, content: text });
    await done("Note added");
  };
  const open = ["pending", "assigned"].includes(t.state) && !t.waitsFor?.length;
  return html`<div class="row">
    ${mayRetry(t) && html`<${Retry} t=${t} kind="primary"/>`}
    ${open && html`<span class="row"><select aria-label="Agent" value=${agent} onChange=${(/** @type {any} */ e) => setAgent(e.target.value)}><option value="">Choose an agent</option>
        ${(status.value?.agents ?? []).map((/** @type {any} */ a) => html`<option key=${a.name} value=${a.name}>${clip(a.name, 40)}${a.tasks.length ? " (busy)" : ""}</option>`)}</select>
      <${Act} label="Assign" disabled=${!agent} cli=${`orchestrator task assign ${id} ${agent ? quoted(agent) : "AGENT"}`} run=${async () => { await ask("assign-task", { taskId: t.id, agent }); await done(`Assigned to ${agent}`); }}/></span>
      ${t.state === "pending" && t.requirements && html`<${Act} label="Assign the best" cli=${`orchestrator task assign --auto ${id}`} run=${async () => { const a = await ask("auto-assign", { taskId: t.id }); await done(`Assigned to ${a.server_name ?? a.task?.assignedTo ?? "an agent"}`); }}/>`}`}
    <${Act} label="Add a note" cli=${`orchestrator task note ${id} TEXT`} run=${annotate}/>
    ${!final(t) && html`<${Act} kind="danger" label="Cancel" cli=${`orchestrator task cancel ${id}`} run=${cancel}/>`}</div>`;
}

/** @param {{t: any}} props */
function Summary({ t }) {
  const [notes, setNotes] = useState(/** @type {any[]} */ ([]));
  useEffect(() => { ask("list-notes", { taskId: t.id }).then((a) => setNotes(a.notes)).catch(() => {}); }, [t]);
  const rows = [
    ["Type", clip(t.type, 80)], ["Role", t.requiredRole], ["Capabilities", (t.requiredCapabilities ?? []).join(", ")], ["Repository", t.targetRepo], ["Priority", t.priority], ["Workspace", t.workspace?.path], ["Branch", t.workspace?.branch],
    ["Attempts", t.attempts], ["Submitted by", t.submittedBy], ["Changed by", t.changedBy === t.submittedBy ? null : t.changedBy], ["Created", clock(t.createdAt)], ["Started", clock(t.startedAt)], ["Ended", clock(t.endedAt)],
    ["Usage", t.used && `${(t.used.input ?? 0).toLocaleString("en-US")} tokens in, ${(t.used.output ?? 0).toLocaleString("en-US")} out${t.used.cost ? `, ${t.used.cost} ${t.used.currency ?? ""}` : ""}`],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<div class="summary">
    <section class="page">
      ${t.state === "plan_review" && html`<div class="card"><h2>Plan to approve</h2><${Plan} key=${t.id} task=${t}/></div>`}
      ${t.description && html`<${Doc} title="Description" value=${t.description}/>`}
      ${t.acceptanceCriteria?.length > 0 && html`<div class="card"><h2>Done when</h2><ul>${t.acceptanceCriteria.map((/** @type {string} */ c, /** @type {number} */ i) => html`<li key=${i}>${clip(c, 500)}</li>`)}</ul></div>`}
      ${t.result !== null && t.result !== undefined && html`<${Doc} title="Result" value=${t.result}/>`}
      <${Artifacts} key=${"a" + t.id} t=${t}/>
      ${t.plan !== undefined && t.state !== "plan_review" && html`<${Doc} title="Plan" value=${t.plan}/>`}
      ${t.help && html`<div class="card"><h2>Asked a person</h2><p class="pre">${visible(t.help.question, true)}</p>${t.help.answer !== undefined && html`<p><b>Answer:</b> ${visible(t.help.answer, true)}</p>`}</div>`}
      ${t.payload !== undefined && html`<${Doc} title="Payload" value=${t.payload}/>`}
      ${t.structured_spec !== undefined && html`<${Doc} title="Specification" value=${t.structured_spec} folded/>`}
      ${notes.length > 0 && html`<div class="card"><h2>Notes</h2>${notes.map((n) => html`<div key=${n.id}><p class="dim"><small>${clip(n.author, 60)}, ${clock(n.created_at)}${n.urgent ? ", urgent" : ""}</small></p><p class="pre">${visible(n.content, true)}</p></div>`)}</div>`}
    </section>
    <aside class="page"><div class="card"><dl class="pairs">${rows.map(([word, value]) => html`<dt key=${word}>${word}</dt><dd>${clip(value, 200)}</dd>`)}</dl></div>
      <${Needs} t=${t}/>
      <div class="card"><h2>In a terminal</h2><${Command} text=${`orchestrator task show ${idWord(t.id)}`}/><${Command} text=${`orchestrator why ${idWord(t.id)}`}/></div></aside></div>`;
}

/** @param {{title: string, value: any, folded?: boolean}} props */
const Doc = ({ title, value, folded }) => html`<details class="card" open=${!folded}><summary><h2>${title}</h2></summary>
  ${typeof value === "string" ? html`<p class="pre">${visible(value, true)}</p>` : typeof value?.summary !== "string" ? html`<pre>${pretty(value)}</pre>`
    : html`<p class="pre">${visible(value.summary, true)}</p><details><summary class="dim">Show all</summary><pre>${pretty(value)}</pre></details>`}</details>`;

/** What it needs, and what needs it. @param {{t: any}} props */
function Needs({ t }) {
  tick.value;
  const after = [...tasks.values()].filter((o) => o.dependencies?.includes(t.id));
  const line = (/** @type {string} */ id) => { const o = tasks.get(id); return html`<li key=${id}><${Link} to=${taskAddress(id)}>${o ? clip(o.name, 80) : short(id)}<//> ${o && html`<${TaskBadge} task=${o}/>`}</li>`; };
  if (!t.dependencies?.length && !after.length) return null;
  return html`<div class="card">${t.dependencies?.length > 0 && html`<h2>Needs</h2><ul class="plain">${t.dependencies.slice(0, 50).map(line)}</ul>`}
    ${after.length > 0 && html`<h2>Needed by</h2><ul class="plain">${after.slice(0, 50).map((o) => line(o.id))}</ul>`}</div>`;
}

/** The first line of an event, with a link on the id of its task. @param {{e: any}} props */
export function EventText({ e }) {
  const text = firstLine(e.text, 240), id = e.task ? short(e.task) : "", at = id ? text.indexOf(id) : -1;
  const link = id && html`<${Link} to=${taskAddress(e.task)}>${id}<//>`;
  return at < 0 ? html`${link}${link && " "}${text}` : html`${text.slice(0, at)}${link}${text.slice(at + id.length)}`;
}

/** The events of a task, or of an agent. @param {{of: "task"|"agent", id: string}} props */
export function Story({ of, id }) {
  const since = of === "agent" ? Math.max(0, (status.value?.seq ?? 0) - 20_000) : 0; // an agent may have very many
  const [events, trouble] = useEvents((signal) => list("events", { [of]: id, since }, signal), (e) => e[of] === id, [of, id], 4000);
  if (trouble) return html`<p class="bad">${clip(trouble)}</p>`;
  if (!events) return html`<p class="loading">Loading…</p>`;
  if (!events.length) return html`<p class="dim">No events yet.</p>`;
  const start = Date.parse(events[0].at);
  return html`<ol class="story">${events.slice(-2000).map((e) => html`<li key=${e.seq} class=${storyTone(e.kind)}><details><summary>
      <time title=${clip(e.at)}>${clock(e.at)}</time><span class="dim mono after">+${duration(Date.parse(e.at) - start)}</span><b>${clip(e.kind, 60)}</b>
      <span class="what">${of === "task" && e.agent && html`<${Link} to=${agentAddress(e.agent)}>${clip(e.agent, 60)}<//> `}${of === "task" ? firstLine(e.text, 240) : html`<${EventText} e=${e}/>`}</span></summary>
    ${e.text?.includes("\n") && html`<pre class="output">${lastLines(e.text.split("\n").slice(1))}</pre>`}<pre>${pretty(e)}</pre></details></li>`)}</ol><${Command} text=${of === "task" ? `orchestrator events --task ${idWord(id)}` : `orchestrator events --agent ${quoted(id)}`}/>`;
}

const storyTone = (/** @type {string} */ kind) => /failed|trouble|overdue|deadline|requeued|refused|gave_up/.test(kind) ? "t-red" : /help|question|planned/.test(kind) ? "t-amber" : /done/.test(kind) ? "t-green" : /started|assigned/.test(kind) ? "t-blue" : "t-dim";

/** The output of its agent while it worked. @param {{t: any}} props */
function Log({ t }) {
  const from = t.assignedAt ?? t.startedAt;
  if (!t.assignedTo || !from) return html`<p class="dim">No agent has worked on this task yet.</p>`;
  return html`<${LogView} key=${t.assignedTo + (t.endedAt ?? "")} agent=${t.assignedTo} from=${from} until=${t.endedAt && new Date(Date.parse(t.endedAt) + 1000).toISOString()}/>`;
}
