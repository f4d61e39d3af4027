// Spans of time made of events: attempts at tasks, reviews, questions and crashes.

/** The kinds of events that begin or end a span. @type {Record<string, boolean>} */
export const wanted = Object.fromEntries([
  "task.started", "task.done", "task.failed", "task.cancelled", "task.requeued", "task.retried", "question.asked", "question.answered", "question.expired", "question.withdrawn",
  "agent.exited", "agent.gave_up", "agent.stalled", "review.requested", "review.decided",
].map((kind) => [kind, true]));

/** @typedef {{key: string, kind: "task"|"review"|"question"|"crash", agent: string, from: number, to?: number, task?: string, name?: string, outcome?: string, words: string}} Span */

/** Returns the spans of events in the order of their numbers. @param {any[]} events @returns {Span[]} */
export function spansOf(events) {
  /** @type {Span[]} */
  const all = [];
  /** @type {Map<string, Span>} */
  const open = new Map();
  const begin = (/** @type {string} */ id, /** @type {any} */ e, /** @type {Partial<Span>} */ more) => {
    const span = /** @type {Span} */ ({ key: id + e.seq, agent: e.agent ?? "", from: Date.parse(e.at), task: e.task, name: e.payload?.name, ...more });
    open.set(id, span);
    all.push(span);
  };
  const end = (/** @type {string} */ id, /** @type {any} */ e, /** @type {string} */ outcome) => {
    const span = open.get(id);
    if (!span) return;
    span.to = Date.parse(e.at);
    span.outcome = outcome;
    open.delete(id);
  };
  for (const e of events) {
    const p = e.payload ?? {};
    switch (e.kind) {
      case "task.started": end("t" + e.task, e, "requeued"); begin("t" + e.task, e, { kind: "task", words: "worked on" }); break;
      case "task.done": end("t" + e.task, e, "done"); break;
      case "task.failed": end("t" + e.task, e, "failed"); break;
      case "task.cancelled": end("t" + e.task, e, "cancelled"); break;
      case "task.requeued": case "task.retried": end("t" + e.task, e, "requeued"); break;
      case "question.asked": begin("q" + p.question_id, e, { kind: "question", words: "waited for an answer: " + String(p.question ?? "").slice(0, 80) }); break;
      case "question.answered": case "question.expired": case "question.withdrawn": end("q" + p.question_id, e, e.kind.slice(9)); break;
      case "review.requested": begin("r" + p.review_id, e, { kind: "review", words: "reviewed" }); break;
      case "review.decided": end("r" + p.review_id, e, p.verdict); break;
      case "agent.exited":
        if (e.figures?.exit_code || e.figures?.signal) all.push({ key: "x" + e.seq, kind: "crash", agent: e.agent ?? "", from: Date.parse(e.at), to: Date.parse(e.at), words: e.text });
        break;
      case "agent.gave_up": case "agent.stalled": all.push({ key: "x" + e.seq, kind: "crash", agent: e.agent ?? "", from: Date.parse(e.at), to: Date.parse(e.at), words: e.text });
    }
  }
  return all.filter((s) => s.agent);
}
