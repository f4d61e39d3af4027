// A dialog that adds a task.
import { html, useEffect, useRef, useState } from "./vendor-ui.js";
import { ask, mayAct } from "./api.js";
import { status } from "./store.js";
import { overlay } from "./keys.js";
import { Layer } from "./shell.js";
import { Command, Icon, note } from "./ui.js";
import { clip, quoted } from "./text.js";

/** Opens the dialog; null for a viewer. */
export const AddButton = () => mayAct() ? html`<button type="button" class="add" title="orchestrator task add" onClick=${() => (overlay.value = "add")}>Add a task</button>` : null;

/** The command that adds the same task. @param {{name: string, text: string, to: string}} task */
const command = ({ name, text, to }) => ["orchestrator task add", quoted(name || "TITLE"), text && "--spec " + quoted(text), to && "--assign " + quoted(to)].filter(Boolean).join(" ");

export function Add() {
  const [task, setTask] = useState({ name: "", text: "", to: "" });
  const [trouble, setTrouble] = useState("");
  const [busy, setBusy] = useState(false);
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const change = (/** @type {string} */ name) => (/** @type {any} */ e) => setTask({ ...task, [name]: e.target.value });
  const add = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      const where = task.to ? { assignTo: task.to } : { requiredRole: "worker" };
      await ask("submit-task", { type: "task", name: task.name.trim(), description: task.text || undefined, ...where });
      note("Added: " + task.name);
      overlay.value = "";
    } catch (error) {
      setTrouble(/** @type {Error} */ (error).message);
    } finally {
      setBusy(false);
    }
  };
  return html`<${Layer} label="Add a task"><form class="adding" onSubmit=${add}><h2>Add a task</h2>
    <label>Title<input ref=${field} type="text" required maxlength="500" value=${task.name} onInput=${change("name")}/></label>
    <label>Description<textarea rows="5" value=${task.text} onInput=${change("text")}></textarea></label>
    <label>Assignee<select value=${task.to} onChange=${change("to")}><option value="">Any idle worker</option>
      ${(status.value?.agents ?? []).map((/** @type {any} */ a) => html`<option key=${a.name} value=${a.name}>${clip(a.name, 60)}</option>`)}</select></label>
    ${trouble && html`<p class="bad" role="alert"><${Icon} name="cross"/> ${clip(trouble, 400)}</p>`}
    <div class="row"><button type="submit" class="primary" disabled=${busy || !task.name.trim()}>Add</button>
      <button type="button" class="quiet" onClick=${() => (overlay.value = "")}>Cancel</button></div>
    <${Command} text=${command(task)}/></form><//>`;
}
