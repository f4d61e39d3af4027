// The inbox: questions and plans that wait for a person, the next deadline first.
import { html, useState, useEffect, useRef } from "./vendor-ui.js";
import { ask, mayAct } from "./api.js";
import { questions, plans, loaded, questionsLoaded, tasks, refreshQuestions, refreshTask } from "./store.js";
import { route, refine, Link, go, taskAddress, agentAddress } from "./route.js";
import { Act, Avatar, Age, Icon, Empty, Command, copy, now, note } from "./ui.js";
import { clip, duration, clock, quoted, short, visible, pretty, count, idWord, firstLine } from "./text.js";
import { useKeys } from "./keys.js";

/** @typedef {{id: string, label: string, value: string, kind?: string}} Choice */
/** @typedef {{id: string, agent: string, task?: string, text: string, at: string, deadline?: string, choices: Choice[], free: boolean, plan?: any, q?: any}} Item */

/** @returns {Item[]} */
function items() {
  /** @type {Item[]} */
  const all = questions.value.map((q) => ({
    id: q.id, agent: q.agent, task: q.task, text: q.question, at: q.askedAt, deadline: q.deadline, q, free: !q.options.length && !q.permission,
    choices: q.permission ? q.permission.choices.map((/** @type {any} */ c) => ({ id: c.id, label: c.label || c.id, value: c.id, kind: c.kind }))
      : q.options.map((/** @type {any} */ o) => ({ id: o.value, label: o.label, value: o.value })),
  }));
  for (const t of plans.value) {
    all.push({ id: "plan:" + t.id, agent: t.assignedTo ?? "", task: t.id, text: `Plan for “${t.name}”`, at: t.assignedAt ?? t.createdAt, free: false, choices: [], plan: t });
  }
  const due = (/** @type {Item} */ i) => (i.deadline ? Date.parse(i.deadline) : Infinity);
  return all.sort((a, b) => due(a) - due(b) || (a.at < b.at ? -1 : 1));
}

export function Inbox() {
  const all = items();
  const selected = Math.max(0, all.findIndex((i) => i.id === route.value.query.q));
  const select = (/** @type {number} */ i) => { if (all[i]) refine({ q: all[i].id }); };
  const open = all[selected];
  useKeys({
    j: () => select(Math.min(all.length - 1, selected + 1)), k: () => select(Math.max(0, selected - 1)),
    o: () => open?.task && go(taskAddress(open.task)),
    Enter: () => /** @type {HTMLElement|null} */ (document.querySelector(".asked.open textarea"))?.focus(),
    ...Object.fromEntries([..."123456789"].map((key) => [key, () => /** @type {HTMLElement|null} */ (document.querySelectorAll(".asked.open [data-choice]")[Number(key) - 1])?.click()])),
  });
  if (!questionsLoaded.value || (!all.length && !loaded.value)) return html`<p class="loading">Loading…</p>`;
  if (!all.length) return html`<${Empty} title="Nothing needs you" cli="orchestrator inbox watch"><p>Questions from agents and plans to approve appear here. To see them in a terminal:</p><//>`;
  return html`<div class="page narrow"><div class="bar"><h1>Inbox <small>${count(all.length, "question")}</small></h1></div>
    <ol class="inbox">${all.map((item, i) => html`<${Asked} key=${item.id} item=${item} open=${i === selected} onOpen=${() => select(i)} next=${all[i + 1] ?? all[i - 1]}/>`)}</ol></div>`;
}

/** @param {{item: Item, open: boolean, onOpen: () => void, next?: Item}} props */
function Asked({ item, open, onOpen, next }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => { if (open) box.current?.scrollIntoView({ block: "nearest" }); }, [open]);
  const task = item.task ? tasks.get(item.task) : undefined;
  return html`<li ref=${box} class=${"asked" + (open ? " open" : "")}>
    <button type="button" class="head" aria-expanded=${open} onClick=${onOpen}>
      <${Avatar} name=${item.agent || "?"}/>
      <span class="text">${open ? visible(item.text, true) : firstLine(item.text, 160)}</span><${Left} item=${item}/></button>
    ${open && html`<div class="body">
      <p class="dim"><${Link} to=${agentAddress(item.agent)}>${clip(item.agent, 60)}<//> asked <${Age} at=${item.at} long/> ago and ${item.q && !item.q.blocking ? "continues" : "waits"}
        ${item.task && html` · <${Link} to=${taskAddress(item.task)}><code>${short(item.task)}</code> ${clip(task?.name ?? "", 80)}<//>`} · <code>${clip(item.plan ? "plan" : item.id, 40)}</code></p>
      ${item.q?.permission && html`<${Permission} p=${item.q.permission}/>`}
      ${item.q?.context !== undefined && html`<details><summary>Context</summary><pre>${pretty(item.q.context)}</pre></details>`}
      ${item.plan ? html`<${Plan} task=${item.plan} next=${next}/>` : html`<${Answers} item=${item} next=${next}/>`}</div>`}</li>`;
}

/** The time that is left. @param {{item: Item}} props */
function Left({ item }) {
  if (!item.deadline) return html`<span class="left dim"><${Age} at=${item.at}/></span>`;
  const left = Date.parse(item.deadline) - now.value;
  const share = left / (Date.parse(item.deadline) - Date.parse(item.at));
  return html`<span class=${"left " + (left < 60000 ? "t-red" : left < 300000 ? "t-amber" : "dim")} title=${"until " + clock(item.deadline)}>
    ${left > 0 ? duration(left).replace(/ \d\d s$/, left > 600000 ? "" : "$&") + " left" : "no time left"}<progress max="1" value=${Math.max(0, share)} aria-hidden="true"></progress></span>`;
}

/** @param {{p: any}} props */
const Permission = ({ p }) => html`<div class="permission"><p><b>${clip(p.tool, 120)}</b>${p.reason && html` — ${clip(p.reason, 500)}`}</p>
  <pre>${typeof p.input?.command === "string" && Object.keys(p.input).length <= 2 ? visible(p.input.command, true) : pretty(p.input)}</pre>
  ${p.paths?.length > 0 && html`<p class="dim">Concerns ${p.paths.map((/** @type {string} */ x, /** @type {number} */ i) => html`${i > 0 && ", "}<code>${clip(x, 200)}</code>`)}</p>`}</div>`;

/** @param {{item: Item, next?: Item}} props */
function Answers({ item, next }) {
  const [text, setText] = useState("");
  const cli = (/** @type {string} */ value, more = "") => `orchestrator inbox answer ${quoted(item.id)} ${quoted(value)}${more}`;
  const message = item.q.permission && text.trim() ? text.trim() : undefined;
  const answer = async (/** @type {string} */ value, /** @type {string} */ label) => {
    await ask("answer-question", { questionId: item.id, answer: value, ...(message && { message }) });
    note(`Answered ${item.agent}: ${label}`);
    refine({ q: next?.id });
    await refreshQuestions();
  };
  if (!mayAct()) return html`<p class="dim">${item.choices.length > 0 && "Answers: " + item.choices.map((c) => clip(c.label, 200)).join(" · ") + ". "}Only an operator can answer.</p>`;
  const send = () => (text.trim() ? answer(text, text) : Promise.resolve());
  return html`${item.choices.length > 0 && html`<div class="choices">${item.choices.map((c, i) => html`<div data-row key=${c.id}>
      <${Choose} label=${clip(c.label, 400)} hint=${i < 9 ? String(i + 1) : ""} cli=${cli(c.value, message ? " -m " + quoted(message) : "")} kind=${c.kind === "deny" ? "danger" : ""} run=${() => answer(c.value, c.label)}/></div>`)}</div>`}
    ${(item.free || item.q.permission) && html`<form class="free" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
      <label>${item.free ? "Your answer" : "Message to the agent (optional)"}
        <textarea rows=${item.free ? 3 : 1} value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}
          onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (item.free && e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); /** @type {any} */ (e.target).form.querySelector(".act button")?.click(); } }}></textarea></label>
      ${item.free && html`<div class="row"><${Act} kind="primary" label=${next ? "Answer and next" : "Answer"} disabled=${!text.trim()} cli=${cli(text.trim() || "TEXT")} run=${send}/><span class="dim">Enter to send, Shift+Enter for a new line</span></div>`}
    </form>`}`;
}

/** A big button of one option. @param {any} props */
function Choose({ label, hint, cli, kind, run }) {
  const [busy, setBusy] = useState(false);
  const press = () => { setBusy(true); run().catch((/** @type {Error} */ e) => note(e.message, true)).finally(() => setBusy(false)); };
  return html`<button type="button" data-choice class=${"choice " + kind} title=${cli} aria-busy=${busy} disabled=${busy} onClick=${press}>${hint && html`<kbd>${hint}</kbd>`}<span>${label}</span></button>
    <${Copy} cli=${cli}/>`;
}

/** @param {{cli: string}} props */
const Copy = ({ cli }) => html`<button type="button" class="quiet" title=${"Copy: " + cli} aria-label=${"Copy the command " + cli} onClick=${() => copy(cli)}><${Icon} name="copy"/><span class="wide"> command</span></button>`;

/** @param {{task: any, next?: Item}} props */
export function Plan({ task, next }) {
  const [plan, setPlan] = useState(task.plan);
  const [text, setText] = useState("");
  useEffect(() => { ask("get-task", { taskId: task.id }).then((a) => setPlan(a.task.plan)).catch((e) => setPlan("The plan cannot be read: " + e.message)); }, [task.id]);
  const id = idWord(task.id);
  const decide = async (/** @type {string} */ operation, /** @type {object} */ more, /** @type {string} */ words) => {
    await ask(operation, { taskId: task.id, ...more });
    note(words);
    if (next) refine({ q: next.id });
    await refreshTask(task.id);
  };
  return html`<pre class="plan">${plan === undefined ? "Loading…" : pretty(plan)}</pre>
    ${mayAct() && html`<div class="choices"><div data-row>
      <${Choose} hint="1" label="Approve the plan" cli=${`orchestrator task approve-plan ${id}`} run=${() => decide("approve-plan", {}, `Approved the plan for ${task.name}`)}/></div></div>
    <form class="free" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}><label>Feedback
      <textarea rows="2" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea></label>
      <div class="row"><${Act} label="Send back" disabled=${!text.trim()} cli=${`orchestrator task revise-plan ${id} -m ${quoted(text.trim() || "TEXT")}`}
        run=${() => decide("revise-plan", { feedback: text }, `Sent back the plan for ${task.name}`)}/></div></form>`}
    ${!mayAct() && html`<${Command} text=${`orchestrator task show ${id}`}/>`}`;
}
