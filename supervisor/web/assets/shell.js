// What surrounds every page: the team, the link, the menu, the search and the list of keys.
import { html, useEffect, useRef } from "./vendor-ui.js";
import { me, signOut } from "./api.js";
import { status, link, needs, trouble, loaded, load, stopped, failed } from "./store.js";
import { route, address, Link } from "./route.js";
import { Icon, Command, now, note } from "./ui.js";
import { clip, count } from "./text.js";
import { overlay, places } from "./keys.js";
import { Find } from "./find.js";
import { Add } from "./add.js";

/** The state of the link to the orchestrator. */
function Pill() {
  const { state, until } = link.value;
  if (stopped.value && state !== "live") return html`<span class="pill t-dim" role="status" title="The orchestrator has stopped. This page reconnects when it starts again.">stopped</span>`;
  if (status.value?.state === "stopping") return html`<span class="pill t-amber" role="status">stopping</span>`;
  if (state === "live") return html`<span class="pill t-green" role="status"><i></i>live</span>`;
  if (state === "connecting" || state === "paused") return html`<span class="pill t-dim" role="status">connecting…</span>`;
  const s = Math.max(1, Math.ceil(((until ?? 0) - now.value) / 1000));
  return html`<span class="pill t-red" role="status" title=${trouble.value}>${loaded.value ? "" : "no answer, "}reconnecting in ${s} s</span>`;
}

/** Says across the page that the team has stopped, and how it starts. The first attempt after a loss may be too early. */
function Stopped() {
  if (link.value.state === "live" || !(stopped.value || failed.value > 1)) return null;
  return html`<div class="stopped" role="alert"><b>${stopped.value ? "The team has stopped." : "The orchestrator does not answer."}</b>
    <span>Start it in its folder:</span> <${Command} text="orchestrator up -d"/> <span>This page then reconnects.</span></div>`;
}

function NeedsYou() {
  const n = needs.value;
  if (!n) return null;
  return html`<${Link} class="needs" to=${address("inbox")}><${Icon} name="ask"/><b>${n}</b><span class="wide"> ${n === 1 ? "question needs" : "questions need"} you</span><//>`;
}

/** Which entry of the menu a page belongs to. */
const parents = /** @type {Record<string, string>} */ ({ task: "board", agent: "agents", session: "reviews" });

function Menu() {
  const { page } = route.value;
  const current = parents[page] ?? page;
  const bar = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => bar.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [current]); // the bar of a phone is narrower
  return html`<nav ref=${bar} class="menu" aria-label="Pages">${places.map(([key, name, word]) => html`
    <${Link} key=${name} to=${address(name)} aria-current=${current === name ? "page" : undefined} title=${`g ${key}`}>
      <${Icon} name=${name}/><span>${word}</span>${name === "inbox" && needs.value > 0 && html`<b class="num">${needs.value}</b>`}
      <kbd class="wide">g ${key}</kbd><//>`)}</nav>`;
}

/** @param {{children: any}} props */
export function Shell({ children }) {
  const s = status.value;
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the page</a>
    <header class="top">
      <${Link} class="team" to=${address("board")} title=${s ? `orchestrator ${s.version}, ${s.config}` : ""}>
        <span class="mark" aria-hidden="true"></span><b>${clip(s?.name ?? me.value?.team ?? "", 40)}</b><//>
      <${Pill}/>
      <button type="button" class="find" onClick=${() => (overlay.value = "search")} aria-label="Search" title="Search: /"><${Icon} name="search"/><span class="wide">Search</span><kbd class="wide">/</kbd></button>
      <${NeedsYou}/>
      <span class="who wide" title=${me.value?.role}>${clip(me.value?.name, 24)}${me.value?.role === "viewer" && html` <small>read only</small>`}</span>
      <button type="button" class="quiet wide" title="Sign out" aria-label="Sign out" onClick=${() => signOut().catch((e) => note(e.message, true))}><${Icon} name="out"/></button>
    </header>
    <${Menu}/>
    <main id="main" tabindex="-1"><${Stopped}/>${s?.no_quorum && html`<p class="t-red" role="alert"><b>No quorum:</b> ${clip(s.no_quorum)}. This page shows the last recorded state.</p>`}${!loaded.value && trouble.value ? html`<${Unreachable}/>` : children}</main>
    ${overlay.value === "search" && html`<${Find}/>`}${overlay.value === "keys" && html`<${Keys}/>`}${overlay.value === "add" && html`<${Add}/>`}`;
}

const Unreachable = () => html`<div class="empty"><h1>The orchestrator does not answer</h1><p>${clip(trouble.value)}</p>
  <button type="button" onClick=${load}>Retry now</button></div>`;

/** A layer over the page that Escape and a click beside it close. @param {any} props */
export function Layer({ label, children }) {
  const box = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useEffect(() => box.current?.showModal(), []);
  const close = () => (overlay.value = "");
  return html`<dialog ref=${box} class="layer" aria-label=${label} onCancel=${close} onClose=${close}
    onClick=${(/** @type {MouseEvent} */ e) => e.target === box.current && close()}><div class="sheet" tabindex="-1" autofocus>${children}</div></dialog>`;
}

const keyList = [
  ["Everywhere", ""], ["/ or Ctrl K", "search tasks, agents and pages"], ["?", "show the keys"], ["Esc", "close, or leave a field"],
  ...places.map(([key, , word]) => [`g ${key}`, word]),
  ["Inbox", ""], ["j, k", "next, previous question"], ["1 … 9", "choose this option"], ["Enter", "write and send an answer"], ["o", "open the task of the question"],
  ["Board", ""], ["n", "add a task"], ["v", "board or table"], ["f", "filter"],
  ["Agent", ""], ["f", "follow the output or stop following"], ["s", "search the output"],
];

/** The keys of each page. @type {[string, string[][]][]} */
const keyGroups = [];
for (const [key, word] of keyList) word ? keyGroups.at(-1)?.[1].push([key, word]) : keyGroups.push([key, []]);

const Keys = () => html`<${Layer} label="Keyboard shortcuts"><h2>Keyboard shortcuts</h2><div class="keys">${keyGroups.map(([title, keys]) => html`<section><h3>${title}</h3><dl>
    ${keys.map(([key, word]) => html`<dt>${key.split(/(, | or | … )/).map((k, i) => (i % 2 ? k : html`<kbd>${k}</kbd>`))}</dt><dd>${word}</dd>`)}</dl></section>`)}</div>
  <p class="dim">${count(status.value?.agents.length ?? 0, "agent")}, version ${clip(status.value?.version, 40)}</p><//>`;
