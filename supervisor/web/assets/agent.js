// One agent: its state and history, and its output.
import { html } from "./vendor-ui.js";
import { ask, list } from "./api.js";
import { status, refreshStatus, questions, useEvents } from "./store.js";
import { route, refine, Link, taskAddress, address } from "./route.js";
import { Act, AgentBadge, Avatar, Age, Empty, Command, confirm, note, now } from "./ui.js";
import { clip, bytes, clock, quoted, duration, count, firstLine } from "./text.js";
import { useFreshStatus, reasonOf } from "./agents.js";
import { LogView } from "./log.js";
import { Sparks } from "./spark.js";
import { Story } from "./task.js";

export function Agent() {
  useFreshStatus();
  const name = route.value.query.name ?? "", shown = route.value.query.tab ?? "output";
  const a = status.value?.agents.find((/** @type {any} */ x) => x.name === name);
  if (!status.value) return html`<p class="loading">Loading…</p>`;
  if (!a) return html`<${Empty} title="No such agent" cli="orchestrator ps"><p>“${clip(name, 80)}” may have been removed from the configuration.</p><//>`;
  return html`<div class=${"page agent" + (shown === "activity" ? "" : " fill")}><${Head} a=${a}/><${Sparks} key=${"s" + name} name=${name}/><${History} key=${name} name=${name}/>
    <div class="tabs" role="tablist">${[["output", "Output"], ["activity", "Activity"]].map(([tab, word]) => html`<button type="button" role="tab" key=${tab} aria-selected=${shown === tab} onClick=${() => refine({ tab: tab === "output" ? undefined : tab })}>${word}</button>`)}</div>
    ${shown === "activity" ? html`<p class="dim">Messages and events of this agent:</p><${Story} key=${"activity" + name} of="agent" id=${name}/>` : html`<${LogView} key=${"log" + name} agent=${name}/>`}</div>`;
}

/** @param {{a: any}} props */
function Head({ a }) {
  const runs = ["running", "stalled", "starting", "waiting", "backoff", "stopping"].includes(a.state);
  const word = quoted(a.name);
  const run = (/** @type {string} */ operation, /** @type {string} */ verb) => async () => {
    const cli = `orchestrator agent ${verb} ${word}`;
    const held = a.tasks.length ? `It has ${count(a.tasks.length, "task")}: ${a.tasks.map((/** @type {any} */ t) => clip(t.name, 60)).join(", ")}.` : "It has no tasks.";
    if (verb !== "start" && await confirm({ title: `${verb === "stop" ? "Stop" : "Restart"} ${clip(a.name, 60)}?`, text: held, yes: verb === "stop" ? "Stop agent" : "Restart agent", cli, danger: true }) === null) return;
    const { agents } = await ask(operation, { agents: [a.name] });
    const bad = agents.find((/** @type {any} */ o) => !o.ok);
    note(bad ? `${bad.name}: ${bad.text}` : agents.map((/** @type {any} */ o) => `${o.name}: ${o.text}`).join(", "), !!bad);
    await refreshStatus();
  };
  const asks = questions.value.filter((q) => q.agent === a.name);
  return html`<div class="bar"><${Avatar} name=${a.name}/><h1>${clip(a.name, 80)}</h1><${AgentBadge} state=${a.state}/><span class="dim">${reasonOf(a)}</span>
    <span class="row push">${!runs && html`<${Act} label="Start" cli=${`orchestrator agent start ${word}`} run=${run("start-agent", "start")}/>`}
      ${runs && a.state === "backoff" && html`<${Act} label="Start now" cli=${`orchestrator agent start ${word}`} run=${run("start-agent", "start")}/>`}
      ${runs && html`<${Act} label="Restart" cli=${`orchestrator agent restart ${word}`} run=${run("restart-agent", "restart")}/>
      <${Act} kind="danger" label="Stop" cli=${`orchestrator agent stop ${word}`} run=${run("stop-agent", "stop")}/>`}</span></div>
    ${asks.length > 0 && html`<p class="t-amber">Asks you:  <${Link} to=${address("inbox", { q: asks[0].id })}>${firstLine(asks[0].question, 160)}<//></p>`}
    <dl class="facts">
      <div><dt>Task</dt><dd>${a.tasks.length ? a.tasks.slice(0, 3).map((/** @type {any} */ t) => html`<${Link} key=${t.id} to=${taskAddress(t.id)}>${clip(t.name, 80)}<//> `) : "none"}</dd></div>
      <div><dt>Role</dt><dd>${clip(a.role, 40)}</dd></div>
      <div><dt>Up</dt><dd>${a.started_at && a.pid ? html`<${Age} at=${a.started_at} long/>` : "–"}</dd></div>
      <div><dt>Process</dt><dd>${a.pid ? html`<span class="mono">${a.pid}</span>${a.host && ` on ${clip(a.host, 60)}`}` : "–"}</dd></div>
      <div><dt>Restarts</dt><dd class=${a.restarts ? "t-amber" : ""}>${a.restarts}</dd></div>
      ${a.last_exit && html`<div><dt>Last exit</dt><dd>${clip(a.last_exit, 120)}</dd></div>`}
      <div><dt>Memory</dt><dd>${a.rss_bytes ? bytes(a.rss_bytes) : "–"}</dd></div>
      <div><dt>CPU time</dt><dd>${a.pid ? (a.cpu_ms / 1000).toFixed(1) + " s" : "–"}</dd></div>
      <div><dt>Mailbox</dt><dd>${count(a.mailbox.messages, "message")}</dd></div>
      ${a.activity?.model && html`<div><dt>Model</dt><dd>${clip(a.activity.model, 60)}</dd></div>`}
      <div class="long"><dt>Command</dt><dd><code title=${a.host ? "" : clip(a.dir)}>${clip(a.command.map(quoted).join(" "), 200)}</code></dd></div></dl>`;
}

/** The kinds of events that change the state of an agent, and what they begin. @type {Record<string, string>} */
const moves = {
  "agent.waiting": "waiting", "agent.starting": "starting", "agent.started": "running", "agent.exited": "exited", "agent.restarting": "backoff", "agent.gave_up": "failed",
  "agent.stopping": "stopping", "agent.stopped": "stopped", "agent.stalled": "stalled", "agent.recovered": "running",
};

/** The states that the agent had, as a bar, and why it was restarted. @param {{name: string}} props */
function History({ name }) {
  const read = async (/** @type {AbortSignal} */ signal) => (await list("events", { agent: name, type: "agent.*", after: new Date(Date.now() - 6 * 3600_000).toISOString() }, signal)).filter((e) => moves[e.kind]);
  const [events] = useEvents(read, (e) => e.agent === name && !!moves[e.kind], [name], 2000);
  if (!events?.length) return null;
  const end = now.value, start = Math.min(Date.parse(events[0].at), end - 1000), span = end - start;
  const parts = events.map((e, i) => ({ e, from: Date.parse(e.at), to: i + 1 < events.length ? Date.parse(events[i + 1].at) : end })).filter((p) => p.to - p.from > span / 2000).slice(-300);
  const why = events.filter((e) => ["agent.exited", "agent.stalled"].includes(e.kind)).slice(-12).reverse();
  return html`<div class="history"><svg viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label="States since ${clock(events[0].at)}">
      ${parts.map((p) => html`<rect key=${p.e.seq} class=${"s-" + moves[p.e.kind]} x=${((p.from - start) / span) * 1000} width=${Math.max(0.5, ((p.to - p.from) / span) * 1000)} height="12"><title>${moves[p.e.kind]} from ${clock(p.e.at)}, ${duration(p.to - p.from)}: ${clip(p.e.text, 120)}</title></rect>`)}</svg>
    <div class="row dim"><small>${clock(events[0].at)}</small>${why.length > 0 && html`<details class="why"><summary>Ended runs (${why.length})</summary><ul>${why.map((e) => html`<li key=${e.seq}><time class="mono">${clock(e.at)}</time> ${clip(e.text, 200)}</li>`)}</ul></details>`}<small class="push">now</small></div></div>`;
}
