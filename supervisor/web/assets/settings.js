// The team as it runs: the file and its changes, credentials, hosts, and notifications of the browser.
import { html, useEffect, useState } from "./vendor-ui.js";
import { ask, me, mayAct, signOut } from "./api.js";
import { status, load } from "./store.js";
import { Act, Age, Command, confirm, note } from "./ui.js";
import { clip, clock, count, duration, quoted, visible } from "./text.js";
import { announces, announce } from "./announce.js";

export function Settings() {
  const s = status.value;
  if (!s) return html`<p class="loading">Loading…</p>`;
  const rows = [["Team", s.name], ["Version", s.version], ["Process", s.pid], ["Up", duration(s.up_ms)], ["File", s.config], ["State", s.state_dir], ["Listens at", s.urls.join(", ") || "socket only"], ["Events", s.seq.toLocaleString("en-US")], ["Signed in as", `${me.value?.name}, ${me.value?.role}`]];
  return html`<div class="page settings"><div class="bar"><h1>Settings</h1><span class="push row"><button type="button" onClick=${() => signOut().catch((e) => note(e.message, true))}>Sign out</button></span></div>
    <div class="two-columns"><div class="page">
      <div class="card"><h2>This team</h2><dl class="pairs">${rows.map(([word, value]) => html`<dt key=${word}>${word}</dt><dd>${clip(value, 300)}</dd>`)}</dl><${Command} text="orchestrator status"/></div>
      <${Reload}/><${Notify}/></div>
      <div class="page"><${Credentials}/><${Hosts}/></div></div></div>`;
}

/** The changes of the file, shown before they are applied. */
function Reload() {
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  if (!mayAct()) return null;
  const apply = async () => {
    const done = await ask("reload", { expect: plan.digest });
    note(done.errors ? "The configuration has errors. Nothing was changed." : `Applied ${count(done.changes.length, "change")}`, done.errors > 0);
    setPlan(null);
    load();
  };
  return html`<div class="card"><h2>Configuration</h2><p class="dim">Compare the configuration with the running team, then apply the changes.</p>
    ${plan && (plan.errors ? html`<pre class="bad">${visible(plan.problems, true)}</pre>` : !plan.changes.length ? html`<p>No changes.</p>` : html`<table class="simple"><tbody>${plan.changes.map((/** @type {any} */ c, /** @type {number} */ i) => html`<tr key=${i}><td><b>${clip(c.agent || "team", 60)}</b></td><td>${clip(c.action, 20)}</td><td class="dim">${clip(c.detail, 300)}</td></tr>`)}</tbody></table>
      ${plan.commands?.length > 0 && html`<h2>Changed commands</h2>${plan.commands.map((/** @type {any} */ c, /** @type {number} */ i) => html`<pre key=${i}>${clip(c.of, 100)}${"\n"}- ${clip((c.before ?? []).map(quoted).join(" "), 400)}${"\n"}+ ${clip((c.after ?? []).map(quoted).join(" "), 400)}</pre>`)}`}`)}
    <div class="row"><${Act} label="Compare" cli="orchestrator reload --dry-run" run=${async () => setPlan(await ask("reload", { dry_run: true }))}/>
      ${plan?.changes.length > 0 && !plan.errors && html`<${Act} kind="primary" label="Apply" cli="orchestrator reload" run=${apply}/>`}</div></div>`;
}

/** @param {any} c */
const nounOf = (c) => (c.kind === "token" || c.kind === "actor" ? "token" : "key");

/** Keys and tokens, without their secrets. */
function Credentials() {
  const [found, setFound] = useState(/** @type {any[]|null} */ (null));
  const [trouble, setTrouble] = useState("");
  const read = async () => {
    const [keys, tokens] = await Promise.all([ask("list-keys"), ask("list-tokens")]);
    setFound([...keys.credentials, ...tokens.credentials]);
  };
  useEffect(() => { read().catch((error) => setTrouble(error.message)); }, []);
  const revoke = (/** @type {any} */ c) => async () => {
    const what = nounOf(c);
    const cli = `orchestrator ${what} revoke ${quoted(c.id)}`;
    if (await confirm({ title: `Revoke the ${what} of ${clip(c.for, 60)}?`, text: "Programs that use it lose access at once.", yes: "Revoke", cli, danger: true }) === null) return;
    await ask("revoke-" + what, { id: c.id });
    note(`Revoked ${c.id}`);
    await read();
  };
  return html`<div class="card"><h2>Keys and tokens</h2>${trouble ? html`<p class="bad">${clip(trouble)}</p>` : !found ? html`<p class="dim">Loading…</p>` : !found.length ? html`<p class="dim">No keys or tokens.</p>` : html`<table class="simple"><tbody>${found.map((c) => html`<tr key=${c.id}>
      <td><b>${clip(c.for, 60)}</b><br/><code class="dim">${clip(c.id, 40)}</code></td><td>${clip(c.kind, 20)}${c.role ? ", " + clip(c.role, 20) : ""}</td><td class="dim">${c.revokedAt ? "revoked" : c.expiresAt ? "until " + clock(c.expiresAt) : ""}</td>
      <td>${me.value?.role === "admin" && !c.revokedAt && html`<${Act} kind="danger" label="Revoke" cli=${`orchestrator ${nounOf(c)} revoke ${quoted(c.id)}`} run=${revoke(c)}/>`}</td></tr>`)}</tbody></table>`}
    <${Command} text="orchestrator token issue --sub NAME"/></div>`;
}

/** Other machines. */
function Hosts() {
  const [found, setFound] = useState(/** @type {any} */ (null));
  useEffect(() => { ask("list-hosts").then(setFound, () => {}); }, []);
  if (!found?.hosts.length && !found?.hubs.length) return null;
  return html`<div class="card"><h2>Machines</h2><table class="simple"><tbody>${found.hubs.map((/** @type {any} */ h) => html`<tr key=${"hub" + h.name}><td><b>${clip(h.name, 60)}</b></td><td>hub</td><td>${clip(h.state.replaceAll("_", " "), 20)}</td></tr>`)}
    ${found.hosts.map((/** @type {any} */ h) => html`<tr key=${h.name}><td><b>${clip(h.name, 60)}</b></td><td>${clip(h.state, 20)}</td><td class="dim">${count(h.agents.length, "agent")}, heard <${Age} at=${h.heard_at}/> ago</td></tr>`)}</tbody></table><${Command} text="orchestrator hosts"/></div>`;
}

/** Notifications of the browser, which people turn on. */
function Notify() {
  if (!("Notification" in window)) return null;
  return html`<div class="card"><h2>Notifications</h2><label class="row"><input type="checkbox" checked=${announces.value} onChange=${(/** @type {any} */ e) => announce(e.target.checked)}/> Notify me of questions while this tab is hidden</label>
    ${Notification.permission === "denied" && html`<p class="bad">The browser blocks notifications from this page.</p>`}</div>`;
}
