// Parts that all pages use: icons, buttons with their commands, notes, dialogs, times.
import { html, signal, computed, useState, useRef, useEffect } from "./vendor-ui.js";
import { mayAct } from "./api.js";
import { status } from "./store.js";
import { brief, duration, clock, clip, hash } from "./text.js";
import { lookOf, agentLook } from "./states.js";

/** The time, which moves once a second. */
export const now = signal(Date.now());
setInterval(() => document.hidden || (now.value = Date.now()), 1000);

const small = matchMedia("(max-width: 720px)"); // as in the style sheet
/** Whether the screen is that of a phone. */
export const narrow = signal(small.matches);
small.addEventListener("change", () => (narrow.value = small.matches));

const paths = {
  dashed: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2",
  ring: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2",
  half: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M8 5v3l2 2",
  ask: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M6.3 6.4a1.8 1.8 0 1 1 2.6 1.7c-.6.3-.9.6-.9 1.1M8 11.2v.1",
  eye: "M1.5 8S4 3.8 8 3.8 14.500 8 14.500 8 12 12.200 8 12.200 1.500 8 1.500 8M8 6.300a1.700 1.700 0 1 1 0 3.400 1.700 1.700 0 0 1 0-3.400",
  check: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M5.500 8.200l1.800 1.800 3.200-3.700",
  cross: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M6 6l4 4M10 6l-4 4",
  minus: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M5.500 8h5",
  dot: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6",
  copy: "M5.500 5.500h7v8h-7zM3.500 10.500v-8h7",
  search: "M7 2.500a4.500 4.500 0 1 1 0 9 4.500 4.500 0 0 1 0-9M10.500 10.500l3 3",
  board: "M2.500 3h3v10h-3zM6.700 3h3v6h-3zM11 3h2.500v8H11z",
  inbox: "M2.500 9l1.800-6h7.400l1.800 6v4h-11zM2.500 9h3l1 1.500h3l1-1.500h3",
  agents: "M4 5.500h8v7H4zM8 5.500v-2.500M6.300 8.500v.8M9.700 8.500v.8",
  graph: "M2.500 6h3.500v4H2.500zM10 2.500h3.500v4H10zM10 9.500h3.500v4H10zM6 8h2M8 4.500v7M8 4.500h2M8 11.500h2",
  timeline: "M2.500 4h6M5 8h8M3.500 12h5",
  bus: "M2.500 3.500h11v7h-6l-3 2.500v-2.500h-2z",
  metrics: "M2.500 13.500v-11M2.500 13.500h11M5 10.500l2.500-3 2 1.500 3.500-5",
  reviews: "M3 2.500h10v11H3zM5.500 6h5M5.500 9l1.300 1.300 2.400-2.500",
  settings: "M8 5.800a2.200 2.200 0 1 1 0 4.400 2.200 2.200 0 0 1 0-4.400M8 1.800v2M8 12.200v2M1.800 8h2M12.200 8h2M3.600 3.600 5 5M11 11l1.400 1.400M3.600 12.400 5 11M11 5l1.400-1.400",
  out: "M6.500 2.500h-4v11h4M6 8h7.500M10.500 5l3 3-3 3",
};

/** @param {{name: string, class?: string}} props */
export const Icon = ({ name, class: extra = "" }) => html`<svg class=${"icon i-" + name + " " + extra} viewBox="0 0 16 16" aria-hidden="true">
  <path d=${/** @type {any} */ (paths)[name] ?? paths.ring}/></svg>`;

/** A state as icon and word, in its color. @param {{look: {word: string, tone: string, icon: string}}} props */
export const Badge = ({ look }) => html`<span class=${"badge t-" + look.tone}><${Icon} name=${look.icon}/>${look.word}</span>`;
/** @param {{task: any}} props */
export const TaskBadge = ({ task }) => html`<${Badge} look=${lookOf(task)}/>`;
/** @param {{state: string}} props */
export const AgentBadge = ({ state }) => html`<${Badge} look=${agentLook(state)}/>`;

const colors = 8; // of avatars in the style sheet
/** The colors of the team's agents by their names, so that neighbors differ. */
const colorOf = computed(() => new Map((status.value?.agents ?? []).map((/** @type {any} */ a, /** @type {number} */ i) => [a.name, i % colors])));

/** The initial of an agent in its color. @param {{name: string}} props */
export const Avatar = ({ name }) => html`<span class=${"avatar av" + (colorOf.value.get(name) ?? hash(name, colors))} aria-hidden="true">${clip(name, 1).slice(0, 1).toUpperCase()}</span>`;

/** How long ago something was. @param {{at?: string, long?: boolean}} props */
export function Age({ at, long }) {
  if (!at) return "";
  const ms = now.value - Date.parse(at);
  return html`<time dateTime=${at} title=${clock(at)}>${long ? duration(ms) : brief(ms)}</time>`;
}

/** @param {{value?: number}} props */
export const Bar = ({ value }) => value === undefined ? null : html`<progress max="1" value=${value} aria-label=${Math.round(value * 100) + "%"}></progress>`;

// Notes: short messages at the bottom of the page.

export const notes = signal(/** @type {{id: number, text: string, bad: boolean}[]} */ ([]));
let lastNote = 0;

/** Shows a note for five seconds. @param {string} text @param {boolean} [bad] */
export function note(text, bad = false) {
  const id = ++lastNote;
  notes.value = [...notes.value.slice(-2), { id, text: clip(text, 300), bad }];
  setTimeout(() => (notes.value = notes.value.filter((n) => n.id !== id)), bad ? 9000 : 5000);
}

export const Notes = () => html`<div class="notes" role="status" aria-live="polite">
  ${notes.value.map((n) => html`<p key=${n.id} class=${n.bad ? "bad" : ""}><${Icon} name=${n.bad ? "cross" : "check"}/>${n.text}</p>`)}</div>`;

/** Copies text and shows a note. @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    note("Copied: " + text);
  } catch {
    note("The browser blocks copying. Copy this text: " + text, true);
  }
}

/** A command with a button that copies it. @param {{text: string}} props */
export const Command = ({ text }) => html`<span class="command"><code>${text}</code>
  <button type="button" class="quiet" title="Copy the command" aria-label=${"Copy the command " + text} onClick=${() => copy(text)}><${Icon} name="copy"/></button></span>`;

/** What a page, or a part of it, shows instead of nothing. @param {{title: string, children?: any, cli?: string, part?: boolean}} props */
export const Empty = ({ title, children, cli, part }) => html`<div class="empty"><${part ? "h2" : "h1"} class="title">${title}<//>${children}${cli && html`<${Command} text=${cli}/>`}</div>`;

// A dialog that asks before something is done.

/** @typedef {{title: string, text?: string, yes: string, cli?: string, input?: string, danger?: boolean}} Question */
export const asked = signal(/** @type {(Question & {done: (answer: string|null) => void})|null} */ (null));

/** Asks; the answer is the text of the input or "", and null if the person does not want it. @param {Question} question @returns {Promise<string|null>} */
export const confirm = (question) => new Promise((done) => (asked.value = { ...question, done }));

export function Dialog() {
  const q = asked.value;
  const box = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const [text, setText] = useState("");
  useEffect(() => { if (q) { setText(""); box.current?.showModal(); } }, [q]);
  if (!q) return null;
  const end = (/** @type {string|null} */ answer) => { asked.value = null; q.done(answer); };
  return html`<dialog ref=${box} onCancel=${(/** @type {Event} */ e) => { e.preventDefault(); end(null); }} aria-labelledby="ask-title">
    <form method="dialog" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); end(text); }}>
      <h2 id="ask-title">${q.title}</h2>
      ${q.text && html`<p>${q.text}</p>`}
      ${q.input && html`<label>${q.input}<textarea autofocus rows="3" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea></label>`}
      ${q.cli && html`<${Command} text=${q.cli}/>`}
      <div class="row end"><button type="button" onClick=${() => end(null)}>Cancel</button>
        <button class=${q.danger ? "danger" : "primary"} disabled=${q.input && !text.trim()} autofocus=${!q.input}>${q.yes}</button></div>
    </form></dialog>`;
}

/**
 * A button that changes something, with the equivalent command. It waits for the
 * answer; viewers do not see it.
 * @param {{label: any, cli: string, run: () => Promise<any>, kind?: string, disabled?: boolean}} props
 */
export function Act({ label, cli, run, kind = "", disabled }) {
  const [busy, setBusy] = useState(false);
  if (!mayAct()) return null;
  const press = async () => {
    setBusy(true);
    try { await run(); } catch (error) { note(error instanceof Error ? error.message : String(error), true); }
    setBusy(false);
  };
  return html`<span class=${"act " + kind}><button type="button" class=${kind} disabled=${disabled || busy} aria-busy=${busy} title=${cli} onClick=${press}>
${label}</button>
    <button type="button" class=${"cli " + kind} title=${"Copy: " + cli} aria-label=${"Copy the command " + cli} onClick=${() => copy(cli)}><${Icon} name="copy"/></button></span>`;
}
