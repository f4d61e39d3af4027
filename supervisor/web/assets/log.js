// The output of an agent: live or at a moment, with search, filters and links to lines.
import { html, useEffect, useMemo, useRef, useState } from "./vendor-ui.js";
import { list } from "./api.js";
import { status } from "./store.js";
import { follow as followList } from "./stream.js";
import { route, address } from "./route.js";
import { Icon, Command, copy } from "./ui.js";
import { clip, clock, visible, count, brief, quoted } from "./text.js";
import { Virtual } from "./virtual.js";
import { useKeys } from "./keys.js";

/** @typedef {{at: string, agent: string, stream: string, text: string, level?: string, missed?: number, n: number}} Line */

const most = 20000; // lines kept
const lineHeight = 20;
const tail = 2000;  // lines read at first

/**
 * @param {{agent: string, from?: string, until?: string}} props from and until limit the time; without them the output is live
 */
export function LogView({ agent, from, until }) {
  const mark = decodeURIComponent(route.value.hash).replace(/^at=/, "");
  const still = !!from || !!until;
  const [lines, setLines] = useState(/** @type {Line[]} */ ([]));
  const [following, setFollowing] = useState(!mark && !still);
  const [text, setText] = useState("");
  const [stream, setStream] = useState("");
  const [times, setTimes] = useState("clock");
  const [wrap, setWrap] = useState(false);
  const [trouble, setTrouble] = useState("");
  const [hit, setHit] = useState(0);
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  const number = useRef(0);

  useEffect(() => {
    const abort = new AbortController();
    let live = /** @type {any} */ (null);
    const add = (/** @type {any[]} */ found) => setLines((old) => [...old, ...found.map((l) => ({ ...l, n: ++number.current }))].slice(-most));
    number.current = 0;
    setTrouble("");
    setLines([]);
    const around = mark ? { after: new Date(Date.parse(mark) - 60_000).toISOString(), n: tail } : { n: tail };
    list("logs", { agent, ...(still ? { after: from, until, n: tail } : around) }, abort.signal).then((found) => {
      add(found);
      if (still) return;
      const last = found.at(-1)?.at ?? new Date(Date.now() - 1000).toISOString();
      live = followList({ name: "logs", query: { agent, after: last }, beyond: (l) => ({ after: l.at }), onItems: add });
    }, (error) => { if (!abort.signal.aborted) setTrouble(error.message); });
    return () => { abort.abort(); live?.close(); };
  }, [agent, from, until]);

  const shown = useMemo(() => (stream ? lines.filter((l) => l.stream === stream) : lines), [lines, stream]);
  const want = text.toLowerCase();
  const hits = useMemo(() => (want ? shown.flatMap((l, i) => (l.text.toLowerCase().includes(want) ? [i] : [])) : []), [shown, want]);
  const at = hits.length ? hits[Math.min(hit, hits.length - 1)] : -1;
  const marked = useMemo(() => (mark ? shown.findIndex((l) => l.at >= mark) : -1), [mark, shown.length > 0, stream]);
  useKeys({ f: () => setFollowing(!following), s: () => field.current?.focus() });

  const step = (/** @type {number} */ by) => { setFollowing(false); setHit((hit + by + hits.length) % (hits.length || 1)); };
  const link = (/** @type {Line} */ l) => {
    const to = address("agent", { name: agent }, "at=" + l.at);
    history.replaceState(null, "", to);
    setFollowing(false);
    copy(new URL(to, location.href).href);
  };
  // A coding agent's own words come by stderr, because its stdout is the protocol of the client.
  const speaks = !!status.value?.agents.find((/** @type {any} */ a) => a.name === agent)?.activity?.kind;
  const row = (/** @type {Line} */ l, /** @type {number} */ i) => html`<${Row} key=${l.n} l=${l} prev=${shown[i - 1]} times=${times} want=${want} now=${i === at} marked=${i === marked} speaks=${speaks} link=${link}/>`;
  const list2 = wrap ? shown.slice(-500) : shown;
  return html`<section class="log" aria-label="Output">
    <div class="bar">${!still && html`<button type="button" aria-pressed=${following} class=${following ? "on" : ""} title="f" onClick=${() => setFollowing(!following)}><${Icon} name="dot" class=${following ? "t-green" : ""}/>${following ? "Following" : "Follow"}</button>`}
      <span class="searching"><input ref=${field} type="search" placeholder="Search the output" aria-label="Search the output" value=${text} onInput=${(/** @type {any} */ e) => { setText(e.target.value); setHit(0); setFollowing(false); }}
        onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter") step(e.shiftKey ? -1 : 1); }}/>
        ${want && html`<span class="dim">${hits.length ? `${Math.min(hit, hits.length - 1) + 1} of ${hits.length}` : "no matches"}</span>`}</span>
      <select aria-label="Stream" value=${stream} onChange=${(/** @type {any} */ e) => setStream(e.target.value)}><option value="">All streams</option><option value="stdout">stdout</option><option value="stderr">stderr</option><option value="own">orchestrator</option></select>
      <select aria-label="Timestamps" value=${times} onChange=${(/** @type {any} */ e) => setTimes(e.target.value)}><option value="clock">Timestamps</option><option value="gap">Since the previous line</option><option value="off">No timestamps</option></select>
      <label class="row"><input type="checkbox" checked=${wrap} onChange=${() => setWrap(!wrap)}/> Wrap</label>
      <span class="push"><${Command} text=${still ? `orchestrator logs ${quoted(agent)}` : `orchestrator logs -f ${quoted(agent)}`}/></span></div>
    ${trouble ? html`<p class="bad">${clip(trouble)}</p>` : !shown.length ? html`<p class="none">${lines.length ? "No lines in this stream." : "No output yet."}</p>`
      : wrap ? html`<div class="lines wrap">${list2.map((l, i) => row(l, shown.length - list2.length + i))}</div>`
      : html`<${Virtual} class="lines" items=${shown} height=${lineHeight} row=${row} stick=${following} reveal=${at >= 0 ? at : marked} onEnd=${(/** @type {boolean} */ end) => !still && setFollowing(end)} label="Output" role="log"/>`}
    <p class="dim foot"><small>${count(shown.length, "line")}${wrap && shown.length > 500 ? ", the last 500 wrapped" : ""}. Click a timestamp to copy a link to its line.</small></p></section>`;
}

/** @param {any} props */
function Row({ l, prev, times, want, now, marked, speaks, link }) {
  const gap = prev ? Date.parse(l.at) - Date.parse(prev.at) : 0;
  return html`<div class=${"line s-" + (l.stream === "stderr" && speaks ? "words" : l.stream) + (l.level ? " l-" + clip(l.level, 10) : "") + (now ? " now" : "") + (marked ? " marked" : "")}>
    ${times !== "off" && html`<button type="button" class="at" title=${"Copy a link to this line: " + clip(l.at)} onClick=${() => link(l)}>${times === "gap" ? "+" + (gap < 10000 ? (gap / 1000).toFixed(3) + " s" : brief(gap)) : clock(l.at)}</button>`}
    <span class="stream" title=${l.stream}>${l.stream === "stderr" ? (speaks ? "" : "err") : l.stream === "own" ? "orc" : ""}</span>
    <span class="words">${l.missed ? html`<em>${l.missed} lines missed </em>` : ""}${l.level ? html`<b>${clip(l.level, 10)} </b>` : ""}<${Marked} text=${visible(l.text.length > 8000 ? l.text.slice(0, 8000) + "…" : l.text)} want=${want}/></span></div>`;
}

/** Text in which what was searched for is marked. @param {{text: string, want: string}} props */
function Marked({ text, want }) {
  if (!want) return text;
  const parts = [];
  const low = text.toLowerCase();
  let from = 0;
  for (let i = low.indexOf(want); i >= 0 && parts.length < 200; i = low.indexOf(want, from)) {
    parts.push(text.slice(from, i), html`<mark>${text.slice(i, i + want.length)}</mark>`);
    from = i + want.length;
  }
  return [...parts, text.slice(from)];
}
