// The start of the web view: who is signed in, and which page is shown.
import { html, render, effect, signal, untracked, useEffect } from "./vendor-ui.js";
import { me, whoAmI, signInTrouble } from "./api.js";
import { load, needs, status, tasks, tick } from "./store.js";
import { Link, address, route } from "./route.js";
import { Shell } from "./shell.js";
import "./announce.js";
import { Command, Notes, Dialog } from "./ui.js";
import { places } from "./keys.js";
import { clip } from "./text.js";

/** The module of each page and the name of its component. @type {Record<string, [() => Promise<any>, string]>} */
const pages = {
  board: [() => import("./board.js"), "Board"],
  inbox: [() => import("./inbox.js"), "Inbox"],
  agents: [() => import("./agents.js"), "Agents"],
  agent: [() => import("./agent.js"), "Agent"],
  task: [() => import("./task.js"), "TaskPage"],
  graph: [() => import("./graph.js"), "GraphPage"],
  timeline: [() => import("./timeline.js"), "Timeline"],
  bus: [() => import("./bus.js"), "Bus"],
  metrics: [() => import("./metrics.js"), "Metrics"],
  reviews: [() => import("./reviews.js"), "Reviews"],
  session: [() => import("./reviews.js"), "SessionPage"],
  settings: [() => import("./settings.js"), "Settings"],
};

const NotFound = () => html`<div class="empty"><h1>Page not found</h1><p>This page does not exist.</p><${Link} to=${address("board")}>Open the board<//></div>`;
const Unreadable = () => html`<div class="empty"><h1>The page could not be loaded</h1><p>The orchestrator may have stopped or changed its version. Reload this page.</p></div>`;

const shown = signal(/** @type {{page: string, Page: any}|null} */ (null));

effect(() => {
  const { page } = route.value;
  const found = Object.hasOwn(pages, page) ? pages[page] : undefined;
  if (untracked(() => shown.value?.page) === page) return;
  if (!found) { shown.value = { page, Page: NotFound }; return; }
  found[0]().then(
    (module) => { if (route.value.page === page) shown.value = { page, Page: module[found[1]] }; },
    () => { if (route.value.page === page) shown.value = { page, Page: Unreadable }; },
  );
});

/** The page for people who are not signed in. */
const SignIn = () => html`<main class="sign-in"><h1>Sign in</h1>
  ${signInTrouble.value && html`<p class="bad" role="alert">Not signed in: ${signInTrouble.value}</p>`}
  <p>To sign in, open the web view with a one-time code:</p><${Command} text="orchestrator ui"/>
  <p class="dim">Run this command on the machine of the team.</p></main>`;

function App() {
  const person = me.value;
  useEffect(() => { if (person) load(); }, [person?.name]);
  if (person === undefined) return html`<p class="loading">Loading…</p>`;
  return html`${person ? html`<${Shell}><${Shown}/></${Shell}>` : html`<${SignIn}/>`}<${Notes}/><${Dialog}/>`;
}

function Shown() {
  const page = shown.value;
  return page ? html`<${page.Page} key=${page.page}/>` : html`<p class="loading">Loading…</p>`;
}

/** The words of a page in the title of its tab. @param {import("./route.js").Route} route */
function titleOf({ page, query }) {
  if (page === "task") return (tick.value, clip(tasks.get(query.id)?.name ?? "Task", 60));
  if (page === "agent" || page === "session") return clip(query.name ?? query.id ?? "", 60);
  return places.find(([, name]) => name === page)?.[2] ?? "Page not found";
}

// The title and the icon of the tab have the number of questions.
const icon = /** @type {HTMLLinkElement} */ (document.querySelector("link[rel=icon]"));
effect(() => {
  const n = needs.value;
  const title = me.value ? titleOf(route.value) : "";
  document.title = (n ? `(${n}) ` : "") + (title && title + " · ") + (status.value?.name ?? me.value?.team ?? "orchestrator");
  const mark = n ? `<circle cx="22" cy="10" r="10" fill="#d97706"/><text x="22" y="15" font-size="14" font-family="sans-serif" font-weight="700" text-anchor="middle" fill="#fff">${n > 9 ? "9+" : n}</text>` : "";
  icon.href = "data:image/svg+xml," + encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect x="2" y="6" width="24" height="24" rx="6" fill="#4f46e5"/><path d="M8 15h12M8 21h8" stroke="#fff" stroke-width="3" stroke-linecap="round"/>${mark}</svg>`);
});

whoAmI();
addEventListener("hashchange", () => { if (location.hash.startsWith("#code=")) whoAmI(); }); // an address was pasted into this tab
render(html`<${App}/>`, /** @type {Element} */ (document.getElementById("app")));
