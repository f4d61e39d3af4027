// Notifications of the browser when questions arrive while the tab is hidden.
import { effect, signal } from "./vendor-ui.js";
import { needs, questions } from "./store.js";
import { clip } from "./text.js";

const key = "orchestrator.announce";

const kept = () => { try { return localStorage.getItem(key) === "yes"; } catch { return false; } };
export const announces = signal(kept());

/** Turns notifications on or off. @param {boolean} on */
export async function announce(on) {
  const allowed = on && (await Notification.requestPermission()) === "granted";
  announces.value = allowed;
  try { localStorage.setItem(key, allowed ? "yes" : "no"); } catch { /* it holds until the page is closed */ }
}

let last = -1;
effect(() => {
  const n = needs.value;
  if (announces.value && last >= 0 && n > last && document.hidden) {
    const q = questions.value.at(-1);
    new Notification(q ? `${clip(q.agent, 40)} asks` : "A plan waits for you", { body: q ? clip(q.question, 160) : "", tag: "orchestrator" });
  }
  last = n;
});
