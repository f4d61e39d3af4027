// Sessions and their reviews: members left, the conversation in the middle, findings right.
import { html, useEffect, useState } from "./vendor-ui.js";
import { ask } from "./api.js";
import { onEvents, questions } from "./store.js";
import { route, address, Link, agentAddress, taskAddress } from "./route.js";
import { Age, Avatar, Badge, Command, Empty } from "./ui.js";
import { clip, clock, count, pretty, quoted, short, visible, wordsOf } from "./text.js";
import { final, taskStates } from "./states.js";
import { Changes } from "./changes.js";

/** @type {Record<string, {word: string, tone: string, icon: string}>} */
const verdicts = {
  approved: { word: "approved", tone: "green", icon: "check" }, changes_requested: { word: "asked for changes", tone: "amber", icon: "ask" },
  rejected: { word: "rejected", tone: "red", icon: "cross" }, none: { word: "no verdict", tone: "dim", icon: "minus" },
};
const refused = { word: "refused", tone: "red", icon: "cross" };
const openReview = { word: "under review", tone: "violet", icon: "eye" };

/** Reads again when sessions or reviews change. @param {(signal: AbortSignal) => Promise<any>} read @param {any[]} deps */
function useFresh(read, deps) {
  const [found, setFound] = useState(/** @type {any} */ (undefined));
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const run = () => { timer = 0; read(abort.signal).then(setFound, (e) => { if (!abort.signal.aborted) setFound(e); }); };
    run();
    const off = onEvents((batch) => { if (!timer && batch.some((e) => e.kind.startsWith("session.") || e.kind.startsWith("review."))) timer = window.setTimeout(run, 400); });
    return () => { abort.abort(); clearTimeout(timer); off(); };
  }, deps);
  return found;
}

export function Reviews() {
  const found = useFresh(async (signal) => ({ ...(await ask("list-sessions", {}, signal)), ...(await ask("list-reviews", {}, signal)) }), []);
  if (!found) return html`<p class="loading">Loading…</p>`;
  if (found instanceof Error) return html`<p class="bad">${clip(found.message)}</p>`;
  if (!found.sessions.length) return html`<${Empty} title="No sessions" cli="orchestrator help session"><p>In a session, an architect, developers and reviewers work together by fixed rules. To learn more:</p><//>`;
  const reviews = [...found.reviews].reverse();
  return html`<div class="page"><div class="bar"><h1>Reviews <small>${count(found.sessions.length, "session")}</small></h1><span class="push"><${Command} text="orchestrator review ls"/></span></div>
    <div class="sessions">${found.sessions.map((/** @type {any} */ s) => html`<${Link} key=${s.session_id} class="card session" to=${address("session", { id: s.session_id })}>
      <div class="row"><h2>${clip(s.session_id, 80)}</h2><span class="dim">${clip(s.state, 20)}</span></div>
      <div class="row">${s.members.slice(0, 8).map((/** @type {any} */ m) => html`<span key=${m.agent_id} class="row" title=${clip(m.agent_type)}><${Avatar} name=${m.agent_id}/>${clip(m.agent_id, 24)}</span>`)}</div>
      <p class="dim">${s.open_tasks} of ${count(s.tasks, "task")} open, ${count(s.open_reviews, "open review")}, ${count(s.messages, "message")}${s.refused ? `, ${s.refused} refused` : ""}</p><//>`)}</div>
    ${reviews.length > 0 && html`<h2>Latest reviews</h2><table class="simple card"><thead><tr><th>Task</th><th>Round</th><th>Reviewer</th><th>Verdict</th><th>Findings</th><th>Asked</th></tr></thead>
      <tbody>${reviews.slice(0, 200).map((r) => html`<tr key=${r.review_id}><td><${Link} to=${taskAddress(r.task_id)}><code>${short(r.task_id)}</code><//> in <${Link} to=${address("session", { id: r.session_id })}>${clip(r.session_id, 40)}<//></td><td>${r.iteration}</td><td>${clip(r.reviewer, 40)}</td>
        <td><${Badge} look=${verdicts[r.verdict] ?? openReview}/></td><td>${r.findings.length}</td><td class="dim"><${Age} at=${r.requested_at}/> ago</td></tr>`)}</tbody></table>`}</div>`;
}

export function SessionPage() {
  const id = route.value.query.id ?? "";
  const s = useFresh(async (signal) => {
    const all = /** @type {any[]} */ ([]);
    let page, after = 0;
    do {
      page = await ask("get-session", { session_id: id, limit: 1000, after }, signal);
      all.push(...page.messages);
      after = page.next;
    } while (page.more && all.length < 5000);
    return { ...page, messages: all };
  }, [id]);
  const [task, setTask] = useState("");
  const [changes, setChanges] = useState(false);
  if (!s) return html`<p class="loading">Loading…</p>`;
  if (s instanceof Error) return html`<${Empty} title="The session cannot be shown" cli="orchestrator session ls"><p>${clip(s.message)}</p><//>`;
  const shown = s.messages.filter((/** @type {any} */ m) => !task || m.correlation_id === task || m.payload?.task_id === task);
  const findings = s.tasks.flatMap((/** @type {any} */ t) => (t.findings ?? []).map((/** @type {any} */ f) => ({ ...f, task: t })));
  const chosen = task || (s.tasks.length === 1 ? s.tasks[0].task_id : "");
  return html`<div class="page"><div class="bar"><h1>${clip(s.session_id, 80)}</h1><span class="dim">${clip(s.state, 20)}, at most ${count(s.max_iterations, "review")} of a task, then ${clip(String(s.on_max).replaceAll("_", " "), 30)}</span>
      <span class="push"><${Command} text=${`orchestrator session show ${quoted(s.session_id)}`}/></span></div>
    <div class="three">
      <aside class="page"><div class="card"><h2>Members</h2><ul class="plain">${s.standing.map((/** @type {any} */ m) => html`<li key=${m.agent_id} class="row"><${Avatar} name=${m.agent_id}/><span><${Link} to=${agentAddress(m.agent_id)}>${clip(m.agent_id, 40)}<//> <small class="dim">${clip(m.agent_type, 20)}, ${clip(m.status, 20)}</small></span></li>`)}</ul></div>
        ${s.tasks.map((/** @type {any} */ t) => html`<div key=${t.task_id} class="card"><h2><${Link} to=${taskAddress(t.task_id)}>${clip(t.name, 80)}<//></h2><${Badge} look=${taskStates[t.state] ?? { word: t.state, tone: "dim", icon: "ring" }}/>
          <p class="dim">${clip(t.developer, 40)}${t.iteration > 0 && `, round ${t.iteration} of ${t.max_iterations}`}${t.step && !final(t) ? ": " + clip(t.step, 100) : ""}</p>
          <div class="rounds">${s.reviews.filter((/** @type {any} */ r) => r.task_id === t.task_id).map((/** @type {any} */ r) => html`<span key=${r.review_id} class=${"round t-" + (verdicts[r.verdict] ?? openReview).tone} title=${`round ${r.iteration}: ${(verdicts[r.verdict] ?? openReview).word} by ${clip(r.reviewer, 40)}, ${clock(r.decided_at ?? r.requested_at)}`}>${r.iteration} ${(verdicts[r.verdict] ?? openReview).word}</span>`)}</div>
          ${t.scope?.length > 0 && html`<p class="dim">may change <code>${clip(t.scope.join(" "), 120)}</code></p>`}</div>`)}
        ${questions.value.some((q) => q.context?.session_id === s.session_id) && html`<${Link} class="needs" to=${address("inbox")}>A review waits for you<//>`}</aside>
      <section class="page"><div class="row"><span class="switch" role="group" aria-label="View"><button type="button" aria-pressed=${!changes} onClick=${() => setChanges(false)}>Conversation</button><button type="button" aria-pressed=${changes} onClick=${() => setChanges(true)}>Changes</button></span>
          ${!changes && html`<span class="dim">${count(shown.length, "message")}</span>`}
          ${s.tasks.length > 1 && html`<select class="push" aria-label="Task" value=${task} onChange=${(/** @type {any} */ e) => setTask(e.target.value)}><option value="">All tasks</option>${s.tasks.map((/** @type {any} */ t) => html`<option key=${t.task_id} value=${t.task_id}>${clip(t.name, 50)}</option>`)}</select>`}</div>
        ${!changes ? html`<ol class="talk">${shown.slice(-500).map((/** @type {any} */ m) => html`<${Said} key=${m.log_seq} m=${m}/>`)}</ol>`
          : chosen ? html`<${Changes} key=${chosen} id=${chosen} findings=${placed(s, chosen)} ended=${s.tasks.some((/** @type {any} */ t) => t.task_id === chosen && final(t))}/>` : html`<p class="dim">Choose a task.</p>`}</section>
      <aside class="page"><h2>Findings${findings.length > 0 && html` <small>${findings.filter((/** @type {any} */ f) => !f.fixed_in_iteration).length} open of ${findings.length}</small>`}</h2>
        ${!findings.length && html`<p class="dim">No findings.</p>`}
        ${findings.map((/** @type {any} */ f) => html`<div key=${f.task.task_id + f.finding_id} class=${"card finding" + (f.fixed_in_iteration ? " fixed" : "")}><div class="row"><b class=${/critical|major/.test(f.severity) ? "t-red" : "t-amber"}>${clip(f.severity, 20)}</b><span class="dim">${clip(f.category, 30)}</span>
          <span class=${"push " + (f.fixed_in_iteration ? "t-green" : "t-amber")}>${f.fixed_in_iteration ? `fixed in round ${f.fixed_in_iteration}` : "open"}</span></div>
          <p>${clip(f.description, 600)}</p><p class="dim"><code>${clip(f.file ?? "", 200)}</code> found in round ${f.found_in_iteration}</p></div>`)}</aside></div></div>`;
}

/** The findings about a task, with their places and the rounds in which they were fixed. @param {any} s @param {string} task */
function placed(s, task) {
  const known = s.tasks.find((/** @type {any} */ t) => t.task_id === task)?.findings ?? [];
  const all = new Map();
  for (const m of s.messages) {
    if (m.refused || m.message_type !== "review_result" || m.payload?.task_id !== task) continue;
    for (const f of m.payload.findings ?? []) all.set(f.finding_id, { ...f, fixed: known.find((/** @type {any} */ k) => k.finding_id === f.finding_id)?.fixed_in_iteration });
  }
  return [...all.values()];
}

/** Kinds of messages that say most. */
const loud = /** @type {Record<string, string>} */ ({ task_assignment: "t-blue", task_completion: "t-green", review_request: "t-violet", review_result: "t-amber", escalation: "t-red", error: "t-red" });

/** One message of the conversation. @param {{m: any}} props */
function Said({ m }) {
  const p = m.payload ?? {};
  const verdict = m.refused ? undefined : verdicts[p.verdict];
  const changed = p.changes && [...(p.changes.files_created ?? []), ...(p.changes.files_modified ?? []), ...(p.changes.files_deleted ?? [])].map((f) => f.path ?? f);
  const words = wordsOf(p);
  const quiet = ["acknowledgment", "task_progress", "heartbeat"].includes(m.message_type);
  return html`<li class=${quiet ? "quiet-say" : ""}><${Avatar} name=${m.from_agent?.agent_id ?? "?"}/><div class="say">
    <p class="dim"><b>${clip(m.from_agent?.agent_id, 40)}</b> → ${clip(m.to_agent?.agent_id, 40)} <span class=${loud[m.message_type] ?? ""}>${clip((m.message_type ?? "").replaceAll("_", " "), 40)}</span> <time>${clock(m.logged_at)}</time></p>
    ${m.refused && html`<p><${Badge} look=${refused}/> <span class="bad">${clip((m.validation_errors ?? [m.refused]).join("; "), 600)}</span></p>`}
    ${verdict && html`<p><${Badge} look=${verdict}/> ${count(p.findings?.length ?? 0, "finding")}</p>`}
    ${words && html`<p class="pre">${visible(words.slice(0, 4000), true)}${p.progress_percent !== undefined && ` (${p.progress_percent}%)`}</p>`}
    ${changed?.length > 0 && html`<p class="dim">${count(changed.length, "file")}: ${changed.slice(0, 30).map((/** @type {string} */ f, /** @type {number} */ i) => html`${i > 0 && ", "}<code>${clip(f, 120)}</code>`)}</p>`}
    ${!quiet && html`<details><summary class="dim">Show all</summary><pre>${pretty(p)}</pre></details>`}</div></li>`;
}
