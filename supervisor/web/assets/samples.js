// Samples of the figures for Prometheus, kept while the view is open.
import { request } from "./api.js";
import { status } from "./store.js";

const most = 6000;

/** @type {Map<string, (number|null)[]>} */
const series = new Map();
const names = ["running", "pending", "blocked", "needs_human", "in_review", "stdio", "http", "queue_age", "commit", "mailbox", "rss"];
for (const name of names) series.set(name, []);

export const samples = {
  /** The times of the samples, in seconds. */
  t: /** @type {number[]} */ ([]),
  /** @param {string} name */
  get: (name) => series.get(name) ?? [],
};

/** Returns the growth of a counter in a second, from sample to sample. @param {string} name */
export function rate(name) {
  const all = samples.get(name);
  return all.map((v, i) => {
    const before = i ? all[i - 1] : null;
    return v === null || before === null || v < before ? null : (v - before) / Math.max(1, samples.t[i] - samples.t[i - 1]);
  });
}

let lastCommit = /** @type {[number, number]|null} */ (null);

/** Takes one sample. */
export async function sample() {
  const answer = await request("/metrics");
  const found = read(await answer.text());
  const sum = (/** @type {string} */ name, /** @type {(labels: string) => boolean} */ fits = () => true) => {
    const lines = found.get("orchestrator_" + name);
    return lines ? lines.reduce((n, [labels, v]) => n + (fits(labels) ? v : 0), 0) : null;
  };
  const state = (/** @type {string} */ name) => sum("tasks", (labels) => labels.includes(`state="${name}"`));
  const commit = /** @type {[number, number]} */ ([sum("record_commit_seconds_sum") ?? 0, sum("record_commit_seconds_count") ?? 0]);
  const batches = lastCommit ? commit[1] - lastCommit[1] : 0;
  const values = /** @type {Record<string, number|null>} */ ({
    running: (state("running") ?? 0) + (state("assigned") ?? 0) + (state("planning") ?? 0), pending: state("pending"), blocked: state("blocked"), needs_human: (state("needs_human") ?? 0) + (state("plan_review") ?? 0), in_review: (state("in_review") ?? 0) + (state("verifying") ?? 0),
    stdio: sum("messages_total", (l) => l.includes('door="stdio"')), http: sum("messages_total", (l) => l.includes('door="http"')), queue_age: sum("queue_age_seconds"),
    commit: batches > 0 && lastCommit ? ((commit[0] - lastCommit[0]) / batches) * 1000 : null, mailbox: sum("agent_mailbox_messages"),
    rss: (status.value?.agents ?? []).reduce((/** @type {number} */ n, /** @type {any} */ a) => n + (a.rss_bytes ?? 0), 0) / 2 ** 20,
  });
  lastCommit = commit;
  samples.t = [...samples.t, Date.now() / 1000].slice(-most);
  for (const name of names) series.set(name, [...samples.get(name), values[name]].slice(-most));
}

/** Reads the text format of Prometheus. @param {string} text */
function read(text) {
  /** @type {Map<string, [string, number][]>} */
  const found = new Map();
  for (const line of text.split("\n")) {
    const parts = /^([a-z_]+)(\{.*\})? (\S+)/i.exec(line);
    if (!parts) continue;
    const all = found.get(parts[1]) ?? [];
    all.push([parts[2] ?? "", Number(parts[3])]);
    found.set(parts[1], all);
  }
  return found;
}
