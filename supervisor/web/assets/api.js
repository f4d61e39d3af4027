// The HTTP API. Each request has the cookie of the session, and all are made here.
import { signal } from "./vendor-ui.js";

/** @typedef {{name: string, role: "viewer"|"operator"|"admin", team: string, version: string}} Me */

/** The person who is signed in: undefined before the first answer, null if there is none. */
export const me = signal(/** @type {Me|null|undefined} */ (undefined));

/** Whether the person may change anything. */
export const mayAct = () => !!me.value && me.value.role !== "viewer";

/** A refused request. */
export class Refusal extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {any} [details] */
  constructor(status, code, message, details) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** @param {Response} answer */
async function refusal(answer) {
  const text = await answer.text();
  try {
    const { error } = JSON.parse(text);
    return new Refusal(answer.status, error.code, [error.message, error.hint].filter(Boolean).join(". "), error.details);
  } catch {
    return new Refusal(answer.status, "unreadable", text.slice(0, 200) || `the answer has the status ${answer.status}`);
  }
}

/**
 * Sends a request and returns the answer. A session that has ended shows the sign-in page.
 * @param {string} path @param {RequestInit} [options]
 */
export async function request(path, options) {
  const answer = await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
  if (answer.ok) return answer;
  if (answer.status === 401) me.value = null;
  throw await refusal(answer);
}

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] */
const post = (path, body, signal) =>
  request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });

/**
 * Asks an operation, with the payload that it has on stdio. It resolves when the answer is
 * there, and so when the decision is recorded.
 * @param {string} operation @param {object} [payload] @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function ask(operation, payload = {}, signal) {
  return (await post("/api/v1/operations/" + operation, payload, signal)).json();
}

/**
 * Reads a list: events, logs or messages.
 * @param {string} name @param {Record<string, string|number|string[]|undefined>} query @param {AbortSignal} [signal]
 * @returns {Promise<any[]>}
 */
export async function list(name, query, signal) {
  const answer = await request(`/api/v1/${name}?${search(query)}`, { signal });
  return (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** Returns the text of a query. @param {Record<string, string|number|string[]|undefined>} query */
export function search(query) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== "") words.append(name, String(one));
  }
  return words.toString();
}

/** Signs in with the code of the fragment, or finds who is signed in. */
export async function whoAmI() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      me.value = await (await post("/ui/sign-in", { code })).json();
      return;
    } catch (error) {
      signInTrouble.value = error instanceof Error ? error.message : String(error);
    }
  }
  try {
    me.value = await (await request("/ui/me")).json();
  } catch (error) {
    me.value = null;
    if (!(error instanceof Refusal)) signInTrouble.value = "The orchestrator does not answer.";
  }
}

export const signInTrouble = signal("");

export async function signOut() {
  await post("/ui/sign-out", {});
  me.value = null;
}
