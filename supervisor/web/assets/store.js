// What the pages show: one snapshot, and then the events that follow it.
import { signal, computed, batch, useEffect, useState } from "./vendor-ui.js";
import { ask, me } from "./api.js";
import { follow } from "./stream.js";
import { apply } from "./reduce.js";
import { final, groupOf, isPart } from "./states.js";

/** @typedef {import("./states.js").Task} Task */
/** @typedef {{seq: number, at: string, kind: string, agent?: string, task?: string, run?: string, text: string, figures?: any, payload?: any, mail?: any}} Event */

/** The answer to the operation status. */
export const status = signal(/** @type {any} */ (null));
/** Tasks by their ids. A change replaces tick and not the map. */
export const tasks = new Map(/** @type {[string, Task][]} */ ([]));
export const tick = signal(0);
export const questions = signal(/** @type {any[]} */ ([]));
export const link = signal(/** @type {import("./stream.js").Link} */ ({ state: "connecting" }));
export const trouble = signal("");
export const loaded = signal(false);
/** Whether the questions are known. They are read before the tasks. */
export const questionsLoaded = signal(false);

/** All tasks, in the order of their creation. */
export const allTasks = computed(() => (tick.value, [...tasks.values()]));
/** All tasks but the parts of others. */
export const requests = computed(() => allTasks.value.filter((t) => !isPart(t) || !tasks.has(t.parentTaskId ?? "")));
/** The open part of each request that has one, by the id of the request. */
export const parts = computed(() => new Map(allTasks.value.filter((t) => isPart(t) && !final(t)).map((t) => [t.parentTaskId ?? "", t])));
/** Tasks with a plan that a person has to approve. */
export const plans = computed(() => allTasks.value.filter((t) => t.state === "plan_review"));
/** How many questions and plans wait for a person. */
export const needs = computed(() => questions.value.length + plans.value.length);

/** Open questions that no task in "Needs you" is about. Each has a card there, so that the counts agree. */
export const loose = computed(() => {
  const shown = new Set(requests.value.filter((t) => groupOf(t) === "you").map((t) => t.id));
  return questions.value.filter((q) => !shown.has(q.task) && !shown.has(tasks.get(q.task)?.parentTaskId ?? ""));
});

/** Functions that are called with each batch of events. */
const listeners = new Set(/** @type {((events: Event[]) => void)[]} */ ([]));

/** Calls with each batch of events until the returned function is called. @param {(events: Event[]) => void} listener */
export function onEvents(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let stream = /** @type {ReturnType<typeof follow>|null} */ (null);
let loading = false;
let failures = 0;
const firstPage = 1000; // tasks, so that something is soon there
const nextPages = 10_000; // each answer also counts up to as many tasks that follow
const maxBehind = 5000; // events; more of them take longer than a snapshot

/** Reads everything, and follows the events from there. Until then the stream before goes on: it tells if the team stops. */
export async function load() {
  if (loading) return;
  loading = true;
  dirty.clear();
  try {
    const now = await ask("status");
    status.value = now;
    await refreshQuestions();
    const found = new Map();
    for (let cursor; ; ) {
      const page = await ask("query-tasks", { limit: cursor ? nextPages : firstPage, cursor });
      for (const t of page.tasks) found.set(t.id, t);
      if (!loaded.value) show(found);
      if (!page.more || !page.cursor) break;
      cursor = page.cursor;
    }
    show(found);
    trouble.value = "";
    failures = 0;
    loaded.value = true;
    fresh = Date.now();
    lastSeq = now.seq;
    listen(now.seq);
    watchHubs();
  } catch (error) {
    stream?.close();
    stream = null;
    const wait = failures++ ? 3000 : 300; // the first failure may be that of one connection
    failed.value = failures;
    if (failures > 1) trouble.value = error instanceof Error ? error.message : String(error);
    link.value = { state: "waiting", until: Date.now() + wait };
    setTimeout(load, wait);
  } finally {
    loading = false;
  }
}

/** @param {Map<string, Task>} found */
function show(found) {
  tasks.clear();
  for (const [id, t] of found) tasks.set(id, t);
  tick.value++;
}

/** Whether the orchestrator has said that it stops. A later run that answers says that it does not. */
export const stopped = signal(false);
let stops = 0; // the events that said so
/** How often the link was tried in vain since it was live. */
export const failed = signal(0);

/** @param {number} since */
function listen(since) {
  const started = status.value.started_at;
  let lost = false;
  if (status.value.state === "stopping") stopped.value = true;
  stream?.close();
  stream = follow({ name: "events", since, onItems: take, onReset: load, onLink: async (l) => {
    link.value = l;
    if (l.state === "waiting") { lost = true; failed.value++; }
    if (l.state === "live") failed.value = 0;
    if (l.state !== "live" || !lost) return;
    lost = false;
    const before = stops;
    await refreshStatus();
    if (stops === before) stopped.value = status.value.state === "stopping";
    if (status.value.started_at !== started) load(); // another run, maybe with another record
  } });
}

let fresh = 0; // when the snapshot was taken
let lastSeq = 0;
/** Ids of tasks that an event does not describe in full. */
const dirty = new Set(/** @type {string[]} */ ([]));

/** Applies a batch of events. @param {Event[]} events */
function take(events) {
  const changed = new Set();
  let statusToo = false, questionsToo = false, again = false;
  // The snapshot may already contain the first events: what they touch is read again.
  const doubtful = Date.now() - fresh < 1500;
  for (const e of events) {
    lastSeq = Math.max(lastSeq, e.seq);
    if (e.kind.startsWith("agent.") || e.kind.startsWith("orchestrator.") || e.kind.startsWith("host.")) statusToo = true;
    if (e.kind.startsWith("question.") || e.kind === "task.help_wanted") questionsToo = true;
    if (e.kind === "orchestrator.gap" || e.kind === "orchestrator.reloaded") again = true;
    if (e.kind === "orchestrator.stopping" || e.kind === "orchestrator.stopped") { stopped.value = true; stops++; }
    if (!e.task) continue;
    if (apply(tasks, e) === "unclear" || doubtful) dirty.add(e.task);
    const part = tasks.get(e.task);
    if (part && isPart(part) && e.kind !== "task.progress") dirty.add(part.parentTaskId ?? ""); // it may need a person when its part does
    changed.add(e.task);
  }
  batch(() => {
    if (changed.size) tick.value++;
    for (const listener of listeners) listener(events);
  });
  if (changed.size) statusToo = true; // agents show their tasks
  if (again) return void load();
  if (statusToo) later("status", 1000, refreshStatus);
  if (questionsToo) laterQuestions(50);
  if (dirty.size) later("tasks", 300, refreshTasks);
}

/**
 * Reads a list of events, and adds those that come meanwhile and later.
 * @param {(signal: AbortSignal) => Promise<Event[]>} read @param {(e: Event) => boolean} wants @param {any[]} deps when to read again
 * @param {number} [max] @returns {[Event[]|null, string]} the events, or null as long as they are read, and what went wrong
 */
export function useEvents(read, wants, deps, max = 100_000) {
  const [state, setState] = useState(/** @type {{events: Event[]|null, trouble: string}} */ ({ events: null, trouble: "" }));
  useEffect(() => {
    const abort = new AbortController();
    let early = /** @type {Event[]|null} */ ([]);
    setState({ events: null, trouble: "" });
    const off = onEvents((batch) => {
      const mine = batch.filter(wants);
      if (early) early.push(...mine);
      else if (mine.length) setState((old) => ({ ...old, events: [...(old.events ?? []), ...mine].slice(-max) }));
    });
    read(abort.signal).then((found) => {
      const last = found.at(-1)?.seq ?? 0;
      setState({ events: [...found, ...(early ?? []).filter((e) => e.seq > last)], trouble: "" });
      early = null;
    }, (e) => { if (!abort.signal.aborted) setState({ events: null, trouble: e.message }); });
    return () => { abort.abort(); off(); };
  }, deps);
  return [state.events, state.trouble];
}

const timers = new Map(/** @type {[string, number][]} */ ([]));
/** Calls once, after a while. @param {string} name @param {number} ms @param {() => unknown} call */
function later(name, ms, call) {
  if (timers.has(name)) return;
  timers.set(name, window.setTimeout(() => (timers.delete(name), call()), ms));
}

/** Reads the questions after a while, and again if that fails. @param {number} ms */
function laterQuestions(ms) {
  later("questions", ms, () => refreshQuestions().catch(() => laterQuestions(3000)));
}

export async function refreshStatus() {
  try { status.value = await ask("status"); } catch { /* the stream shows that the link is gone */ }
}

/** With several hubs, reads the status now and then: no event says that the others are lost. */
const watchHubs = () => later("hubs", 5000, async () => {
  if (!me.value || !status.value?.hub) return;
  await refreshStatus();
  watchHubs();
});

export async function refreshQuestions() {
  const { questions: found } = await ask("list-questions");
  questions.value = found;
  questionsLoaded.value = true;
}

/** Reads the tasks again that events did not describe in full. */
async function refreshTasks() {
  const ids = [...dirty];
  dirty.clear();
  if (ids.length > 50) return load();
  await Promise.all(ids.map(async (id) => {
    try {
      const { task } = await ask("get-task", { taskId: id });
      tasks.set(id, task);
    } catch { /* it is archived: what is known stays */ }
  }));
  tick.value++;
}

/** Reads one task again, such as after a decision. @param {string} id */
export async function refreshTask(id) {
  dirty.add(id);
  await refreshTasks();
}

// A hidden tab has no stream after a while. It reads the questions now and then, for its title.
setInterval(() => { if (document.hidden && loaded.value) refreshQuestions().catch(() => {}); }, 10_000);

document.addEventListener("visibilitychange", async () => {
  if (document.hidden || !loaded.value) return;
  await Promise.all([refreshStatus(), refreshQuestions().catch(() => {})]);
  if (status.value.seq - lastSeq > maxBehind) load();
});
