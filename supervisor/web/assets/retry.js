// The button that puts a failed or cancelled task back.
import { html } from "./vendor-ui.js";
import { ask } from "./api.js";
import { refreshTask } from "./store.js";
import { Act, note } from "./ui.js";
import { clip, idWord } from "./text.js";

/** @param {{t: import("./states.js").Task, kind?: string}} props */
export function Retry({ t, kind = "" }) {
  const run = async () => {
    await ask("retry-task", { taskId: t.id });
    note(`Retrying ${clip(t.name, 80)}`);
    await refreshTask(t.id);
  };
  return html`<${Act} kind=${kind} label="Retry" cli=${`orchestrator task retry ${idWord(t.id)}`} run=${run}/>`;
}
