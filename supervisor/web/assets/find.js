// The search: pages, agents and tasks by a part of their names or ids.
import { html, useState, useEffect, useRef } from "./vendor-ui.js";
import { status, allTasks } from "./store.js";
import { go, address, taskAddress, agentAddress } from "./route.js";
import { Icon, TaskBadge, AgentBadge, Avatar } from "./ui.js";
import { clip, short } from "./text.js";
import { overlay, places } from "./keys.js";
import { Layer } from "./shell.js";

const most = 40;

/** Returns what fits a text, best first. @param {string} text */
function search(text) {
  const want = text.trim().toLowerCase();
  const fits = (/** @type {string} */ s) => s.toLowerCase().includes(want);
  /** @type {{key: string, to: string, view: any}[]} */
  const found = [];
  for (const [, name, word] of places) {
    if (fits(word)) found.push({ key: "p" + name, to: address(name), view: html`<${Icon} name=${name}/><span>${word}</span><small>page</small>` });
  }
  for (const a of status.value?.agents ?? []) {
    if (fits(a.name)) found.push({ key: "a" + a.name, to: agentAddress(a.name), view: html`<${Avatar} name=${a.name}/><span>${clip(a.name)}</span><${AgentBadge} state=${a.state}/>` });
  }
  if (want) {
    const list = allTasks.value;
    for (let i = list.length - 1; i >= 0 && found.length < most; i--) {
      const t = list[i];
      if (fits(t.name) || t.id.startsWith(want)) found.push({ key: t.id, to: taskAddress(t.id), view: html`<code>${short(t.id)}</code><span>${clip(t.name)}</span><${TaskBadge} task=${t}/>` });
    }
  }
  return found.slice(0, most);
}

export function Find() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const found = search(text);
  const index = Math.min(at, found.length - 1);
  useEffect(() => list.current?.children[index]?.scrollIntoView({ block: "nearest" }), [index]);
  const open = (/** @type {number} */ i) => { if (found[i]) { overlay.value = ""; go(found[i].to); } };
  const key = (/** @type {KeyboardEvent} */ e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) { e.preventDefault(); setAt((index + step + found.length) % (found.length || 1)); }
    if (e.key === "Enter") { e.preventDefault(); open(index); }
  };
  return html`<${Layer} label="Search">
    <input ref=${field} class="big" type="text" placeholder="A task, an agent or a page" aria-label="Search" role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant=${"f" + index}
      value=${text} onKeyDown=${key} onInput=${(/** @type {any} */ e) => { setText(e.target.value); setAt(0); }}/>
    <ul id="found" ref=${list} class="found" role="listbox" aria-label="Results">${found.map((f, i) => html`<li key=${f.key} id=${"f" + i} role="option" aria-selected=${i === index} onClick=${() => open(i)} onMouseMove=${() => i !== at && setAt(i)}>${f.view}</li>`)}</ul>
    ${!found.length && html`<p class="dim">No matches for “${clip(text, 60)}”.</p>`}<//>`;
}
