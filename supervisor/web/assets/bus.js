// The messages between actors: topics, the messages themselves, who has read how far, and sending.
import { html, useEffect, useMemo, useState } from "./vendor-ui.js";
import { ask, list, mayAct } from "./api.js";
import { onEvents, status, tasks } from "./store.js";
import { route, refine } from "./route.js";
import { Act, Command, Empty, Icon, note, now } from "./ui.js";
import { clip, clock, count, pretty, quoted, visible, wordsOf } from "./text.js";
import { Virtual } from "./virtual.js";

const most = 5000; // messages kept
const rowHeight = 44;

/** The topics by which the orchestrator keeps its records, as mail.Housekeeping has them. */
const housekeeping = new Set(["agent.spawned", "agent.terminated", "heartbeat", "topic.unknown"]);

/** The names of actors that are always there. */
const known = new Map([["GO", "orchestrator"], ["Bus", "orchestrator"], ["broadcast", "everyone"]]);

/** Returns agents by the ids of their runs. @param {any[]} actors @param {any[]} mails */
const agentsOf = (actors, mails) => new Map([
  ...mails.filter((m) => m.topic === "agent.spawned" && m.from_actor === "GO").map((m) => /** @type {const} */ ([m.payload?.actor, m.payload?.agent])),
  ...actors.filter((a) => a.agent).map((a) => /** @type {const} */ ([a.actor, a.agent])),
]);

/** Returns the name of an actor for people. @param {string} actor @param {Map<string, string>} agents */
const nameOf = (actor, agents) => clip(agents.get(actor) ?? known.get(actor) ?? actor.replace(/^(IO|PO|HO|session):/, "").replace(/([0-9a-f]{8})-[0-9a-f-]{27}$/, "$1"), 60);

/** Returns the text of a message for people: its words, the name of its task, or its payload. @param {any} m */
function textOf({ topic, payload }) {
  const p = payload ?? {}, words = p.text || wordsOf(p.document?.payload ?? p);
  if (topic.startsWith("alert.") && p.agent) return `${p.agent}: ${words}`;
  return [p.name, words || wordsOf(p.result)].filter(Boolean).join(": ") || tasks.get(p.task)?.name || JSON.stringify(p.document?.payload ?? payload);
}

export function Bus() {
  const { query } = route.value;
  const [mails, setMails] = useState(/** @type {any[]|null} */ (null));
  const [actors, setActors] = useState(/** @type {any[]} */ ([]));
  const [topics, setTopics] = useState(/** @type {any[]} */ ([]));
  const [trouble, setTrouble] = useState("");
  const [paused, setPaused] = useState(false);
  const [held, setHeld] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    const abort = new AbortController();
    list("messages", { n: 1000 }, abort.signal).then((found) => setMails((old) => [...found, ...(old ?? []).filter((m) => m.seq > (found.at(-1)?.seq ?? 0))]), (e) => { if (!abort.signal.aborted) setTrouble(e.message); });
    ask("list-topics").then((a) => setTopics(a.topics), () => {});
    const read = () => document.hidden || ask("list-actors").then((a) => setActors(a.actors), () => {});
    read();
    const timer = setInterval(read, 5000);
    return () => { abort.abort(); clearInterval(timer); };
  }, []);
  useEffect(() => onEvents((batch) => {
    const found = batch.flatMap((e) => (e.mail ? [e.mail] : []));
    if (!found.length) return;
    if (paused) return setHeld((old) => [...old, ...found].slice(-most));
    setMails((old) => [...(old ?? []), ...found.filter((m) => m.seq > (old?.at(-1)?.seq ?? 0))].slice(-most));
  }), [paused]);
  const go = () => { setPaused(false); setMails((old) => [...(old ?? []), ...held].slice(-most)); setHeld([]); };
  const agents = useMemo(() => agentsOf(actors, mails ?? []), [actors, mails]);
  const name = (/** @type {string} */ a) => nameOf(a, agents);
  const seen = useMemo(() => (mails ?? []).filter((m) => query.all || query.topic === m.topic || !housekeeping.has(m.topic)), [mails, query]);
  const found = useMemo(() => seen.filter((m) => (!query.topic || m.topic === query.topic) && (!query.actor || partiesOf(m).some((a) => name(a) === query.actor))), [seen, query, agents]);
  const counts = useMemo(() => {
    const since = new Date(now.value - 60_000).toISOString();
    /** @type {Map<string, {all: number, rate: number}>} */
    const by = new Map();
    for (const m of seen) {
      const c = by.get(m.topic) ?? { all: 0, rate: 0 };
      c.all++;
      if (m.created_at > since) c.rate++;
      by.set(m.topic, c);
    }
    return [...by].sort((a, b) => b[1].all - a[1].all);
  }, [mails?.length === 0 || mails === null, query.all, Math.floor(now.value / 2000)]);
  if (trouble) return html`<p class="bad">${clip(trouble)}</p>`;
  if (!mails) return html`<p class="loading">Loading…</p>`;
  const picked = query.seq ? mails.find((m) => String(m.seq) === query.seq) : undefined;
  return html`<div class="page fill"><div class="bar"><h1>Bus <small>${count(found.length, "message")}</small></h1>
      <button type="button" onClick=${() => (paused ? go() : setPaused(true))}>${paused ? `Resume (${held.length} new)` : "Pause"}</button>
      <select aria-label="Actor" value=${query.actor ?? ""} onChange=${(/** @type {any} */ e) => refine({ actor: e.target.value })}><option value="">All actors</option>
        ${[...new Set(actors.map((a) => name(a.actor)))].map((a) => html`<option key=${a} value=${a}>${a}</option>`)}</select>
      <label class="row"><input type="checkbox" checked=${!!query.all} onChange=${() => refine({ all: query.all ? undefined : "yes" })}/> Starts and heartbeats</label>
      <select class="only-small" aria-label="Topic" value=${query.topic ?? ""} onChange=${(/** @type {any} */ e) => refine({ topic: e.target.value })}><option value="">All topics</option>${counts.map(([t]) => html`<option key=${t} value=${t}>${clip(t, 50)}</option>`)}</select>
      <span class="push"><${Command} text="orchestrator bus tail"/></span></div>
    <div class="bus">
      <aside class="wide"><h2>Topics</h2><ul class="plain pick"><li><button type="button" aria-pressed=${!query.topic} onClick=${() => refine({ topic: undefined })}>All <span>${seen.length}</span></button></li>
        ${counts.map(([t, c]) => html`<li key=${t}><button type="button" aria-pressed=${query.topic === t} title=${clip(topics.find((x) => x.topic === t)?.summary ?? "not registered")} onClick=${() => refine({ topic: t })}>${clip(t, 40)} <span title="in the last minute">${c.rate}/min</span></button></li>`)}</ul>
        <h2>Actors</h2><${Actors} actors=${actors} name=${name}/></aside>
      <section class="mails">${!found.length ? html`<${Empty} part title="No messages" cli='orchestrator bus send --to AGENT "Hello"'/>` : html`<${Virtual} class="lines" height=${rowHeight} items=${found} stick=${!paused && !picked} label="Messages"
          row=${(/** @type {any} */ m) => html`<button type="button" key=${m.seq} class=${"mail" + (picked?.seq === m.seq ? " now" : "")} onClick=${() => refine({ seq: String(m.seq) })}>
            <time class="dim">${clock(m.created_at)}</time><span><${Parties} m=${m} name=${name}/> <span class="dim">${clip(m.topic, 60)}</span></span>
            <span class="what">${clip(textOf(m).replace(/\s+/g, " "), 300)}</span></button>`}/>`}
        ${picked && html`<${Message} m=${picked} mails=${mails} name=${name} actors=${actors}/>`}
        <${Compose} reply=${picked} actors=${actors}/></section></div></div>`;
}

/** Returns the sender and the addressee of a message: in a session, which alone can send as such, its members. @param {any} m @returns {string[]} */
const partiesOf = (m) => (m.from_actor.startsWith("session:") ? [m.payload?.from, m.payload?.to] : [m.from_actor, m.to_actor]).map(String);

/** @param {{m: any, name: (a: string) => string}} props */
const Parties = ({ m, name }) => {
  const [from, to] = partiesOf(m).map(name);
  return from === to ? html`<b>${from}</b>` : html`<b>${from}</b> → <b>${to}</b>`;
};

/** Who is there, and how far each has read. @param {{actors: any[], name: (a: string) => string}} props */
const Actors = ({ actors, name }) => html`<ul class="plain actors">${actors.slice(0, 100).map((a) => html`<li key=${a.actor} title=${clip(a.actor)}><span class=${a.status === "active" ? "t-green" : a.status === "stale" ? "t-red" : "t-dim"}><${Icon} name="dot"/></span>
  <span class="n">${name(a.actor)}</span>${a.actor !== "GO" && a.latest > a.cursor && html`<small class="dim" title="The latest message is not acknowledged">unread</small>`}</li>`)}</ul>`;

/** One message, and those that it answers or that answer it. @param {{m: any, mails: any[], name: (a: string) => string, actors: any[]}} props */
function Message({ m, mails, name, actors }) {
  const before = mails.find((o) => o.seq === m.reply_to);
  const after = mails.filter((o) => o.reply_to === m.seq);
  const to = actors.find((a) => a.actor === m.to_actor || a.agent === m.to_actor);
  const line = (/** @type {any} */ o, /** @type {string} */ word) => html`<button type="button" class="quiet" onClick=${() => refine({ seq: String(o.seq) })}>${word} ${clip(textOf(o), 40)}</button>`;
  return html`<div class="card message"><div class="row"><h2><${Parties} m=${m} name=${name}/></h2><span class="dim">${clip(m.topic, 80)}, ${clock(m.created_at)}</span>
      <button type="button" class="quiet push" aria-label="Close" onClick=${() => refine({ seq: undefined })}><${Icon} name="cross"/></button></div>
    <p class="pre">${visible(textOf(m), true)}</p>
    <details><summary class="dim">Envelope</summary><pre>${pretty(m)}</pre></details>
    <div class="row">${to && to.actor !== "GO" && html`<span class="dim">${to.cursor >= m.seq ? "acknowledged" : "not acknowledged"}</span>`}${before ? line(before, "answers") : m.reply_to && html`<span class="dim">answers ${m.reply_to}</span>`}${after.map((o) => line(o, "answered by"))}
      <${Command} text=${`orchestrator bus tail -n 1 --since ${m.seq - 1}`}/></div></div>`;
}

/** @param {{reply?: any, actors: any[]}} props */
function Compose({ reply, actors }) {
  const [to, setTo] = useState("");
  const [text, setText] = useState("");
  useEffect(() => { if (reply) setTo(actors.find((a) => a.actor === reply.from_actor)?.agent ?? reply.from_actor); }, [reply?.seq]);
  if (!mayAct()) return null;
  const send = async () => {
    await ask("send-message", { to_actor: to, topic: "message.direct", payload: { text }, ...(reply && { reply_to: reply.seq }) });
    note(`Sent to ${to}`);
    setText("");
  };
  const cli = `orchestrator bus send --to ${quoted(to || "ACTOR")}${reply ? " --reply-to " + reply.seq : ""} ${quoted(text || "TEXT")}`;
  return html`<form class="compose" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); /** @type {any} */ (e.target).querySelector(".act button")?.click(); }}>
    <input type="text" list="actors" placeholder="To" aria-label="To" value=${to} onInput=${(/** @type {any} */ e) => setTo(e.target.value)}/>
    <datalist id="actors">${(status.value?.agents ?? []).map((/** @type {any} */ a) => html`<option key=${a.name} value=${a.name}/>`)}<option value="broadcast"/></datalist>
    <input type="text" class="grow" placeholder=${reply ? "Answer" : "Message"} aria-label="Text" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}/>
    <${Act} label="Send" disabled=${!to.trim() || !text.trim()} cli=${cli} run=${send}/></form>`;
}
