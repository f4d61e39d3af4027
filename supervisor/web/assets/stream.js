// Follows a list of the API, such as the events, and reconnects by itself.
import { request, search, Refusal } from "./api.js";

/**
 * @typedef {object} Link
 * @property {"connecting"|"live"|"waiting"|"paused"} state
 * @property {number} [until] when the next attempt is made, in ms
 */

const flushMS = 100; // 10 times a second
const hiddenMS = 15_000; // a tab that is hidden this long lets its connection go: a browser has only six to one origin
const delays = [1000, 3000, 3000, 5000, 10000];

/**
 * Follows /api/v1/NAME. Items arrive in batches, at most 10 a second. The stream resumes after
 * the last number that it has seen.
 * @param {object} options
 * @param {string} options.name events, logs or messages
 * @param {Record<string, any>} [options.query]
 * @param {number} [options.since] the last number that is known
 * @param {(item: any) => Record<string, any>} [options.beyond] the query for items after one, if they have no numbers
 * @param {(items: any[]) => void} options.onItems
 * @param {() => void} [options.onReset] items are missing: the state must be read again
 * @param {(link: Link) => void} [options.onLink]
 */
export function follow({ name, query = {}, since, beyond, onItems, onReset = () => {}, onLink = () => {} }) {
  let last = since;
  let closed = false;
  let failures = 0;
  /** @type {any[]} */
  let held = [];
  let timer = 0;
  let retry = 0;
  let pause = 0;
  let paused = document.hidden;
  let abort = new AbortController();

  const flush = () => {
    timer = 0;
    const items = held;
    held = [];
    if (items.length && !closed) onItems(items);
  };
  const take = (/** @type {any} */ item, /** @type {string} */ id) => {
    const seq = Number(id || item.seq);
    if (seq) last = Math.max(last ?? 0, seq);
    if (beyond) query = { ...query, ...beyond(item) };
    held.push(item);
    timer ||= window.setTimeout(flush, flushMS);
  };

  const run = async () => {
    const mine = (abort = new AbortController());
    onLink({ state: "connecting" });
    let delay;
    try {
      /** @type {Record<string, string>} */
      const headers = { Accept: "text/event-stream" };
      if (last !== undefined) headers["Last-Event-ID"] = String(last);
      const path = `/api/v1/${name}?${search({ ...query, follow: "true", since: last })}`;
      const answer = await request(path, { signal: mine.signal, headers });
      failures = 0;
      onLink({ state: "live" });
      const events = (answer.headers.get("Content-Type") ?? "").includes("event-stream");
      await (events ? readEvents : readLines)(answer.body, take, () => !closed && onReset(), (ms) => (delay = ms));
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) closed = true;
    }
    if (closed || mine.signal.aborted) return;
    const ms = delay ?? delays[Math.min(failures++, delays.length - 1)];
    onLink({ state: "waiting", until: Date.now() + ms });
    retry = window.setTimeout(run, ms);
  };
  const rest = () => {
    paused = true;
    clearTimeout(retry);
    abort.abort();
    onLink({ state: "paused" });
  };
  const look = () => {
    clearTimeout(pause);
    if (document.hidden) pause = window.setTimeout(rest, hiddenMS);
    else if (paused) { paused = false; run(); }
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", rest); // the page may be kept for the button Back, and its connection with it
  addEventListener("pageshow", look);
  if (!paused) run();

  return {
    close() {
      closed = true;
      for (const t of [retry, timer, pause]) clearTimeout(t);
      abort.abort();
      document.removeEventListener("visibilitychange", look);
      removeEventListener("pagehide", rest);
      removeEventListener("pageshow", look);
    },
  };
}

/** Calls with each line of a body. @param {any} body @param {(line: string) => void} each */
async function eachLine(body, each) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(each);
  }
}

/** Reads JSON lines. @param {any} body @param {(item: any, id: string) => void} take */
function readLines(body, take) {
  return eachLine(body, (line) => line && take(JSON.parse(line), ""));
}

/**
 * Reads server-sent events.
 * @param {any} body @param {(item: any, id: string) => void} take @param {() => void} reset @param {(ms: number) => void} wait
 */
function readEvents(body, take, reset, wait) {
  let id = "", kind = "", text = "";
  return eachLine(body, (raw) => {
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    if (line === "") {
      if (kind === "reset") reset();
      else if (text) take(JSON.parse(text), id);
      id = kind = text = "";
      return;
    }
    const at = line.indexOf(":");
    const field = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + (line[at + 1] === " " ? 2 : 1));
    if (field === "id") id = value;
    else if (field === "event") kind = value;
    else if (field === "data") text += (text && "\n") + value;
    else if (field === "retry" && /^\d+$/.test(value)) wait(Number(value));
  });
}
