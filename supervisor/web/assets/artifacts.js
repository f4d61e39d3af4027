// What a task has made, to look at and to save.
import { html, useState } from "./vendor-ui.js";
import { ask } from "./api.js";
import { Command, note } from "./ui.js";
import { download } from "./save.js";
import { bytes, clip, quoted, visible, idWord } from "./text.js";

const most = 200000; // characters of an artifact that are shown

/** @param {{t: any}} props */
export function Artifacts({ t }) {
  const [shown, setShown] = useState(/** @type {{name: string, content: string}|null} */ (null));
  if (!t.artifacts?.length) return null;
  const content = async (/** @type {string} */ name) => {
    try {
      const response = await ask("get-task-response", { taskId: t.id });
      return response.artifacts?.find((/** @type {any} */ a) => a.name === name)?.content ?? "";
    } catch (error) {
      note(error instanceof Error ? error.message : String(error), true);
      return null;
    }
  };
  const show = async (/** @type {string} */ name) => {
    if (shown?.name === name) return setShown(null);
    const text = await content(name);
    if (text !== null) setShown({ name, content: text });
  };
  const save = async (/** @type {any} */ a) => {
    const text = await content(a.name);
    if (text !== null) download(text, "application/octet-stream", a.name.replace(/.*[/\\]/, "") || "artifact");
  };
  return html`<div class="card"><h2>Artifacts</h2><ul class="plain artifacts">${t.artifacts.map((/** @type {any} */ a) => html`<li key=${a.name}>
    <div class="row"><b>${clip(a.name, 120)}</b><span class="dim">${clip(a.type, 60)}${a.ref ? "" : ", " + bytes(a.size ?? 0)}</span>
      ${a.ref ? html`<span class="dim">at ${clip(a.ref, 200)}</span>` : html`<button type="button" aria-expanded=${shown?.name === a.name} onClick=${() => show(a.name)}>${shown?.name === a.name ? "Hide" : "Show"}</button>
        <button type="button" onClick=${() => save(a)}>Save</button><${Command} text=${`orchestrator task response ${idWord(t.id)} --artifact ${quoted(a.name)}`}/>`}</div>
    ${shown?.name === a.name && html`<pre>${visible(shown?.content.slice(0, most), true)}${(shown?.content.length ?? 0) > most ? "\n… Save the artifact to see the rest" : ""}</pre>`}</li>`)}</ul></div>`;
}
