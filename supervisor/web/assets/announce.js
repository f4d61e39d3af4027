// Notifications of the browser for new questions and plans while the tab is hidden.
import { effect, signal } from "./vendor-ui.js";
import { needs, questions } from "./store.js";
import { clip, firstLine } from "./text.js";

const key = "orchestrator.announce";

const kept = () => { try { return localStorage.getItem(key) === "yes"; } catch { return false; } };
export const announces = signal(kept());

/** Turns notifications on or off. @param {boolean} on */
export async function announce(on) {
  const allowed = on && (await Notification.requestPermission()) === "granted";
  announces.value = allowed;
  try { localStorage.setItem(key, allowed ? "yes" : "no"); } catch { /* it holds until the page is closed */ }
}

let lastNeeds = -1, lastAsked = 0;
effect(() => {
  const n = needs.value, asked = questions.value.length;
  if (announces.value && lastNeeds >= 0 && n > lastNeeds && document.hidden) {
    const q = asked > lastAsked ? questions.value.at(-1) : undefined;
    try {
      new Notification(q ? `${clip(q.agent, 40)} asks` : "A plan needs your approval", { body: q ? firstLine(q.question, 160) : "", tag: "orchestrator" });
    } catch { /* some browsers allow it only in a service worker */ }
  }
  lastNeeds = n;
  lastAsked = asked;
});
