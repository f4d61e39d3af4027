// src/roles/architect.ts
import { randomUUID as randomUUID2 } from "node:crypto";

// src/connection/waiting.ts
import { setMaxListeners } from "node:events";
var Bell = class {
  #rung = 0;
  #waiting = /* @__PURE__ */ new Set();
  /** How often it has rung. */
  get rung() {
    return this.#rung;
  }
  ring() {
    this.#rung++;
    const waiting2 = this.#waiting;
    this.#waiting = /* @__PURE__ */ new Set();
    for (const wake of waiting2) wake();
  }
  /**
   * Waits until it has rung more often, or for ms milliseconds. Read rung before looking at the
   * state, so that no ring is missed.
   */
  after(rung, signal, ms) {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (rung !== this.#rung) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = ms === void 0 ? void 0 : setTimeout(wake, ms);
      const waiting2 = this.#waiting;
      const done = () => {
        waiting2.delete(wake);
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort2);
      };
      function wake() {
        done();
        resolve();
      }
      function abort2() {
        done();
        reject(signal?.reason);
      }
      waiting2.add(wake);
      signal?.addEventListener("abort", abort2);
    });
  }
};
function unless(promise, signal) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort2 = () => reject(signal.reason);
    if (signal.aborted) abort2();
    else signal.addEventListener("abort", abort2);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort2));
  });
}
function sleep(ms, signal) {
  const never = new Bell();
  return never.after(never.rung, signal, ms);
}
async function rest(ms, ended) {
  const wait = ms * (1 + Math.random() / 4);
  const over = await sleep(wait, ended).then(() => false, () => true);
  if (over) await sleep(Math.min(wait, shortPause));
  return over;
}
var [shortPause, longPause] = [1e3, 16e3];
var Linked = class {
  #own = new AbortController();
  #to;
  #follow = () => this.#own.abort(this.#to?.reason);
  constructor(to) {
    setMaxListeners(0, this.#own.signal);
    this.#to = to;
    if (to?.aborted) this.#follow();
    else to?.addEventListener("abort", this.#follow);
  }
  get signal() {
    return this.#own.signal;
  }
  /** Aborts the signal. Only the first reason counts. */
  abort(reason) {
    this.letGo();
    this.#own.abort(reason);
  }
  letGo() {
    this.#to?.removeEventListener("abort", this.#follow);
  }
};
var remembered = 4096;
var Recent = class {
  #byKey = /* @__PURE__ */ new Map();
  /**
   * Adds a value, drops the oldest one if full, and reports whether the key is new. The value of a
   * known key stays.
   */
  add(key2, value2) {
    if (this.#byKey.has(key2)) return false;
    this.#byKey.set(key2, value2);
    for (const oldest of this.#byKey.keys()) {
      if (this.#byKey.size <= remembered) break;
      this.#byKey.delete(oldest);
    }
    return true;
  }
  get(key2) {
    return this.#byKey.get(key2);
  }
  /** Removes and returns the value of a key. */
  take(key2) {
    const value2 = this.#byKey.get(key2);
    this.#byKey.delete(key2);
    return value2;
  }
};
var Queue = class {
  #items = [];
  #first = 0;
  get length() {
    return this.#items.length - this.#first;
  }
  push(item) {
    this.#items.push(item);
  }
  peek() {
    return this.#items[this.#first];
  }
  shift() {
    const item = this.#items[this.#first];
    if (item === void 0) return void 0;
    if (++this.#first > 1024 && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
};

// src/wire/errors.ts
var Reason = {
  /** Too many messages; retry later. */
  Limited: "rate_limited",
  /** Conflicts with the current state. */
  Conflict: "conflict",
  /** The task is in the wrong state, for example ended. */
  WrongState: "wrong_state",
  /** The task waits for others. */
  Blocked: "blocked"
};
var longestRetryAfter = 48 * 36e5;
var Refused = class extends Error {
  name = "Refused";
  code;
  /** An object with its text as raw. */
  details;
  /** The refused operation, such as "get-task". */
  operation;
  constructor(why, operation) {
    super(why.message);
    this.code = why.code;
    this.details = why.details;
    this.operation = operation;
  }
  /** The reason in the details, or "". */
  get reason() {
    const reason = this.details?.["reason"];
    return typeof reason === "string" ? reason : "";
  }
  /**
   * The milliseconds to wait before the same is sent again; 0 if the refusal does not say. A refusal
   * with Reason.Limited has it.
   */
  get retryAfter() {
    const after3 = this.details?.["retry_after_ms"];
    return typeof after3 === "number" && after3 >= 0 && after3 <= longestRetryAfter ? after3 : 0;
  }
  /** The operation, the message and the code. */
  get spoken() {
    return `${this.operation ? this.operation + ": " : ""}${this.message} (${this.code})`;
  }
};
var Unsaid = class extends Error {
  name = "Unsaid";
};
var Closed = class extends Error {
  name = "Closed";
  asked;
  constructor(message2, asked2, cause) {
    super(message2, cause === void 0 ? void 0 : { cause });
    this.asked = asked2;
  }
};
var Torn = class extends Error {
  name = "Torn";
};
var Cancelled = class extends Error {
  name = "Cancelled";
  /** Why it was cancelled. */
  reason;
  constructor(reason, cause) {
    super(`the task was cancelled${reason === "" ? "" : `: ${reason}`}`, cause === void 0 ? void 0 : { cause });
    this.reason = reason;
  }
};
var Shutdown = class extends Error {
  name = "Shutdown";
  constructor() {
    super("the agent is to shut down");
  }
};
var Again = class extends Error {
  name = "Again";
  constructor() {
    super("the task was assigned again");
  }
};
var Withdrawn = class extends Error {
  name = "Withdrawn";
  constructor() {
    super("the question was withdrawn");
  }
};
var Unfinished = class extends Error {
  name = "Unfinished";
  tasks;
  constructor(tasks, cause) {
    super(`${tasks} of the tasks left unfinished: ${spoken(cause)}`, { cause });
    this.tasks = tasks;
  }
};
var Fatal = class extends Error {
  name = "Fatal";
  code;
  constructor(code, message2, options2) {
    super(message2, options2);
    this.code = code;
  }
};
function spoken(error) {
  if (error instanceof Error) return String("spoken" in error ? error.spoken : error.message);
  try {
    return String(error);
  } catch {
    return "something that has no words";
  }
}
function words(error) {
  const text = spoken(error);
  return text.trim() === "" ? "it failed without a word" : text;
}
function refusedFor(reason, error) {
  return error instanceof Refused && error.reason === reason;
}
function gaveUp(signal, error) {
  if (error instanceof Closed) return true;
  if (!signal.aborted || !(error instanceof Error)) return error !== void 0 && signal.aborted && error === signal.reason;
  return error === signal.reason || error.name === "AbortError" || error.cause === signal.reason;
}

// src/wire/json.ts
function spell(value2) {
  switch (typeof value2) {
    case "string":
      return JSON.stringify(whole(value2));
    case "number":
      if (!Number.isFinite(value2)) throw new TypeError(`${value2} is no number in JSON`);
      return JSON.stringify(value2);
    case "boolean":
      return String(value2);
    case "bigint":
      return String(value2);
    case "object":
      return spellObject(value2);
    default:
      return void 0;
  }
}
function spellObject(value2) {
  if (value2 === null) return "null";
  if (value2 instanceof Raw) return value2.text;
  if ("toJSON" in value2 && typeof value2.toJSON === "function") return spell(value2.toJSON());
  if (Array.isArray(value2)) return "[" + value2.map((item) => spell(item) ?? "null").join() + "]";
  const members = [];
  for (const [key2, member] of Object.entries(value2)) {
    const text = spell(member);
    if (text !== void 0) members.push(JSON.stringify(whole(key2)) + ":" + text);
  }
  return "{" + members.join() + "}";
}
var half = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
function whole(text) {
  if (half.test(text)) throw new TypeError(halfOf);
  return text;
}
var halfOf = "it contains half of a character, an escape such as \\ud800 without its other half";
function hasHalf(text) {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return false;
  const escape = /\\(?:u([0-9a-fA-F]{4})|[^])/g;
  let high = -1;
  for (let found = escape.exec(text); found; found = escape.exec(text)) {
    const unit = found[1] === void 0 ? 0 : parseInt(found[1], 16);
    const low = unit >= 56320 && unit <= 57343;
    if (low !== (high === found.index)) return true;
    if (high >= 0 && !low) return true;
    high = unit >= 55296 && unit < 56320 ? escape.lastIndex : -1;
  }
  return high >= 0;
}
function complaint(text) {
  try {
    JSON.parse(text);
  } catch {
    return "it is not valid JSON";
  }
  return hasHalf(text) ? halfOf : void 0;
}
var Raw = class _Raw {
  text;
  /** The text must be one JSON value. It is put on one line. */
  constructor(text) {
    const wrong = complaint(text);
    if (wrong !== void 0) throw new SyntaxError(wrong);
    this.text = text.trim().replace(/[\r\n]/g, "");
  }
  /** @internal Returns a part of a text that is known to be valid. */
  static part(text) {
    const raw = Object.create(_Raw.prototype);
    raw.text = text;
    return raw;
  }
  /** Returns the value as JSON.parse does: numbers keep only the digits that JavaScript has. */
  value() {
    return JSON.parse(this.text);
  }
  /**
   * Returns the value at a path of keys and list indexes, or undefined. Of duplicate keys the last
   * one counts, as for JSON.parse.
   */
  at(...path) {
    let here = this;
    for (const step of path) {
      if (here === void 0) return void 0;
      here = typeof step === "number" ? here.items()[step] : here.members().findLast(step);
    }
    return here;
  }
  /** Returns the members of an object, in their order. Other values have none. */
  members() {
    return new Members(this.text);
  }
  /** @internal Returns the same object with another value under a key, or without the key. */
  with(key2, value2) {
    const members = this.members().all.filter(([name]) => name !== key2);
    if (value2 !== void 0) members.push([key2, value2]);
    return _Raw.part("{" + members.map(([name, member]) => `${JSON.stringify(name)}:${member.text}`).join() + "}");
  }
  /** Returns the items of a list. Other values have none. */
  items() {
    const items = [];
    if (this.text[0] !== "[") return items;
    for (let at = space(this.text, 1); this.text[at] !== "]"; at = after(this.text, at)) {
      const end = skip(this.text, at);
      items.push(_Raw.part(this.text.slice(at, end)));
      at = end;
    }
    return items;
  }
  toString() {
    return this.text;
  }
};
var Members = class {
  all = [];
  constructor(text) {
    if (text[0] !== "{") return;
    for (let at = space(text, 1); text[at] !== "}"; at = after(text, at)) {
      const colon = space(text, skip(text, at));
      const begin = space(text, colon + 1);
      const end = skip(text, begin);
      const key2 = JSON.parse(text.slice(at, colon));
      this.all.push([key2, Raw.part(text.slice(begin, end))]);
      at = end;
    }
  }
  /** Returns the values under a key. */
  of(key2) {
    return this.all.filter(([name]) => name === key2).map(([, value2]) => value2);
  }
  /** @internal Returns the last value under a key. */
  findLast(key2) {
    return this.of(key2).at(-1);
  }
};
function space(text, at) {
  for (; ; ) {
    const c = text.charCodeAt(at);
    if (c !== 32 && c !== 9 && c !== 10 && c !== 13) return at;
    at++;
  }
}
function after(text, at) {
  at = space(text, at);
  return text[at] === "," ? space(text, at + 1) : at;
}
function skip(text, at) {
  switch (text[at]) {
    case '"':
      return skipString(text, at);
    case "{":
    case "[":
      return skipNested(text, at);
  }
  const end = /[,\]}\s]/g;
  end.lastIndex = at;
  return end.exec(text)?.index ?? text.length;
}
function skipString(text, at) {
  for (let quote = text.indexOf('"', at + 1); ; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (text[quote - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
}
function skipNested(text, at) {
  const mark = /["{}[\]]/g;
  let depth = 0;
  for (mark.lastIndex = at; ; ) {
    const found = mark.exec(text);
    if (!found) return text.length;
    if (found[0] === '"') mark.lastIndex = skipString(text, found.index);
    else if (found[0] === "{" || found[0] === "[") depth++;
    else if (--depth === 0) return mark.lastIndex;
  }
}
function read(raw) {
  return withRaw(raw.value(), raw);
}
function withRaw(value2, raw) {
  if (typeof value2 === "object" && value2 !== null) Object.defineProperty(value2, "raw", { value: raw, enumerable: false });
  return value2;
}
function partOf(answer, key2) {
  const part = answer.raw.at(key2);
  if (part === void 0 || part.text === "null") return read(Raw.part("{}"));
  if (part.text[0] !== "{") throw new TypeError(`understanding the answer: ${key2} must be an object`);
  return read(part);
}
function listOf(answer, key2) {
  const list2 = answer.raw.at(key2) ?? Raw.part("[]");
  return withRaw(list2.items().map((item) => read(item)), list2);
}

// src/wire/fill.ts
function isOpen(value2) {
  return typeof value2 === "object" && value2 !== null && !Array.isArray(value2) && !(value2 instanceof Raw);
}
function fill(defaults, given) {
  if (!isOpen(given)) return given ?? defaults;
  const all = { ...defaults };
  for (const [key2, value2] of Object.entries(given)) {
    if (value2 === void 0 || value2 === null) continue;
    const usual = all[key2];
    all[key2] = isOpen(usual) && isOpen(value2) ? fill(usual, value2) : value2;
  }
  return all;
}
function each(list2, complete) {
  return Array.isArray(list2) ? list2.map(complete) : list2;
}
function correct(of, key2, value2) {
  if (of[key2] !== void 0 && value2 !== void 0) of[key2] = value2;
}
function assignment(given) {
  const a = fill(
    {
      task: {
        task_id: "",
        task_description: "",
        context: { specs: [], reference_files: [] },
        constraints: { scope: [], testing_required: false, must_not_break: [] },
        acceptance_criteria: []
      },
      priority: "medium"
    },
    given
  );
  const context = a.task.context;
  for (const key2 of ["specs", "reference_files"]) correct(context, key2, each(context[key2], (f) => fill({ path: "", reason: "" }, f)));
  correct(context, "previous_attempts", each(context.previous_attempts, (t) => fill({ attempt_number: 0, outcome: "", feedback: "" }, t)));
  correct(a, "dependencies", each(a.dependencies, (d) => fill({ depends_on: [], dependency_type: "hard" }, d)));
  return a;
}
function progress(given) {
  return fill({ task_id: "", progress_percent: 0, current_step: "", files_modified_so_far: [] }, given);
}
function completion(given) {
  const c = fill(
    {
      task_id: "",
      status: "completed",
      changes: { files_created: [], files_modified: [], files_deleted: [] },
      summary: "",
      self_review: { tests_run: false, tests_passed: false, type_check_passed: false }
    },
    given
  );
  const typed = (change_type) => (f) => fill({ path: "", change_type }, f);
  correct(c.changes, "files_created", each(c.changes.files_created, typed("created")));
  correct(c.changes, "files_modified", each(c.changes.files_modified, typed("modified")));
  return c;
}
function reviewRequest(given) {
  const r = fill(
    {
      review_id: "",
      task_id: "",
      scope: { files: [], focus_areas: [] },
      criteria: { must_pass_tests: false, must_pass_type_check: false },
      context: { task_description: "", acceptance_criteria: [] }
    },
    given
  );
  correct(r.criteria, "custom_checks", each(r.criteria.custom_checks, (c) => fill({ name: "", command: "", expected_exit_code: 0 }, c)));
  return r;
}
function reviewResult(given) {
  const r = fill(
    {
      review_id: "",
      task_id: "",
      verdict: "",
      findings: [],
      verification: { tests: { passed: false }, type_check: { passed: false }, custom: {} },
      summary: ""
    },
    given
  );
  correct(r, "findings", each(r.findings, finding));
  correct(r, "required_changes", each(r.required_changes, (c) => fill({ change_id: "", priority: "", related_findings: [], description: "" }, c)));
  return r;
}
function finding(given) {
  return fill({ finding_id: "", severity: "", category: "", location: { file: "" }, description: "", rationale: "" }, given);
}
function feedback(given) {
  return fill({ feedback_type: "", subject: "", content: "", action_required: false }, given);
}
function abort(given) {
  return fill({ scope: "", target_id: "", reason: "", cleanup_required: false }, given);
}

// src/work/sessiontask.ts
import { randomUUID } from "node:crypto";

// src/connection/sent.ts
var Undelivered = class extends Refused {
  name = "Undelivered";
  get spoken() {
    const tries = Number(this.details?.retry_count ?? 0);
    return `not delivered${tries > 0 ? ` after ${tries + 1} attempts` : ""}: ${super.spoken}`;
  }
  /** @internal Whether the delivery is retried. */
  get again() {
    return this.details?.next_retry_at !== void 0 && this.details.next_retry_at !== "";
  }
  /**
   * The patterns of the files that a task may change; undefined if the message was refused for
   * another reason.
   */
  get scope() {
    const scope = this.details?.["scope"];
    return Array.isArray(scope) ? scope.map(String) : void 0;
  }
};
var Sent = class {
  messageId;
  correlationId;
  sequenceNumber;
  /**
   * Resolves to the reason when the message will not be delivered. It stays pending while delivery
   * is retried.
   */
  refused;
  /** @internal */
  type;
  /** @internal The name of the recipient. */
  to;
  #tell;
  #why;
  /** @internal */
  constructor(type, to, messageId, correlationId, sequenceNumber) {
    this.type = type;
    this.to = to;
    this.messageId = messageId;
    this.correlationId = correlationId;
    this.sequenceNumber = sequenceNumber;
    this.refused = new Promise((resolve) => this.#tell = resolve);
  }
  /** Why the message will not be delivered, or undefined while that is not known. */
  get error() {
    return this.#why;
  }
  /** @internal */
  refuse(why) {
    this.#why = why;
    this.#tell(why);
  }
};

// src/wire/sessions.ts
var messageTypes = [
  "task_assignment",
  "task_progress",
  "task_completion",
  "review_request",
  "review_result",
  "feedback",
  "status_query",
  "status_response",
  "abort",
  "acknowledgment"
];
var agentTypes = ["architect", "developer", "reviewer"];
var priorities = ["high", "medium", "low"];
var dependencyTypes = ["hard", "soft"];
var outcomes = ["completed", "partial", "failed"];
var changeTypes = ["created", "modified", "deleted"];
var focusAreas = ["security", "performance", "style", "logic", "error_handling", "test_coverage"];
var verdicts = ["approved", "changes_requested", "rejected"];
var severities = ["critical", "major", "minor", "suggestion"];
var categories = ["bug", "security", "performance", "style", "logic", "test"];
var fixes = ["must_fix", "should_fix", "consider"];
var feedbackTypes = ["clarification", "correction", "guidance", "question"];
var abortScopes = ["task", "session"];
function after2(...tasks) {
  return tasks.length === 0 ? [] : [{ depends_on: tasks, dependency_type: "hard" }];
}
function touched(changes) {
  return [...changes.files_created.map((f) => f.path), ...changes.files_modified.map((f) => f.path), ...changes.files_deleted];
}

// src/work/delivery.ts
var Ended = class extends Error {
  name = "Ended";
  taskId;
  /** Undefined if unknown. */
  state;
  why;
  constructor(taskId, state, why) {
    super(state === void 0 ? `task ${taskId}: ${why}` : `task ${taskId} is ${state}: ${why}`);
    this.taskId = taskId;
    this.state = state;
    this.why = why;
  }
};
var Incomplete = class extends Error {
  name = "Incomplete";
  constructor() {
    super("the developer has not completed it");
  }
};
var Rejected = class extends Error {
  name = "Rejected";
  constructor() {
    super("the reviewer has rejected it: it has to be planned anew");
  }
};
var Unreviewed = class extends Error {
  name = "Unreviewed";
  constructor(why) {
    super(`the reviewer cannot review it: ${why}`);
  }
};
var Undone = class extends Error {
  name = "Undone";
  /** The delivery so far. */
  delivery;
  constructor(delivery, cause) {
    super(spoken(cause), { cause });
    this.delivery = delivery;
  }
};

// src/work/sessiontask.ts
function kind(t) {
  return t.completion ? "completion" : t.result ? "result" : t.feedback ? "feedback" : t.cancelled ? "cancelled" : "notice";
}
var mostTidings = 64;
var lastWord = 1e4;
var SessionTask = class {
  #tasks;
  #bell = new Bell();
  #reviews = [];
  #id;
  #developer = "";
  #work;
  // as it was assigned last
  #first = "";
  // the first description of the task
  #chain;
  #done;
  #sent;
  // the last assignment
  #tidings = [];
  // updates not taken yet
  /** @internal */
  constructor(tasks, id) {
    this.#tasks = tasks;
    this.#id = id;
  }
  get id() {
    return this.#id;
  }
  /** @internal */
  put(tiding) {
    const alike2 = this.#tidings.filter((t) => kind(t) === kind(tiding));
    if (alike2.length >= mostTidings) this.#tidings.splice(this.#tidings.indexOf(alike2[0]), 1);
    this.#tidings.push(tiding);
    this.#bell.ring();
  }
  /** @internal Sends an assignment with the correlation_id of the first one. */
  async assign(developer, work, first = false) {
    this.#id = work.task.task_id;
    this.#developer = developer;
    this.#work = work;
    if (first) this.#first = work.task.task_description;
    this.#sent = await this.#session().assign(developer, work);
    this.#chain = this.#sent.correlationId;
  }
  /** Returns the session with the task's correlation_id. */
  #session() {
    const { session } = this.#tasks;
    const chain = this.#chain ?? session.correlationId;
    return chain === void 0 ? session : session.chain(chain);
  }
  /**
   * Waits for the completion of the task. Throws Undelivered if the assignment is refused, and
   * Ended if the task has ended without a completion.
   */
  async completion() {
    const { completion: completion2 } = await this.#wait(this.#sent, (t) => t.completion !== void 0, true);
    this.#done = completion2;
    return this.#done;
  }
  /**
   * Has the task reviewed and waits for the result. Missing members of the request are filled in
   * from the task. Throws the errors of completion, and Unreviewed if the reviewer cannot review
   * it.
   */
  async review(reviewer, request = {}) {
    const review = asked(request, {
      id: request.review_id || "review-" + randomUUID(),
      task: this.#id,
      done: this.#done,
      first: this.#first,
      work: this.#work,
      reviews: this.#reviews
    });
    const sent = await this.#session().requestReview(reviewer, review);
    const answer = (t) => t.result !== void 0 && t.result.review_id === review.review_id || t.answers === sent.messageId;
    const { result: result2, feedback: feedback2 } = await this.#wait(sent, answer, false);
    if (result2 === void 0) throw new Unreviewed(`${feedback2?.subject}: ${feedback2?.content}`);
    this.#reviews.push({ review_number: this.#reviews.length + 1, verdict: result2.verdict, key_findings: keyFindings(result2) });
    return result2;
  }
  /**
   * Assigns the task to its developer again. The findings of the review are in the description and
   * in a previous attempt. A new id becomes that of the task.
   */
  async revise(result2, id = this.#id) {
    this.#tasks.rename(this, id);
    const said2 = wanted(result2);
    const task2 = this.#work?.task;
    const attempts = task2?.context.previous_attempts ?? [];
    const attempt = { attempt_number: attempts.length + 1, outcome: result2.verdict, feedback: said2 };
    await this.assign(this.#developer, {
      ...this.#work,
      task: {
        ...task2,
        task_id: id,
        task_description: this.#first === "" ? said2 : `${this.#first}

${said2}`,
        context: { ...task2.context, previous_attempts: [...attempts, attempt] }
      }
    });
  }
  /** Aborts the task and wakes the caller that waits for it. */
  async abort(reason, cleanup = false) {
    const to = { agent_id: this.#developer, agent_type: "developer" };
    const id = this.#id;
    await this.#session().abort(to, { scope: "task", target_id: id, reason, cleanup_required: cleanup });
    this.put({ notice: { taskId: id, reason }, cancelled: true });
  }
  /**
   * Like Architect.deliver, for a task that is already assigned, such as a dependency of the next
   * one.
   */
  async deliver(order) {
    const d = { taskId: this.#id, completion: void 0, review: void 0, reviews: 0, forced: false };
    try {
      while (await this.#attempt(order, d)) ;
    } catch (error) {
      const why = d.reviews > 0 ? await this.#settled(d.taskId, error) : error;
      if (why !== void 0) throw new Undone(d, why);
    }
    d.forced = d.review?.verdict === "changes_requested";
    return d;
  }
  /** Waits for a completion and its review. Reports whether another attempt follows. */
  async #attempt(order, d) {
    d.completion = await this.completion();
    const { status } = d.completion;
    if (status === "failed" || !order.reviewer && status !== "completed") throw new Incomplete();
    if (!order.reviewer) return false;
    d.review = await this.review(order.reviewer, order.review);
    d.taskId = this.#id;
    d.reviews++;
    if (d.review.verdict === "approved") return false;
    if (d.review.verdict === "rejected") throw new Rejected();
    await this.#mayRevise();
    await this.revise(d.review, order.rename?.(d.reviews + 1) ?? this.#id);
    return true;
  }
  /**
   * Throws Ended if the session has ended the task or passed it to a person, because its reviews
   * are used up. A revision under another id would count as a new task.
   */
  async #mayRevise() {
    const ended = await this.#tasks.ended(this.#id, "").catch((error) => {
      if (!(error instanceof Refused)) throw error;
    });
    if (ended) throw ended;
  }
  /**
   * Returns the final error of a reviewed task that cannot be revised. Returns undefined if the
   * session has marked the task as done, as its on_max setting may require.
   */
  async #settled(task2, error) {
    let ended = error instanceof Ended ? error : void 0;
    if (error instanceof Undelivered && ["task_id_taken", "iterations_used_up"].includes(error.reason)) {
      ended = await this.#tasks.ended(task2, error.message).catch(() => void 0);
    }
    if (ended === void 0) return error;
    return ended.state === "done" ? void 0 : ended;
  }
  /**
   * Waits for an update. Throws if the message sent is refused, or if a notice reports the end of
   * the task.
   */
  async #wait(sent, wanted2, done) {
    const refused = new Linked(this.#tasks.signal);
    void sent?.refused.then((why) => refused.abort(why));
    try {
      let ended;
      let late;
      for (; ; ) {
        const rung = this.#bell.rung;
        const tiding = this.#find(wanted2);
        if (tiding) return tiding;
        const notice = this.#find((t) => t.notice !== void 0);
        if (notice) {
          const why = await this.#heed(notice).catch((error) => error);
          if (why === void 0) continue;
          const known = done && why instanceof Ended && (why.state === "done" || why.state === "failed");
          ended = why;
          late = Date.now() + (known ? lastWord : 0);
          continue;
        }
        if (late !== void 0 && Date.now() >= late) throw ended;
        await this.#bell.after(rung, refused.signal, late === void 0 ? void 0 : late - Date.now());
      }
    } finally {
      refused.letGo();
    }
  }
  #find(wanted2) {
    const at = this.#tidings.findIndex(wanted2);
    return at < 0 ? void 0 : this.#tidings.splice(at, 1)[0];
  }
  /**
   * Returns an Ended if a notice means that the task does not go on. Notices describe changes only
   * in words, so this asks for the state of the task. A task that the orchestrator does not show
   * counts as ended.
   */
  async #heed({ notice, cancelled }) {
    const { taskId, message: message2 = "", reason = "" } = notice;
    if (cancelled) return new Ended(taskId, "cancelled", reason);
    return this.#tasks.ended(taskId, message2).catch((error) => {
      if (!(error instanceof Refused)) throw error;
      return new Ended(taskId, void 0, message2);
    });
  }
};
var SessionTasks = class {
  session;
  /** Aborted when the agent has to shut down. */
  signal;
  // The latest few thousand tasks are kept, and every task that a caller still refers to. Others
  // are dropped with their updates.
  #latest = new Recent();
  #byId = /* @__PURE__ */ new Map();
  #forgotten = new FinalizationRegistry((id) => {
    if (this.#byId.get(id)?.deref() === void 0) this.#byId.delete(id);
  });
  constructor(session, signal) {
    this.session = session;
    this.signal = signal;
  }
  /** Returns the task with this id, no matter which agent assigned it. */
  get(id) {
    return this.#byId.get(id)?.deref() ?? this.rename(new SessionTask(this, id), id);
  }
  /** Registers a task under an id. A task may have several ids. */
  rename(task2, id) {
    this.#byId.set(id, new WeakRef(task2));
    this.#latest.take(id);
    this.#latest.add(id, task2);
    this.#forgotten.register(task2, id);
    return task2;
  }
  /** Asks for the state of a task. Returns undefined if the task goes on. */
  async ended(task2, why) {
    const about3 = { session_id: this.session.identity.session || void 0, task_id: task2, limit: 1 };
    const { tasks } = await this.session.conn.askPatiently("get-session", about3, this.signal);
    for (const t of tasks ?? []) {
      if (t.task_id !== task2) continue;
      const because = why || `changes are requested after ${t.iteration ?? 0} of ${t.max_iterations ?? 0} reviews`;
      const over = t.phase === "over";
      if (t.phase === "human") return new Ended(task2, "needs_human", because);
      if (over && t.escalated === "abort") return new Ended(task2, "cancelled", because);
      if (over || t.state === "failed" || t.state === "cancelled") return new Ended(task2, t.state, because);
    }
    return void 0;
  }
};
function asked(given, as) {
  const { scope = {}, context = {} } = given;
  const previous = context.previous_reviews ?? (as.reviews.length > 0 ? [...as.reviews] : void 0);
  return reviewRequest({
    ...given,
    review_id: as.id,
    task_id: as.task,
    scope: {
      ...scope,
      files: scope.files ?? (as.done ? touched(as.done.changes) : []),
      focus_areas: scope.focus_areas ?? ["logic"]
    },
    context: {
      ...context,
      task_description: context.task_description || as.first,
      acceptance_criteria: context.acceptance_criteria ?? as.work?.task.acceptance_criteria ?? [],
      ...previous && { previous_reviews: previous }
    }
  });
}
function wanted(r) {
  const changes = (r.required_changes ?? []).map((c) => `
- ${c.priority}: ${c.description}`);
  const open = r.findings.filter((f) => !f.fixed_in_iteration).map((f) => `
- ${inWords(f)}`);
  return `The review says ${r.verdict}: ${r.summary}` + changes.join("") + open.join("");
}
function keyFindings(r) {
  return r.findings.filter((f) => !f.fixed_in_iteration && f.severity !== "suggestion").map(inWords);
}
function inWords(f) {
  const place = f.location.line_start ? `${f.location.file}:${f.location.line_start}` : f.location.file;
  const suggestion = f.suggestion ? ` Suggestion: ${f.suggestion}` : "";
  return `${f.severity} (${f.category}) in ${place}: ${f.description}${suggestion}`;
}

// src/roles/architect.ts
var Architect = class _Architect {
  session;
  /** Aborted with Shutdown or Closed, or for the reason of the signal given to lead. */
  signal;
  #stop;
  #tasks;
  constructor(session, stop) {
    this.session = session;
    this.signal = stop.signal;
    this.#stop = stop;
    this.#tasks = new SessionTasks(session, this.signal);
  }
  /** @internal */
  static async lead(session, lead, signal) {
    const [stop, listening] = [new Linked(signal), new AbortController()];
    const architect = new _Architect(session, stop);
    const heard = architect.#listen(lead, listening.signal);
    try {
      return await lead.do(architect);
    } finally {
      await unless(session.conn.settled(), stop.signal).catch(() => {
      });
      listening.abort();
      await heard;
      stop.letGo();
    }
  }
  /**
   * Returns the task of the session with this id, no matter which agent assigned it. A task that
   * the caller no longer refers to is forgotten after a few thousand others.
   */
  task(id) {
    return this.#tasks.get(id);
  }
  /** Assigns a task to a developer. Sets a new id if the task has none. */
  async assign(developer, work) {
    const whole2 = assignment(work);
    whole2.task.task_id ||= randomUUID2();
    const task2 = this.task(whole2.task.task_id);
    await task2.assign(developer, whole2, true);
    return task2;
  }
  /**
   * Assigns a task, has it reviewed, and has it revised until it is approved. Also returns if the
   * session accepts the task because it has used up its reviews.
   *
   * Throws Undone, which has the delivery so far. Its cause is Incomplete or Rejected if the
   * developer or the reviewer says so, and Unreviewed if the task cannot be reviewed. It is Ended
   * if the task was aborted or waits for a person, and Undelivered if a required message was
   * refused.
   */
  async deliver(order) {
    return (await this.assign(order.developer, order.assignment)).deliver(order);
  }
  /** Ends the session for all its members. The message may go to any one of them. */
  async abortSession(to, reason) {
    await this.session.abort(to, { scope: "session", reason });
  }
  /** Passes session messages and notices to the tasks that wait for them. */
  async #listen(lead, enough) {
    const { conn } = this.session;
    const until = new Linked(this.signal);
    const follow = () => until.abort(enough.reason);
    enough.addEventListener("abort", follow);
    for (let e = await conn.next("all", until.signal); e; e = await conn.next("all", until.signal)) {
      if (e.notice) this.#noticed(e.notice);
      if (e.said) this.#told(e.said, lead);
    }
    until.letGo();
    if (conn.over !== void 0) this.#stop.abort(conn.over);
  }
  #noticed(notice) {
    if (notice.name === "shutdown") this.#stop.abort(new Shutdown());
    const cancelled = notice.name === "task-cancelled";
    if ((cancelled || notice.name === "task-updated") && typeof notice.payload.taskId === "string") {
      this.task(notice.payload.taskId).put({ notice: notice.payload, cancelled });
    }
  }
  #told(said2, lead) {
    this.session.saw(said2);
    lead.hear?.(said2);
    switch (said2.message_type) {
      case "task_completion":
        return this.task(said2.payload.task_id).put({ completion: completion(said2.payload) });
      case "review_result":
        return this.task(said2.payload.task_id).put({ result: reviewResult(said2.payload) });
      case "feedback":
        if (said2.payload.related_task_id && said2.payload.action_required && said2.reply_to) {
          this.task(said2.payload.related_task_id).put({ feedback: said2.payload, answers: said2.reply_to });
        }
    }
  }
};

// src/work/loops.ts
async function troubled(conn, error, stop) {
  let torn = error;
  if (!(error instanceof Torn)) torn = await conn.log("warn", spoken(error)).catch((e) => e);
  if (torn instanceof Torn) stop.abort(torn);
}
function parting(reason, unfinished3) {
  if (!(reason instanceof Shutdown) && !(reason instanceof Closed && reason.cause === void 0)) throw reason;
  if (unfinished3 > 0) throw new Unfinished(unfinished3, reason);
}
var Running = class {
  #all = /* @__PURE__ */ new Set();
  /** Runs a function, which must not fail: the error would be lost. */
  go(what) {
    const running = what().finally(() => this.#all.delete(running));
    this.#all.add(running);
    return running;
  }
  /** Whether nothing is running. */
  get idle() {
    return this.#all.size === 0;
  }
  async wait() {
    while (!this.idle) await Promise.all(this.#all);
  }
};
var Turns = class {
  #bell = new Bell();
  #line = [];
  #room;
  constructor(room) {
    this.#room = room;
  }
  /** Waits for a place, and returns a function that passes it on. */
  async take(signal) {
    const me = {};
    this.#line.push(me);
    try {
      for (; ; ) {
        const rung = this.#bell.rung;
        if (this.#room > 0 && this.#line[0] === me && !signal?.aborted) break;
        await this.#bell.after(rung, signal);
      }
      this.#room--;
    } finally {
      this.#line.splice(this.#line.indexOf(me), 1);
      this.#bell.ring();
    }
    return () => {
      this.#room++;
      this.#bell.ring();
    };
  }
};

// src/roles/desk.ts
var corrections = 3;
var unfinished = /* @__PURE__ */ Symbol("unfinished");
var Errand = class {
  key;
  task;
  /** The errand that it replaces. */
  before;
  /** Settled when do has returned. */
  over = Promise.resolve();
  corrected = 0;
  #stop = new Linked();
  constructor(key2, task2) {
    this.key = key2;
    this.task = task2;
  }
  get signal() {
    return this.#stop.signal;
  }
  /** Whether the errand was cancelled or replaced, so that no caller waits for its outcome. */
  get off() {
    return this.signal.reason instanceof Cancelled || this.signal.reason instanceof Again;
  }
  /** Whether the answer may be corrected again. */
  get correctable() {
    return this.corrected < corrections;
  }
  begin(within) {
    this.#stop = new Linked(within);
  }
  stop(reason) {
    this.#stop.abort(reason);
  }
  letGo() {
    this.#stop.letGo();
  }
};
var Desk = class {
  session;
  #hear;
  #errands = /* @__PURE__ */ new Map();
  // errands that are not answered, by key
  #answered = new Recent();
  // by the message_id of the answer
  #turns;
  #running = new Running();
  #stop = new Linked();
  #unfinished = 0;
  constructor(session, capacity, hear) {
    this.session = session;
    this.#turns = new Turns(Math.max(capacity ?? 1, 1));
    this.#hear = hear;
  }
  /**
   * Processes events until the agent is told to shut down, the stream ends or the signal is
   * aborted.
   */
  async work(signal) {
    const stop = this.#stop = new Linked(signal);
    for (let e = await this.#next(); e; e = await this.#next()) this.#heed(e);
    stop.abort(this.session.conn.over);
    await this.#running.wait();
    await this.session.conn.settled();
    parting(stop.signal.reason, this.#unfinished);
  }
  #next() {
    return this.session.conn.next("all", this.#stop.signal);
  }
  /** Processes an event without blocking. */
  #heed(e) {
    if (e.notice) this.#noticed(e.notice);
    if (e.lost) this.#lost(e.lost);
    if (e.said) this.#told(e.said);
  }
  #noticed(notice) {
    if (notice.name === "shutdown") this.#stop.abort(new Shutdown());
    if (notice.name === "task-cancelled" && typeof notice.payload.taskId === "string") {
      this.#cancel(notice.payload.taskId, notice.payload.reason ?? "");
    }
  }
  #told(said2) {
    this.session.saw(said2);
    this.#hear?.(said2);
    if (said2.message_type === "abort") {
      const { scope, target_id, reason } = said2.payload;
      const ours = [void 0, "", target_id].includes(this.session.identity.session);
      if (scope === "task") this.#cancel(target_id, reason);
      else if (ours) this.#cancel("", reason);
    } else if (said2.message_type === "status_query") {
      this.#go(() => this.#tellStatus(said2, said2.payload.task_id ?? ""));
    } else {
      const e = this.errand(said2);
      if (e) this.#start(e);
    }
  }
  /** Answers a status query about one task, or about all if task is "". */
  async #tellStatus(query, task2) {
    const tasks = [...this.#errands.values()].filter((e) => task2 === "" || task2 === e.task).map((e) => e.status());
    tasks.sort((a, b) => a.task_id < b.task_id ? -1 : a.task_id > b.task_id ? 1 : 0);
    const status = { status: this.#errands.size > 0 ? "busy" : "idle", tasks };
    await this.session.tellStatus(query, status);
  }
  /**
   * Stops the errands of a task, or all if task is "". Removes them at once, even if they still
   * run, because the task may be assigned again meanwhile.
   */
  #cancel(task2, reason) {
    for (const e of [...this.#errands.values()]) {
      if (task2 !== "" && task2 !== e.task) continue;
      this.#errands.delete(e.key);
      e.stop(new Cancelled(reason));
    }
  }
  /** Begins an errand. An older errand with the same key is stopped: the last message counts. */
  #start(e) {
    e.begin(this.#stop.signal);
    e.before = this.#errands.get(e.key);
    this.#errands.set(e.key, e);
    e.before?.stop(new Again());
    e.over = this.#running.go(async () => {
      await this.#finish(e, () => e.do());
      e.letGo();
      await e.before?.over;
    });
  }
  /**
   * Waits until an errand may be done. Errands with the same key never run together, because they
   * would change the same files.
   */
  async turn(e) {
    if (e.before) await unless(e.before.over, e.signal);
    e.before = void 0;
    return this.#turns.take(e.signal);
  }
  async #finish(e, what) {
    let failed;
    try {
      if (await what() === unfinished) this.#unfinished++;
    } catch (error) {
      failed = new Error(`task ${e.task}: ${spoken(error)}`, { cause: error });
      if (error instanceof Torn) failed = error;
    }
    if (this.#errands.get(e.key) === e) this.#errands.delete(e.key);
    await this.#troubled(failed);
  }
  /**
   * Remembers the answer of an errand, because it may be refused. Handles a refusal that has
   * already arrived.
   */
  expects(e, answer) {
    this.#answered.add(answer.messageId, e);
    if (answer.error) this.#lost(answer);
  }
  /** Handles a message of the agent that was not delivered. */
  #lost(sent) {
    const e = this.#answered.take(sent.messageId);
    const why = sent.error;
    if (e === void 0) {
      const answer = sent.type === "task_completion" || sent.type === "review_result";
      if (!answer) this.#go(() => Promise.reject(why));
    } else if (!e.correctable) {
      this.#go(() => Promise.reject(new Error(`task ${e.task}, given up: ${spoken(why)}`)));
    } else {
      e.corrected++;
      void this.#running.go(() => this.#finish(e, () => e.correct(why)));
    }
  }
  #go(what) {
    void this.#running.go(() => what().catch((error) => this.#troubled(error)));
  }
  /** Logs an error, if there is one. */
  async #troubled(error) {
    if (error !== void 0) await troubled(this.session.conn, error, this.#stop);
  }
};
async function whenDue(due, signal, call) {
  const never = new Bell();
  for (; ; ) {
    const at = due();
    try {
      await never.after(never.rung, signal, Math.max(0, Math.min(at - Date.now(), 2147483647)));
    } catch {
      return;
    }
    if (Date.now() >= at && at === due()) await call();
  }
}

// src/roles/developer.ts
var Failed = class extends Error {
  name = "Failed";
  completion;
  constructor(why, completion2, options2) {
    super(why, options2);
    this.completion = completion2;
  }
};
var waiting = "waiting for its turn";
var Assigned = class {
  assignment;
  /** The message that it came with. */
  said;
  #session;
  #signal;
  #now = { percent: 0, step: "", files: [] };
  #last = -Infinity;
  // of the latest report
  /** @internal */
  constructor(session, said2, signal) {
    this.#session = session;
    this.said = said2;
    this.assignment = assignment(said2.payload);
    this.#signal = signal;
  }
  /**
   * Aborted with Cancelled, Again, Shutdown or Closed, or for the reason of the signal given to
   * develop.
   */
  get signal() {
    return this.#signal();
  }
  /** The work to do. */
  get task() {
    return this.assignment.task;
  }
  /**
   * Reports to the architect how far the task is, from 0 to 100, its current step, and the files
   * modified so far. The task goes on.
   */
  progress = async (percent, step, ...files) => {
    const before = this.#now;
    this.#now = { percent, step, files };
    try {
      await this.#tell(this.#now);
      this.#last = Date.now();
    } catch (error) {
      this.#now = before;
      throw error;
    }
  };
  #tell(now) {
    return this.#session.report(this.said, { progress_percent: now.percent, current_step: now.step, files_modified_so_far: now.files });
  }
  /** @internal Sets the current step, unless the developer has reported one. */
  at(step) {
    this.#now.step ||= step;
  }
  /** @internal */
  status() {
    return { task_id: this.task.task_id, progress_percent: this.#now.percent, current_step: this.#now.step || waiting };
  }
  /**
   * @internal Sends progress at regular intervals, so that a long task can be told from one that
   * hangs.
   */
  report(after3, every, signal) {
    const first = Date.now() + after3;
    return whenDue(() => Math.max(first, this.#last + every), signal, async () => {
      this.#last = Date.now();
      await this.#tell({ ...this.#now, step: this.#now.step || waiting }).catch(() => {
      });
    });
  }
};
var Developing = class extends Desk {
  developer;
  constructor(session, developer) {
    super(session, developer.capacity, developer.hear?.bind(developer));
    this.developer = developer;
  }
  errand(said2) {
    return said2.message_type === "task_assignment" ? new Doing(this, said2) : void 0;
  }
};
var Doing = class extends Errand {
  #desk;
  #assigned;
  constructor(desk, said2) {
    super(said2.payload.task.task_id, said2.payload.task.task_id);
    this.#desk = desk;
    this.#assigned = new Assigned(desk.session, said2, () => this.signal);
  }
  status() {
    return this.#assigned.status();
  }
  async do() {
    await this.#desk.session.acknowledge(this.#assigned.said);
    const { progressAfter = 12e4, progressEvery = 3e4 } = this.#desk.developer;
    const enough = new AbortController();
    const reports = this.#assigned.report(progressAfter, progressEvery, enough.signal);
    return this.#complete(async () => {
      try {
        return await this.#inTurn();
      } finally {
        enough.abort();
        await reports;
      }
    });
  }
  async #inTurn() {
    const leave = await this.#desk.turn(this);
    try {
      this.#assigned.at("at work");
      return await this.#desk.developer.do(this.#assigned);
    } finally {
      leave();
    }
  }
  /** Reports the outcome of a task, unless the task was cancelled or replaced. */
  async #complete(what) {
    let completion2;
    try {
      completion2 = await what() ?? {};
      if (this.off) return;
    } catch (error) {
      if (this.off) return;
      if (gaveUp(this.signal, error)) return unfinished;
      completion2 = failing(error instanceof Failed ? error.completion : {}, this.task, error);
    }
    return this.#tell(completion2);
  }
  async #tell(completion2) {
    const { session } = this.#desk;
    const { said: said2 } = this.#assigned;
    const sent = await session.complete(said2, completion2).catch((error) => {
      if (!(error instanceof Unsaid)) throw error;
      return session.complete(said2, failing({}, this.task, new Error(`what came of it cannot be told: ${error.message}`)));
    });
    this.#desk.expects(this, sent);
  }
  /**
   * Sends another completion after one was refused. Throws the refusal if no other completion can
   * help.
   */
  async correct(why) {
    const { developer } = this.#desk;
    if (this.off) return;
    if (why.scope !== void 0 && developer.rescope && this.correctable) {
      return this.#complete(async () => developer.rescope?.(this.#assigned, why));
    }
    if (why.scope !== void 0) {
      const error = new Error(`${spoken(why)}; what may be changed: ${why.scope.join(", ")}`);
      return this.#tell(failing({}, this.task, error, "scope_violation"));
    }
    if (why.details?.error_type !== "malformed") throw why;
    return this.#tell(failing({}, this.task, why));
  }
};
function failing(what, task2, error, kind2) {
  const why = words(error);
  const late = error instanceof Error && error.name === "TimeoutError";
  return {
    ...what,
    status: "failed",
    summary: what.summary || why,
    blockers: [...what.blockers ?? [], why],
    error: what.error ?? {
      task_id: task2,
      error_type: kind2 ?? (late ? "timeout" : "exception"),
      error_message: why,
      recoverable: true,
      suggested_action: "retry"
    }
  };
}

// src/roles/reviewer.ts
var Judging = class extends Desk {
  reviewer;
  constructor(session, reviewer) {
    super(session, reviewer.capacity, reviewer.hear?.bind(reviewer));
    this.reviewer = reviewer;
  }
  errand(said2) {
    return said2.message_type === "review_request" ? new Reviewing(this, said2) : void 0;
  }
};
var Reviewing = class extends Errand {
  #desk;
  #said;
  #result = {};
  // as sent
  constructor(desk, said2) {
    super(said2.payload.review_id, said2.payload.task_id);
    this.#desk = desk;
    this.#said = said2;
  }
  status() {
    return { task_id: this.task, progress_percent: 0, current_step: `review ${this.key}` };
  }
  do() {
    return this.#judge(async () => {
      const leave = await this.#desk.turn(this);
      try {
        return await this.#desk.reviewer.do(this.#said.payload, this.signal);
      } finally {
        leave();
      }
    });
  }
  /** Makes a new review after the result was refused. */
  async correct(why) {
    const { reviewer } = this.#desk;
    if (this.off) return;
    if (reviewer.correct && this.correctable) {
      return this.#judge(async () => reviewer.correct(this.#said.payload, this.#result, why, this.signal));
    }
    await this.#cannot(why);
    throw why;
  }
  /**
   * Calls a function of the reviewer and sends the result, or feedback if there is none. Sends
   * nothing if the review was cancelled or replaced.
   */
  async #judge(judge5) {
    try {
      this.#result = await judge5();
    } catch (error) {
      if (this.off) return;
      return gaveUp(this.signal, error) ? unfinished : this.#cannot(error);
    }
    if (this.off) return;
    try {
      this.#desk.expects(this, await this.#desk.session.judge(this.#said, this.#result ?? {}));
    } catch (error) {
      if (!(error instanceof Unsaid)) throw error;
      await this.#cannot(new Error(`its result cannot be told: ${error.message}`));
    }
  }
  async #cannot(why) {
    await this.#desk.session.answer(this.#said, {
      feedback_type: "clarification",
      subject: `the review ${this.key} cannot be made`,
      content: spoken(why),
      action_required: true,
      related_task_id: this.task
    });
  }
};

// src/wire/envelope.ts
import { randomUUID as randomUUID3 } from "node:crypto";
var maxLine = 16 << 20;
var maxOutput = 64 << 10;
function timestamp(at = /* @__PURE__ */ new Date()) {
  return at.toISOString();
}
function line(message2) {
  const text = spelled(message2) ?? "";
  if (Buffer.byteLength(text) > maxLine) throw new Unsaid(`it cannot be said: it takes more than ${maxLine >> 20} MiB`);
  return text;
}
function message(type, payload) {
  const id = randomUUID3();
  return { id, text: line({ type, id, timestamp: timestamp(), payload: document(payload) }) };
}
function document(payload) {
  const text = spelled(payload ?? {});
  if (text?.[0] !== "{") throw new Unsaid("it cannot be said: a payload must be an object");
  return Raw.part(text);
}
function value(what) {
  const text = spelled(what);
  return text === void 0 || text === "null" ? void 0 : Raw.part(text);
}
function spelled(what) {
  try {
    return spell(what);
  } catch (error) {
    throw new Unsaid(`it cannot be said: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}
var Envelope = class _Envelope {
  wrong = false;
  #members;
  constructor(members) {
    this.#members = members;
  }
  static read(text) {
    if (complaint(text) !== void 0) return void 0;
    text = text.trim();
    return text[0] === "{" ? new _Envelope(new Members(text)) : void 0;
  }
  /** Returns a text, or "" if it is missing. */
  text(key2) {
    const found = this.#find(key2)?.value();
    if (typeof found === "string") return found;
    this.wrong ||= found !== void 0;
    return "";
  }
  /** Returns an object, or undefined if it is missing. */
  document(key2) {
    const found = this.#find(key2);
    if (found === void 0 || found.text[0] === "{") return found;
    this.wrong = true;
    return void 0;
  }
  #find(key2) {
    const found = this.#members.of(key2);
    this.wrong ||= found.length > 1;
    return found.length !== 1 || found[0]?.text === "null" ? void 0 : found[0];
  }
};
function refusal(error) {
  const said2 = error?.value();
  const details = error?.at("details");
  if (error === void 0 || typeof said2?.code !== "string" || said2.code === "") {
    const message2 = "refused, without a word that could be understood";
    return { code: "INTERNAL_ERROR", message: message2, ...error && { details: read(error) } };
  }
  return {
    code: said2.code,
    message: typeof said2.message === "string" ? said2.message : "",
    details: details?.text[0] === "{" ? read(details) : void 0
  };
}
function checkEvent(event, payload) {
  const wrong = complaintAbout(event, payload);
  if (wrong !== void 0) throw new Unsaid(`event ${event}: ${wrong}`);
}
function complaintAbout(event, payload) {
  const text = (key2) => payload.at(key2)?.value();
  const needs = (key2) => blank(text(key2)) ? `${key2} must be a text that says something` : void 0;
  const may = (key2) => ["undefined", "string"].includes(typeof (text(key2) ?? void 0)) ? void 0 : `${key2} must be a string`;
  const object = (key2) => (text(key2) ?? void 0) === void 0 || payload.at(key2)?.text[0] === "{" ? void 0 : `${key2} must be an object`;
  switch (event) {
    case "progress": {
      const progress2 = text("progress");
      const fits = typeof progress2 === "number" && progress2 >= 0 && progress2 <= 1;
      const small = Buffer.byteLength(payload.at("output")?.text ?? "") <= maxOutput;
      return needs("taskId") ?? may("message") ?? (fits ? void 0 : "progress must be from 0 to 1") ?? (small ? void 0 : `output must be at most ${maxOutput} bytes of JSON`);
    }
    case "log":
      return needs("level") ?? (typeof text("message") === "string" ? void 0 : "message must be a string") ?? object("context");
    case "error":
      return may("taskId") ?? needs("error") ?? may("stack");
    case "question":
      return needs("question") ?? object("context");
  }
  return complaintAboutActivity(event, text, needs, may);
}
function complaintAboutActivity(event, value2, needs, may) {
  const first = (check, ...keys) => keys.map(check).find((wrong) => wrong !== void 0);
  const number = (key2, least) => {
    const n = value2(key2);
    return typeof n === "number" && n >= least ? void 0 : `${key2} must be a number of at least ${least}`;
  };
  const whole2 = (least) => (key2) => number(key2, least) ?? (Number.isInteger(value2(key2)) ? void 0 : `${key2} must be a whole number`);
  const given = (key2) => (value2(key2) ?? void 0) !== void 0;
  const oneOf = (key2, ...words2) => words2.includes(value2(key2)) ? void 0 : `${key2} must be one of ${words2.join(", ")}`;
  const time2 = (key2) => may(key2) ?? (!given(key2) || /^\d{4}-?\d\d-?\d\d(T\d\d:?\d\d|$)/.test(String(value2(key2))) ? void 0 : `${key2} must be an ISO 8601 time`);
  switch (event) {
    case "usage": {
      const counts = ["turn", "cacheRead", "cacheWrite", "reasoning", "contextUsed", "contextSize"].filter(given);
      return first(may, "taskId", "model", "currency") ?? first(whole2(0), "input", "output", ...counts) ?? (given("cost") ? number("cost", 0) : void 0);
    }
    case "session":
      return needs("id") ?? first(may, "kind", "dir", "version", "model");
    case "turn":
      return oneOf("state", "busy", "waiting", "idle") ?? first(may, "what", "taskId") ?? time2("since");
    case "limited":
      return needs("until") ?? time2("until") ?? may("scope");
    case "receipt":
      return whole2(1)("seq") ?? oneOf("state", "in_context", "refused");
  }
  return void 0;
}
function blank(what) {
  return typeof what !== "string" || /^[ \t\n\r\f]*$/.test(what);
}
function about(operation, error) {
  if (error instanceof Unsaid) return new Unsaid(`${operation}: ${error.message}`, { cause: error.cause });
  if (error instanceof Refused) return new Refused(error, operation);
  return error;
}
var blocks = "blocks";
function submission(task2) {
  return {
    ...task2,
    ...Array.isArray(task2.dependencies) && {
      dependencies: task2.dependencies.map((d) => typeof d === "object" && (d.dependency_type ?? blocks) === blocks ? d.depends_on_task_id : d)
    }
  };
}
function dependency(taskId, on) {
  const d = typeof on === "string" ? { depends_on_task_id: on } : on;
  return { taskId, dependsOnTaskId: d.depends_on_task_id, dependencyType: d.dependency_type, contractKey: d.contract_key };
}
function asking(question2) {
  if (!question2.options) return question2;
  return { ...question2, options: question2.options.map((option2) => typeof option2 === "string" ? { value: option2 } : option2) };
}

// src/wire/lines.ts
var longest = 1 << 28;
var utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
var Lines = class {
  #parts = [];
  #size = 0;
  #begun = false;
  #each;
  constructor(each2) {
    this.#each = each2;
  }
  feed(chunk) {
    for (let from = 0; ; ) {
      const end = chunk.indexOf(10, from);
      this.#keep(chunk.subarray(from, end < 0 ? void 0 : end));
      if (end < 0) return;
      this.#line();
      from = end + 1;
    }
  }
  /** Ends the stream. A last line needs no LF. */
  end() {
    if (this.#size > 0) this.#line();
  }
  #keep(part) {
    this.#size += part.length;
    if (this.#size > longest) this.#parts = [];
    else if (part.length > 0) this.#parts.push(part);
  }
  #line() {
    const [parts, size, first] = [this.#parts, this.#size, !this.#begun];
    this.#parts = [];
    this.#size = 0;
    this.#begun = true;
    if (size > longest) return;
    const text = decode(parts.length === 1 ? parts[0] : Buffer.concat(parts, size));
    if (text === void 0) return;
    this.#each(text.slice(first && text[0] === "\uFEFF" ? 1 : 0, text.endsWith("\r") ? -1 : void 0));
  }
};
function decode(line2) {
  try {
    return utf8.decode(line2);
  } catch {
    return void 0;
  }
}

// src/wire/part.ts
var mostProblems = 20;
var [longestId, longestLabel] = [200, 4096];
var Part = class _Part {
  #members;
  #pointer;
  #problems;
  #sparing;
  constructor(object, pointer, problems, sparing = false) {
    this.#members = object.members();
    this.#pointer = pointer;
    this.#problems = problems;
    this.#sparing = sparing;
  }
  wrong(key2, message2) {
    this.#add(this.#below(key2), `${key2} ${message2}`);
  }
  #add(pointer, message2) {
    if (this.#problems.length < mostProblems) this.#problems.push({ pointer, message: message2 });
  }
  #below(key2) {
    return `${this.#pointer}/${key2.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
  /** Returns a member, or undefined if it is missing or an error was reported. */
  #find(key2, must) {
    const found = this.#members.of(key2);
    if (found.length > 1) this.wrong(key2, "stands twice");
    else if (found[0]?.text === "null") this.#null(key2, must);
    else if (found[0] !== void 0) return found[0];
    else if (must === "needed") this.wrong(key2, "is missing");
    return void 0;
  }
  #null(key2, must) {
    if (!this.#sparing || must === "needed") this.wrong(key2, "must not be null");
  }
  #string(key2, must) {
    const value2 = this.#find(key2, must)?.value();
    if (value2 === void 0 || typeof value2 === "string") return value2;
    this.wrong(key2, "must be a string");
    return void 0;
  }
  /** Reads a string that may be empty. */
  text(key2, must = "needed") {
    return this.#string(key2, must) ?? "";
  }
  /** Reads a string that is not blank. */
  name(key2, must = "needed") {
    const name = this.#string(key2, must);
    if (name !== void 0 && blank(name)) this.wrong(key2, "must not be empty");
    return name ?? "";
  }
  /** Reads a name that becomes a key. */
  id(key2, must = "needed") {
    const id = this.name(key2, must);
    const why = unfit(id, longestId);
    if (why !== void 0) this.wrong(key2, why);
    return why === void 0 ? id : "";
  }
  /** Reads a name of delegated work. An optional one may be blank. */
  label(key2, must = "needed") {
    const label = must === "needed" ? this.name(key2) : this.text(key2, must);
    const why = unfit(label, longestLabel);
    if (why !== void 0) this.wrong(key2, why);
    return label;
  }
  /** Reads a string that is one of the given ones. */
  word(key2, of, must = "needed") {
    const word = this.#string(key2, must);
    if (word !== void 0 && !of.includes(word)) this.wrong(key2, `must be one of ${list(of)}, not ${JSON.stringify(word.slice(0, 80))}`);
    return word ?? "";
  }
  /** Reads an object without looking into it. */
  object(key2, must = "needed") {
    const value2 = this.#find(key2, must);
    if (value2 === void 0 || value2.text[0] === "{") return value2;
    this.wrong(key2, "must be an object");
    return void 0;
  }
  /** Checks that a value is present. It may be null. */
  anything(key2) {
    if (this.#members.of(key2)[0]?.text !== "null" || this.#members.of(key2).length > 1) this.#find(key2, "needed");
  }
  /** Reports an error if a member is present. */
  without(key2, message2) {
    if (this.#members.of(key2).length > 0) this.wrong(key2, message2);
  }
  /** Reports an error if a member is present and does not fit. */
  fits(key2, fit, message2) {
    if (this.#find(key2, "optional") !== void 0 && !fit) this.wrong(key2, message2);
  }
  /** Reports duplicate members. */
  once(...keys) {
    for (const key2 of keys) if (this.#members.of(key2).length > 1) this.wrong(key2, "stands twice");
  }
  /** Reads a boolean. */
  truth(key2, must = "needed") {
    const value2 = this.#find(key2, must)?.value();
    if (value2 !== void 0 && typeof value2 !== "boolean") this.wrong(key2, "must be true or false");
  }
  /** Reads an integer that is not less than least. */
  whole(key2, least, must = "needed") {
    const value2 = this.#find(key2, must)?.value();
    if (value2 === void 0) return void 0;
    if (typeof value2 !== "number") this.wrong(key2, "must be a number");
    else if (!Number.isInteger(value2) || value2 > Number.MAX_SAFE_INTEGER || value2 < least) {
      this.wrong(key2, `must be a whole number from ${least} to ${Number.MAX_SAFE_INTEGER}`);
    } else return value2;
    return void 0;
  }
  /** Reads a number from 0 to 100. */
  percent(key2) {
    const value2 = this.#find(key2, "needed")?.value();
    if (value2 === void 0) return;
    if (typeof value2 !== "number") this.wrong(key2, "must be a number");
    else if (value2 < 0 || value2 > 100) this.wrong(key2, "must be a number from 0 to 100");
  }
  /** Reads an ISO 8601 time. */
  moment(key2, must = "needed") {
    const when = this.#string(key2, must);
    if (when !== void 0 && !isTime(when)) this.wrong(key2, `must be an ISO 8601 time, not ${JSON.stringify(when.slice(0, 40))}`);
    return when ?? "";
  }
  /** Reads a list of strings. */
  texts(key2, must = "needed") {
    return this.#strings(key2, must, () => void 0);
  }
  /** Reads a list of strings that are not blank. */
  names(key2, must = "needed") {
    return this.#strings(key2, must, (text) => blank(text) ? "must not be empty" : void 0);
  }
  /** Reads a list of names of delegated work. */
  labels(key2) {
    this.#strings(key2, "optional", (text) => blank(text) ? "must not be empty" : unfit(text, longestLabel));
  }
  /** Reads a list of strings, each one of the given ones. */
  words(key2, of) {
    this.#strings(key2, "needed", (text) => of.includes(text) ? void 0 : "must be one of " + list(of));
  }
  #strings(key2, must, wrong) {
    return this.#items(key2, must).map((item, i) => {
      const text = item.value();
      const why = typeof text === "string" ? wrong(text) : "must be a string";
      if (why !== void 0) this.#add(`${this.#below(key2)}/${i}`, `${key2}: item ${i} ${why}`);
      return String(text);
    });
  }
  #items(key2, must) {
    const value2 = this.#find(key2, must);
    if (value2 !== void 0 && value2.text[0] !== "[") this.wrong(key2, "must be a list");
    return value2?.items() ?? [];
  }
  /** Reads a list of objects, each with read. */
  each(key2, read2, must = "needed") {
    this.#items(key2, must).forEach((item, i) => {
      const pointer = `${this.#below(key2)}/${i}`;
      if (item.text[0] === "{") read2(new _Part(item, pointer, this.#problems, this.#sparing));
      else this.#add(pointer, `${key2}: item ${i} must be an object`);
    });
  }
  /** Reads an object with read. */
  inside(key2, read2, must = "needed") {
    const value2 = this.object(key2, must);
    if (value2 !== void 0) read2(new _Part(value2, this.#below(key2), this.#problems, this.#sparing));
  }
  /** Reads every member of the object with read. All must be objects. */
  eachMember(read2) {
    for (const key2 of new Set(this.#members.all.map(([name]) => name))) this.inside(key2, read2);
  }
};
function unfit(text, longest5) {
  if (Buffer.byteLength(text) > longest5) return `must not be longer than ${longest5} bytes`;
  return /\p{Cc}/u.test(text) ? "must not have control characters in it" : void 0;
}
function list(words2) {
  return words2.slice(0, -1).join(", ") + " or " + words2.at(-1);
}
var time = /^\d{4}-\d\d-\d\d(T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)?)?$/;
var basicTime = /^(\d{4})(\d\d)(\d\d)T([01]\d|2[0-3])[0-5]\d[0-5]\d(Z|[+-]\d{4})$/;
function isTime(when) {
  if (!time.test(when) && !basicTime.test(when)) return false;
  const day = when.replace(basicTime, "$1-$2-$3").slice(0, 10);
  const at = /* @__PURE__ */ new Date(day + "T00:00:00Z");
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day);
}

// src/wire/said.ts
function readSaid(line2) {
  const wrong = complaint(line2);
  if (wrong !== void 0) return new Error(`the message: ${wrong}`);
  const raw = Raw.part(line2.trim());
  const problems = [];
  judge(new Part(raw, "", problems));
  if (problems[0] !== void 0) return new Error(problems[0].message);
  const said2 = raw.value();
  withRaw(said2.payload, raw.at("payload"));
  return withRaw(said2, raw);
}
function judge(p) {
  const id = p.id("message_id");
  if (id !== "" && !isMessageId(id)) {
    p.wrong("message_id", `must be a UUID of version 4, or msg- and digits, perhaps with a dash, letters and digits behind them, not ${JSON.stringify(id.slice(0, 80))}`);
  }
  p.moment("timestamp");
  p.inside("from_agent", agent);
  p.inside("to_agent", agent);
  const type = p.word("message_type", messageTypes);
  for (const key2 of ["correlation_id", "reply_to", "session_id"]) p.id(key2, "optional");
  p.whole("sequence_number", 0, "optional");
  p.inside("payload", (in_) => bodies[type]?.(in_));
}
function isMessageId(id) {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(id) || /^msg-\d+(-[0-9a-z]+)?$/i.test(id);
}
function agent(p) {
  p.id("agent_id");
  p.word("agent_type", agentTypes);
  p.id("instance_id", "optional");
}
var bodies = {
  task_assignment(p) {
    p.inside("task", task);
    p.word("priority", priorities);
    p.moment("deadline", "optional");
    p.whole("max_iterations", 1, "optional");
    p.each("dependencies", (d) => {
      d.id("task_id", "optional");
      d.names("depends_on");
      d.word("dependency_type", dependencyTypes);
    }, "optional");
  },
  task_progress(p) {
    p.id("task_id");
    p.percent("progress_percent");
    p.text("current_step");
    p.names("files_modified_so_far");
    p.text("estimated_remaining", "optional");
    p.texts("blockers", "optional");
  },
  task_completion(p) {
    p.id("task_id");
    p.word("status", outcomes);
    p.inside("changes", (c) => {
      c.each("files_created", fileChange);
      c.each("files_modified", fileChange);
      c.names("files_deleted");
    });
    p.text("summary");
    p.text("implementation_notes", "optional");
    p.inside("self_review", (s) => {
      for (const key2 of ["tests_run", "tests_passed", "type_check_passed"]) s.truth(key2);
      s.texts("known_issues", "optional");
    });
    p.texts("blockers", "optional");
    p.texts("suggestions", "optional");
  },
  review_request(p) {
    p.id("review_id");
    p.id("task_id");
    p.inside("scope", (s) => {
      s.names("files");
      s.words("focus_areas", focusAreas);
      s.names("ignore_patterns", "optional");
    });
    p.inside("criteria", criteria);
    p.inside("context", (c) => {
      c.text("task_description");
      c.texts("acceptance_criteria");
      c.each("previous_reviews", (r) => {
        r.whole("review_number", 0);
        r.text("verdict");
        r.texts("key_findings");
      }, "optional");
    });
  },
  review_result: reviewResult2,
  feedback(p) {
    p.word("feedback_type", feedbackTypes);
    p.text("subject");
    p.text("content");
    p.truth("action_required");
    p.id("related_task_id", "optional");
  },
  status_query(p) {
    p.id("task_id", "optional");
  },
  status_response() {
  },
  abort(p) {
    p.word("scope", abortScopes);
    p.id("target_id");
    p.text("reason");
    p.truth("cleanup_required");
  },
  acknowledgment() {
  }
};
function task(p) {
  p.id("task_id");
  p.text("task_description");
  p.inside("context", (c) => {
    c.each("specs", contextFile);
    c.each("reference_files", contextFile);
    c.each("previous_attempts", (a) => {
      a.whole("attempt_number", 0);
      a.text("outcome");
      a.text("feedback");
    }, "optional");
  });
  p.inside("constraints", (c) => {
    c.names("scope");
    c.truth("testing_required");
    c.texts("must_not_break", "optional");
    c.text("style_guide", "optional");
  });
  p.texts("acceptance_criteria");
}
function contextFile(p) {
  p.name("path");
  p.text("reason");
  p.texts("sections", "optional");
}
function fileChange(p) {
  p.name("path");
  p.whole("lines_added", 0, "optional");
  p.whole("lines_removed", 0, "optional");
  p.text("description", "optional");
  p.word("change_type", changeTypes);
}
function criteria(p) {
  p.truth("must_pass_tests");
  p.truth("must_pass_type_check");
  p.truth("must_pass_lint", "optional");
  p.each("custom_checks", (c) => {
    c.name("name");
    c.name("command");
    c.whole("expected_exit_code", -Number.MAX_SAFE_INTEGER);
  }, "optional");
}
function reviewResult2(p) {
  p.id("review_id");
  p.id("task_id");
  p.word("verdict", verdicts);
  const known = /* @__PURE__ */ new Set();
  p.each("findings", (f) => finding2(f, known));
  p.inside("verification", (v) => {
    v.inside("tests", verified);
    v.inside("type_check", verified);
    v.inside("lint", verified, "optional");
    v.inside("custom", (custom) => custom.eachMember(verified), "optional");
  });
  p.text("summary");
  p.each("required_changes", (c) => {
    c.id("change_id");
    c.word("priority", fixes);
    c.names("related_findings");
    c.text("description");
  }, "optional");
  p.texts("commendations", "optional");
}
function finding2(p, known) {
  const id = p.id("finding_id");
  if (id !== "" && known.has(id)) p.wrong("finding_id", "stands twice");
  known.add(id);
  p.word("severity", severities);
  p.word("category", categories);
  p.inside("location", (l) => {
    l.name("file");
    const [from, to] = [l.whole("line_start", 0, "optional"), l.whole("line_end", 0, "optional")];
    if (from !== void 0 && to !== void 0 && to < from) l.wrong("line_end", `must not be less than line_start, which is ${from}`);
    l.text("code_snippet", "optional");
  });
  p.text("description");
  p.text("rationale", "optional");
  p.text("suggestion", "optional");
  p.whole("fixed_in_iteration", 1, "optional");
}
function verified(p) {
  p.truth("passed");
  p.text("output", "optional");
  p.text("error", "optional");
}
var directions = {
  task_assignment: ["architect", "developer"],
  task_progress: ["developer", "architect"],
  task_completion: ["developer", "architect"],
  review_request: ["architect", "reviewer"],
  review_result: ["reviewer", "architect"],
  abort: ["architect"]
};
function misdirected(said2) {
  const [from, to] = directions[said2.message_type] ?? [];
  if (from !== void 0 && said2.from_agent.agent_type !== from) {
    return `${said2.message_type} is for an agent of the type ${from} to say`;
  }
  if (to !== void 0 && said2.to_agent.agent_type !== to) return `${said2.message_type} is said to an agent of the type ${to}`;
  return void 0;
}

// src/connection/inbox.ts
var Mailbox = class {
  #bell = new Bell();
  #mail = [];
  // ordered by number
  #dealt = 0;
  // the highest number handled
  /** Inserts mail in the order of the numbers, which start at 1. Duplicates are ignored. */
  post(mail) {
    if (typeof mail.seq !== "number" || mail.seq <= this.#dealt) return;
    let at = this.#mail.length;
    while (at > 0 && this.#mail[at - 1].seq > mail.seq) at--;
    if (this.#mail[at - 1]?.seq === mail.seq) return;
    this.#mail.splice(at, 0, mail);
    this.#bell.ring();
  }
  /**
   * Waits for the oldest message and leaves it in the mailbox. Returns undefined if the signal is
   * aborted first.
   */
  async oldest(signal) {
    while (!signal.aborted) {
      if (this.#mail[0] !== void 0) return this.#mail[0];
      await this.#bell.after(this.#bell.rung, signal).catch(() => {
      });
    }
    return void 0;
  }
  /** Removes a message and all older ones, which its acknowledgment covers. */
  dealtWith(seq) {
    this.#dealt = seq;
    while (this.#mail[0] !== void 0 && this.#mail[0].seq <= seq) this.#mail.shift();
  }
};

// src/connection/lanes.ts
var mostLately = 16 << 20;
var mostAgain = 64;
var triesAgain = 10;
var Lanes = class {
  #write;
  #ended;
  // aborted when the stream has ended: no refusals arrive
  #lanes = /* @__PURE__ */ new Map();
  #lately = /* @__PURE__ */ new Map();
  // the latest lines, by message_id; the oldest are dropped first
  #size = 0;
  #places = 0;
  constructor(write, ended) {
    this.#write = write;
    this.#ended = ended;
  }
  /** Stores the line of a message that is about to be written. */
  keep(sent, line2) {
    this.#keep({ sent, line: line2, place: this.#places++, tries: 0 });
  }
  #keep(w) {
    this.#lately.set(w.sent.messageId, w);
    this.#size += w.line.length;
    for (const oldest of this.#lately.values()) {
      if (this.#lately.size === 1 || this.#size <= mostLately && this.#lately.size <= remembered) break;
      this.#forget(oldest);
    }
  }
  #forget(w) {
    if (this.#lately.delete(w.sent.messageId)) this.#size -= w.line.length;
  }
  /** Queues a refused message in its lane and reports whether it will be sent again. */
  sayLater(sent, why) {
    const name = laneOf(sent, why);
    if (name === void 0) return false;
    const w = this.#lately.get(sent.messageId);
    if (w) this.#forget(w);
    const lane = this.#lanes.get(name);
    if (lane?.held.some((h) => h.sent === sent)) return true;
    if (w === void 0 || w.tries === triesAgain) return false;
    const l = lane ?? this.#open(name);
    l.held.push(w);
    l.held.sort((a, b) => a.place - b.place);
    l.refused = true;
    return true;
  }
  #open(name) {
    const l = { name, held: [], open: Promise.resolve(), wait: shortPause, most: mostAgain, begun: false, refused: false };
    this.#lanes.set(name, l);
    l.open = this.#sayAgain(l);
    return l;
  }
  /**
   * Sends the messages of a lane in rounds until none is left. After the end of the stream no
   * refusals arrive, so the rest is sent in one round.
   */
  async #sayAgain(l) {
    try {
      for (let over = false, said2 = 1; !over && said2 > 0; ) {
        over = await rest(l.wait, this.#ended);
        const round = this.#round(l, over);
        said2 = round.length;
        for (const w of round) await this.#write(w.line);
      }
    } catch {
    } finally {
      if (this.#lanes.get(l.name) === l) this.#lanes.delete(l.name);
    }
  }
  /** Takes the next messages of a lane. Removes an empty lane. */
  #round(l, all) {
    if (l.begun && l.refused) [l.wait, l.most] = [Math.min(2 * l.wait, longPause), Math.max(l.most >> 1, 1)];
    else if (l.begun) [l.wait, l.most] = [shortPause, Math.min(2 * l.most, mostAgain)];
    [l.begun, l.refused] = [true, false];
    const round = l.held.splice(0, all ? l.held.length : l.most);
    for (const w of round) {
      w.tries++;
      this.#keep(w);
    }
    if (round.length === 0) this.#lanes.delete(l.name);
    return round;
  }
  /** Returns the promise that a message to an agent has to wait for, or undefined. */
  ahead(to) {
    return (this.#lanes.get("") ?? this.#lanes.get(to))?.open;
  }
  /** Waits until every lane is empty. Messages still waiting when the agent exits are lost. */
  async settled() {
    for (let [l] = this.#lanes.values(); l; [l] = this.#lanes.values()) await l.open;
  }
};
function laneOf(sent, why) {
  if (why.reason === Reason.Limited) return "";
  const crowd = why.details?.["waiting"];
  return why.details?.error_type === "timeout" && typeof crowd === "number" && crowd > 0 ? sent.to : void 0;
}

// src/connection/operations.ts
var Operations = class {
  /**
   * List agents, by role, status or capabilities. You are one of them. Without a payload the answer
   * lists all agents.
   */
  async queryAgents(query = {}, options2) {
    return listOf(await this.ask("query-agents", query, options2), "agents");
  }
  /**
   * List the tasks that you submitted or that are assigned to you. The oldest task comes first. The
   * list leaves out description, payload and result, which can be large; get-task has them.
   */
  async queryTasks(query = {}, options2) {
    return listOf(await this.ask("query-tasks", query, options2), "tasks");
  }
  /**
   * Submit a task for an idle agent with the role and the capabilities that it requires. The task
   * waits until every task that it depends on is done, and until an agent that fits is idle.
   */
  async submitTask(task2, options2) {
    return partOf(await this.ask("submit-task", submission(task2), options2), "task");
  }
  /**
   * Show a task in full. The answer has the description, the payload, the progress and, when the
   * task is done, the result.
   *
   * @param taskId The id of the task.
   */
  async getTask(taskId, options2) {
    return partOf(await this.ask("get-task", { taskId }, options2), "task");
  }
  /**
   * Ask a person a question and wait for the answer. The response arrives when the person answers,
   * or with TIMEOUT. You can send other requests while you wait. An option may be a text.
   */
  askUser(question2, options2) {
    return this.ask("ask-user", asking(question2), options2);
  }
  /**
   * Start a task that is assigned to you, or take one of yours that has no agent. The request is
   * optional: a task starts by itself when its agent has been notified.
   *
   * @param taskId The id of the task.
   */
  async startTask(taskId, options2) {
    return partOf(await this.ask("start-task", { taskId }, options2), "task");
  }
  /**
   * Complete a task with its result.
   *
   * @param taskId The id of the task.
   * @param result The result for the submitter: any value; {"success":true} when it is missing.
   *   An object with a $schema must be a task-result document: its contracts go to the tasks that
   *   need them.
   * @param artifacts Other products: each has a name, and one of content, path and ref.
   */
  async completeTask(taskId, result2, artifacts, options2) {
    return partOf(await this.ask("complete-task", { taskId, result: result2 ?? void 0, artifacts: artifacts ?? void 0 }, options2), "task");
  }
  /**
   * Fail a task with the reason. Tasks that depend on it are cancelled, unless the configuration
   * keeps them.
   *
   * @param taskId The id of the task.
   * @param error The reason.
   */
  async failTask(taskId, error, options2) {
    return partOf(await this.ask("fail-task", { taskId, error }, options2), "task");
  }
  /**
   * Cancel a task that you submitted and tell its agent. The task must not have ended.
   *
   * @param taskId The id of the task.
   * @param reason The reason, for the agent of the task.
   */
  async cancelTask(taskId, reason, options2) {
    return partOf(await this.ask("cancel-task", { taskId, reason: reason || void 0 }, options2), "task");
  }
  /**
   * Retry a failed or cancelled task. The task is pending again, with its history. Tasks that were
   * cancelled because of it are pending again as well.
   */
  async retryTask(retry, options2) {
    return partOf(await this.ask("retry-task", retry, options2), "task");
  }
  /**
   * Show the task that you work on. If you have several, it is the one that started first; if none
   * has started, the one that was assigned first. An agent without a task is refused with
   * NOT_FOUND.
   */
  async currentTask(options2) {
    return partOf(await this.ask("current-task", {}, options2), "task");
  }
  /**
   * Report your activity on a task, with or without the progress. The same as event:progress, for
   * programs that do not write lines. The method progress sends that event.
   */
  async reportProgress(progress2, options2) {
    return partOf(await this.ask("report-progress", progress2, options2), "task");
  }
  /**
   * Give a task back to the queue. It does not count as an attempt.
   *
   * @param taskId The id of the task.
   * @param reason Why you give the task back.
   * @param after When an agent may get the task again, in ISO 8601: for example, the end of a
   *   limit. A request can still assign it before that time.
   */
  async returnTask(taskId, reason, after3, options2) {
    return partOf(await this.ask("return-task", { taskId, reason, after: after3 || void 0 }, options2), "task");
  }
  /**
   * Ask a person whether a tool may be used, and wait for the answer. The answer has the id of the
   * choice. A choice of the kind allow_session or allow_always is remembered: the same tool with
   * the same input is then answered at once. The question is withdrawn when its task ends, is given
   * back or goes to another agent, and when your run ends.
   */
  askPermission(permission, options2) {
    return this.ask("ask-permission", permission, options2);
  }
  /**
   * Withdraw a question of yours that no longer needs an answer. The request that asked the
   * question gets an error.
   */
  withdrawQuestion(question2, options2) {
    return this.ask("withdraw-question", question2, options2);
  }
  /**
   * Change the text, the documents or the priority of a task. The task must not have ended. Allowed
   * for the submitter and for planners.
   */
  async updateTask(change, options2) {
    return partOf(await this.ask("update-task", change, options2), "task");
  }
  /**
   * Assign a task to an agent, which may have to submit a plan first. The agent need not fit the
   * requirements. It is notified and starts the task itself. Allowed for the submitter and for
   * planners.
   */
  async assignTask(assignment2, options2) {
    return partOf(await this.ask("assign-task", assignment2, options2), "task");
  }
  /**
   * Assign a task to the agent that fits its requirements best. The agent starts the task itself.
   * If no agent fits, the status of the answer is no_match.
   *
   * @param taskId The id of the task.
   */
  autoAssign(taskId, options2) {
    return this.ask("auto-assign", { taskId }, options2);
  }
  /**
   * Show how each agent fits the requirements of a task. The answer gives the reasons. Nothing is
   * assigned. The best fit comes first.
   *
   * @param taskId The id of the task.
   */
  async matchAgents(taskId, options2) {
    return listOf(await this.ask("match-agents", { taskId }, options2), "servers");
  }
  /** List the tasks that are assigned to you and not started. The answer has the tasks in full. */
  async pollTasks(options2) {
    return listOf(await this.ask("poll-tasks", {}, options2), "tasks");
  }
  /**
   * List the tasks that are assigned to a session and not started. Only planners may ask for other
   * sessions.
   *
   * @param sessionId The session: the name of an agent, its server_id, or the id of its run. The
   *   default is your own.
   */
  async checkTasks(sessionId, options2) {
    return listOf(await this.ask("check-tasks", { sessionId: sessionId || void 0 }, options2), "tasks");
  }
  /**
   * Ask a person for help with a task. The task waits. When a person answers, you get
   * notify:task-updated, and the task has the answer. This returns without waiting; the method help
   * of a job waits for the answer.
   *
   * @param taskId The id of the task.
   * @param question The question.
   * @param context Further facts about the question: any value.
   */
  async requestHelp(taskId, question2, context, options2) {
    return partOf(await this.ask("request-help", { taskId, question: question2, context: context ?? void 0 }, options2), "task");
  }
  /**
   * Submit the plan that a task requires. The task is in the state planning. Its agent may start
   * when the plan is approved.
   *
   * @param taskId The id of the task.
   * @param plan The plan: an object or a text.
   */
  async submitPlan(taskId, plan, options2) {
    return partOf(await this.ask("submit-plan", { taskId, plan }, options2), "task");
  }
  /**
   * Approve the plan of a task. Its agent may start. An agent cannot approve its own plan.
   *
   * @param taskId The id of the task.
   */
  async approvePlan(taskId, options2) {
    return partOf(await this.ask("approve-plan", { taskId }, options2), "task");
  }
  /**
   * Reject the plan of a task with feedback. The agent must submit another plan. An agent cannot
   * reject its own plan.
   *
   * @param taskId The id of the task.
   * @param feedback The objections to the plan.
   */
  async revisePlan(taskId, feedback2, options2) {
    return partOf(await this.ask("revise-plan", { taskId, feedback: feedback2 }, options2), "task");
  }
  /**
   * Add a dependency to a task. The task must not have started. A dependency that closes a cycle is
   * refused.
   */
  async addDependency(taskId, on, options2) {
    return partOf(await this.ask("add-dependency", dependency(taskId, on), options2), "dependency");
  }
  /**
   * Remove a dependency from a task. A task without other open dependencies may start.
   *
   * @param taskId The id of the task that depends on another one.
   * @param dependencyId The id of the dependency, or of the task that it names.
   */
  async removeDependency(taskId, dependencyId, options2) {
    return partOf(await this.ask("remove-dependency", { taskId, dependencyId }, options2), "dependency");
  }
  /** Add a note to a task. Everyone who may see the task can read the note. */
  async addNote(note, options2) {
    return partOf(await this.ask("add-note", { ...note, urgent: note.urgent || void 0 }, options2), "note");
  }
  /**
   * List the notes of a task, oldest first.
   *
   * @param taskId The id of the task.
   */
  async listNotes(taskId, options2) {
    return listOf(await this.ask("list-notes", { taskId }, options2), "notes");
  }
  /**
   * Replace your advertised capabilities and refresh your presence. Members that are missing keep
   * their values. Without any member, the request only refreshes your presence.
   */
  updateCapabilities(now, options2) {
    return this.ask("update-capabilities", now, options2);
  }
  /**
   * List all agents with their capabilities and presence. The list is in the terms of the hub,
   * where agents are servers.
   */
  async servers(options2) {
    return listOf(await this.ask("query-servers", {}, options2), "servers");
  }
  /**
   * Send a message to an actor, or as GO to all. The message is kept unchanged until the recipient
   * reads it. An agent can print the payload as a line, with a from_actor. The answer is then only
   * the message.
   */
  sendMessage(mail, options2) {
    return this.ask("send-message", mail, options2);
  }
  /**
   * Read your messages after your cursor, or after any number, in order. Reading removes nothing: a
   * message that is not acknowledged is returned again.
   */
  async pollMessages(query = {}, options2) {
    const answer = await this.ask("poll-messages", query, options2);
    answer.messages = listOf(answer, "messages");
    return answer;
  }
  /**
   * Acknowledge your messages up to a number and move your cursor there. poll-messages continues
   * after that number. A lower number than before changes nothing.
   *
   * @param seq The number of the last message that you have handled.
   */
  ackMessages(seq, options2) {
    return this.ask("ack-messages", { seq }, options2);
  }
  /**
   * Announce that you are present for the next minute. An agent that has sent one heartbeat must
   * send one each minute. GO is alerted when none comes for three minutes.
   */
  heartbeat(options2) {
    return this.ask("heartbeat", {}, options2);
  }
  /**
   * Report the usage of a turn, or of one request to a model. Usage is added up by agent and by
   * task.
   */
  reportUsage(usage) {
    return this.tell("usage", usage);
  }
  /** Report the conversation of your program. Your next run gets its id in ORC_CONVERSATION. */
  reportConversation(conversation) {
    return this.tell("session", conversation);
  }
  /**
   * Report your current activity, for people. It is not recorded. While you wait for a person, your
   * silence does not count.
   */
  reportTurn(turn) {
    return this.tell("turn", turn);
  }
  /**
   * Report that you cannot work for a time, usually because of a limit of your vendor. You get no
   * task until then. Give your current task back with return-task.
   */
  reportLimit(limit) {
    return this.tell("limited", limit);
  }
  /** Report that your model has a bus message, or that your program refused it. */
  reportReceipt(receipt) {
    return this.tell("receipt", receipt);
  }
};

// src/connection/stream.ts
var pause = 1e3;
function backoff(refused, tries) {
  const after3 = refused.retryAfter;
  if (after3 === 0) return pause;
  return Math.max(after3, Math.min(after3 * 2 ** Math.min(tries, 10), pause)) * (1 + Math.random() / 4);
}
var Stream = class extends Operations {
  /** @internal */
  mailbox = new Mailbox();
  #in;
  #out;
  #calls = /* @__PURE__ */ new Map();
  // by the id of the request
  #notices = new Queue();
  #session = new Queue();
  #known = new Recent();
  // session messages received
  #sent = new Recent();
  // session messages sent
  #bell = new Bell();
  #ended = new AbortController();
  #lanes = new Lanes((line2) => this.write(line2), this.#ended.signal);
  #count = 0;
  // of events
  #spare = false;
  // notices that are never read are dropped
  #looked = false;
  // a caller has asked for notices
  #holds = 0;
  // calls that wait for the orchestrator
  #over;
  #torn;
  constructor(input, output) {
    super();
    this.#in = input;
    this.#out = output;
    const lines = new Lines((line2) => this.#hear(line2));
    input.on("data", (chunk) => lines.feed(typeof chunk === "string" ? Buffer.from(chunk) : chunk));
    const end = (cause) => {
      if (this.#over === void 0) {
        lines.end();
        this.#end(cause);
      }
    };
    input.on("end", () => end());
    input.on("close", () => end());
    input.on("error", (error) => end(error));
    output.on("error", (error) => this.#tear(error));
    this.#hold(0);
  }
  /**
   * Waits until the orchestrator's stream has ended and all messages that had to be sent again are
   * sent. Throws if reading failed.
   */
  async wait(options2 = {}) {
    await this.held(async () => {
      while (this.#over === void 0) await this.#bell.after(this.#bell.rung, options2.signal);
    });
    await this.#lanes.settled();
    await this.flushed();
    if (this.#over?.cause !== void 0) throw this.#over;
  }
  /** @internal Aborted when the stream has ended. */
  get ended() {
    return this.#ended.signal;
  }
  /** @internal Why the stream has ended, or undefined. */
  get over() {
    return this.#over;
  }
  /**
   * Sends a request for an operation, such as "get-task", and waits for the answer. The answer is
   * an object, with its text as raw. The payload must be an object; undefined means an empty one.
   *
   * Throws Refused if the orchestrator refuses the request. If the signal is aborted first, the
   * operation may have been carried out; a question to a person is withdrawn, unless the agent has
   * to shut down. If the stream ends first, asked of Closed reports whether
   * the request was sent.
   */
  async ask(operation, payload, options2 = {}) {
    return read(await this.askRaw(operation, payload, options2));
  }
  /** Like ask, but returns the undecoded answer. */
  async askRaw(operation, payload, options2 = {}) {
    try {
      return await this.#ask(operation, payload, options2.signal);
    } catch (error) {
      throw about(operation, error);
    }
  }
  async #ask(operation, payload, signal) {
    signal?.throwIfAborted();
    const { id, text } = message("request:" + operation, payload);
    if (this.#over) throw new Closed(`${operation}: not asked: ${this.#over.message}`, false, this.#over.cause);
    const answer = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
    try {
      return await this.held(async () => (await Promise.all([unless(answer, signal), this.write(text)]))[0]);
    } catch (error) {
      if (signal?.aborted && error === signal.reason) this.#abandon(operation, id, error);
      const over = this.over;
      if (over === void 0 || error !== over) throw error;
      throw new Closed(`${operation}: asked, but there will be no answer: ${over.message}`, true, over.cause);
    } finally {
      this.#calls.delete(id);
    }
  }
  /**
   * Withdraws the question of a request whose caller no longer waits. After a shutdown the question
   * stays open: the next run that asks the same takes it up.
   */
  #abandon(operation, requestId, why) {
    if (!["ask-user", "ask-permission"].includes(operation) || why instanceof Shutdown || why instanceof Closed) return;
    this.write(message("request:withdraw-question", { requestId }).text).catch(() => {
    });
  }
  /**
   * @internal Like ask, for requests that must not be lost to the rate limit. A request over the
   * limit has had no effect, so it is repeated.
   */
  async askPatiently(operation, payload, signal) {
    for (let tries = 0; ; tries++) {
      try {
        return await this.ask(operation, payload, { signal });
      } catch (error) {
        if (!(error instanceof Refused) || error.reason !== Reason.Limited) throw error;
        await sleep(backoff(error, tries), signal);
      }
    }
  }
  /**
   * @internal Asks for an operation even if the stream has ended. The orchestrator still reads the
   * agent's output then, until its time to stop is up, but sends no answers.
   */
  async settle(operation, payload) {
    try {
      await this.askPatiently(operation, payload);
    } catch (error) {
      if (!(error instanceof Closed)) throw error;
      if (!error.asked) await this.write(message("request:" + operation, payload).text);
    }
  }
  /**
   * Sends an event, such as "progress". Events have no answer, so tell itself validates those of
   * the protocol and throws Unsaid.
   */
  async tell(event, payload) {
    let text;
    try {
      const body = document(payload);
      checkEvent(event, body);
      text = message("event:" + event, body).text;
    } catch (error) {
      throw about(`event ${event}`, error);
    }
    await this.write(text);
  }
  /**
   * @internal Writes a line with one call, so that other programs that print whole lines do not
   * tear it. After a failed write nothing more is written.
   */
  write(line2) {
    if (this.#torn) return Promise.reject(this.#torn);
    return new Promise((resolve, reject) => {
      this.#out.write(line2 + "\n", (error) => error ? reject(this.#tear(error)) : resolve());
    });
  }
  #tear(error) {
    this.#torn ??= new Torn(`writing to the orchestrator: ${error.message}`, { cause: error });
    return this.#torn;
  }
  /**
   * @internal Writes a session message. It is registered before, because a refusal may arrive
   * before the caller goes on.
   */
  writeSession(sent, line2) {
    this.#sent.add(sent.messageId, sent);
    this.#lanes.keep(sent, line2);
    return this.write(line2);
  }
  /**
   * @internal Returns the promise that a session message to an agent has to wait for, because it
   * must not overtake messages to be sent again.
   */
  ahead(to) {
    return this.#lanes.ahead(to);
  }
  /**
   * @internal Waits until no message has to be sent again. Messages still waiting when the agent
   * exits are lost.
   */
  settled() {
    return this.#lanes.settled();
  }
  /**
   * @internal Waits for the next event. Returns undefined if there will be none, or if the signal
   * is aborted.
   */
  async next(wanted2, signal) {
    if (wanted2 !== "session") this.#looked = true;
    return this.held(async () => {
      while (!signal?.aborted) {
        const event = this.#take(wanted2);
        if (event !== void 0 || this.#over !== void 0) return event;
        await this.#bell.after(this.#bell.rung, signal).catch(() => {
        });
      }
      return void 0;
    });
  }
  /**
   * Iterates over all notices in order, including those that arrived before the call. An agent that
   * serves, and has never read notices, keeps only the latest few thousand. Ends when the signal is
   * aborted, or when the stream has ended and all notices are taken. Each notice goes to one
   * caller; work and the session roles take them, too.
   */
  async *news({ signal } = {}) {
    for (let e = await this.next("notices", signal); e; e = await this.next("notices", signal)) yield e.notice;
  }
  /**
   * Iterates over the session messages for the agent, in order, from the first one and each once.
   * Ends as news does. Each message goes to one caller; the roles of a Session take them, too.
   */
  async *talk({ signal } = {}) {
    for (let e = await this.next("session", signal); e; e = await this.next("session", signal)) {
      if (e.said) yield e.said;
    }
  }
  /**
   * Reports how much of a task is done, from 0 to 1. It does not complete the task; completeTask
   * does.
   *
   * @param output What the agent has so far: any value, up to 64 KiB of JSON. The task shows the
   *   last one until it is done.
   */
  progress(taskId, fraction, message2, output) {
    return this.tell("progress", { taskId, progress: fraction, message: message2 || void 0, output: output ?? void 0 });
  }
  /** Writes to the agent's log. The context is an object. */
  log(level, message2, context) {
    return this.tell("log", { level, message: message2, context: context ?? void 0 });
  }
  /** Reports an error. An error that is not recoverable fails the task. */
  trouble(taskId, error, recoverable) {
    return this.tell("error", { taskId: taskId || void 0, error: error instanceof Error ? error.message : String(error), recoverable });
  }
  /** Shows people a question without waiting for an answer. The context is an object. */
  wonder(question2, context) {
    return this.tell("question", { question: question2, context: context ?? void 0 });
  }
  // Messages about delegated work. Exchange handles them.
  /** @internal Handles a request for delegated work, or an act on it. */
  handed(_message, _type) {
  }
  /** @internal Handles a response about delegated work. */
  responded(_response) {
  }
  /** @internal Handles a refusal. Returns false if it concerns no delegated work of the agent. */
  declined(_id, _why) {
    return false;
  }
  /** @internal Handles a refusal that no caller waits for. */
  protested(_id, _why) {
  }
  /** @internal Handles the request to shut down. */
  shuttingDown() {
  }
  /** @internal Handles the end of the stream. */
  closed(_over) {
  }
  /** @internal Waits until all messages about delegated work are written. */
  async flushed() {
  }
  /** @internal From now on, only the latest notices are kept, unless a caller asks for notices. */
  needsNoNotices() {
    this.#spare = true;
  }
  #take(wanted2) {
    const notice = wanted2 === "session" ? void 0 : this.#notices.peek();
    const session = wanted2 === "notices" ? void 0 : this.#session.peek();
    if (notice !== void 0 && (session === void 0 || notice.at < session.at)) return this.#notices.shift();
    return session && this.#session.shift();
  }
  #keep(queue, event) {
    queue.push({ ...event, at: this.#count++ });
    this.#bell.ring();
  }
  /** Dispatches a line by its kind. Payloads are not checked here. */
  #hear(line2) {
    const o = Envelope.read(line2);
    if (o === void 0) return;
    const type = o.text("type");
    if (type === "response:success") {
      const [id, payload] = [o.text("correlationId"), o.document("payload")];
      if (!o.wrong) this.#calls.get(id)?.resolve(payload ?? Raw.part("{}"));
    } else if (type === "response:error") {
      const [id, why] = [o.text("correlationId"), refusal(o.document("error"))];
      if (!o.wrong) this.#refused(id, why);
    } else if (type.startsWith("notify:")) {
      const [name, id, timestamp2, payload] = [type.slice("notify:".length), o.text("id"), o.text("timestamp"), o.document("payload")];
      if (!o.wrong) this.#noticed({ name, id, timestamp: timestamp2, payload: read(payload ?? Raw.part("{}")) });
    } else if (o.text("message_type") !== "") {
      this.#overhear(line2);
    } else if (type !== "") {
      this.handed(Raw.part(line2.trim()), type);
    } else if (o.text("status") !== "") {
      this.responded(Raw.part(line2.trim()));
    }
  }
  #noticed(notice) {
    this.#keep(this.#notices, { notice });
    if (this.#spare && !this.#looked && this.#notices.length > remembered) this.#notices.shift();
    if (notice.name === "shutdown") this.shuttingDown();
  }
  /**
   * Passes a refusal to the caller whose message was refused: a request, an act on delegated work
   * or a session message. All have unique ids of one kind.
   */
  #refused(id, why) {
    const sent = this.#sent.get(id);
    if (sent === void 0) {
      const call = this.#calls.get(id);
      if (call) call.reject(new Refused(why));
      else if (!this.declined(id, why)) this.protested(id, new Refused(why));
      return;
    }
    const undelivered = new Undelivered(why);
    if (undelivered.again || sent.error !== void 0 || this.#lanes.sayLater(sent, undelivered)) return;
    sent.refuse(undelivered);
    this.#keep(this.#session, { lost: sent });
  }
  /**
   * Queues a session message unless it is a duplicate. The orchestrator repeats a message if its
   * arrival is uncertain.
   */
  #overhear(line2) {
    const said2 = readSaid(line2);
    if (said2 instanceof Error) return;
    if (this.#known.add(`${said2.from_agent.agent_id}
${said2.message_id}`, true)) this.#keep(this.#session, { said: said2 });
  }
  #end(cause) {
    const why = cause instanceof Error ? `reading what the orchestrator says: ${cause.message}` : "the orchestrator has closed the stream";
    this.#over = new Closed(why, false, cause);
    this.#ended.abort();
    for (const call of this.#calls.values()) call.reject(this.#over);
    this.closed(this.#over);
    this.#bell.ring();
  }
  /**
   * @internal Keeps the program alive while it waits for the orchestrator. An open stdin alone does
   * not.
   */
  async held(wait) {
    this.#hold(1);
    try {
      return await wait();
    } finally {
      this.#hold(-1);
    }
  }
  #hold(change) {
    this.#holds += change;
    const input = this.#in;
    if (this.#holds > 0) input.ref?.();
    else input.unref?.();
  }
};

// src/wire/taskline.ts
var telling = [
  "type",
  "id",
  "timestamp",
  "agentId",
  "payload",
  "message_type",
  "message_id",
  "from_agent",
  "to_agent",
  "jsonrpc",
  "method",
  "seq",
  "created_at",
  "from_actor",
  "to_actor",
  "topic",
  "status",
  "context",
  "routing",
  "observability"
];
function wrongWith(document2, judge5) {
  const problems = [];
  const p = new Part(document2, "", problems, true);
  judge5(p);
  p.once(...telling);
  return problems[0]?.message;
}
function checkedLine(members, judge5) {
  const text = line(members);
  const wrong = wrongWith(Raw.part(text), judge5);
  if (wrong !== void 0) throw new Unsaid(`it cannot be said: ${wrong}`);
  return text;
}
function isOwn(type) {
  return /^(request|event|response|notify):/.test(type);
}
var acts = ["task.status", "task.update", "task.cancel"];
function spellAct(id, type, what = {}) {
  const payload = type === "task.update" ? { input: value(what.input) ?? Raw.part("null") } : { reason: what.reason || void 0 };
  return checkedLine({ id, type, payload }, judge2);
}
function readAct(raw) {
  if (wrongWith(raw, judge2) !== void 0) return void 0;
  const { id, type, payload } = raw.value();
  if (type === "task.update") return { id, type, input: raw.at("payload", "input") };
  return { id, type, reason: payload.reason ?? "" };
}
function judge2(p) {
  p.label("id");
  const type = p.word("type", acts);
  p.inside("payload", (payload) => {
    if (type === "task.update") payload.anything("input");
    if (type === "task.cancel") payload.text("reason", "optional");
  });
}

// src/wire/taskrequest.ts
import { randomUUID as randomUUID4 } from "node:crypto";
var taskPriorities = ["low", "normal", "high", "urgent"];
var mostBaggage = 16 << 10;
function spellRequest(task2) {
  const id = task2.id || randomUUID4();
  const { type, context, routing, observability } = task2;
  const members = { id, type, payload: document(task2.payload), context: block(context), routing: block(routing), observability: block(observability) };
  return { id, line: checkedLine(members, judge3) };
}
function block(members) {
  if (typeof members !== "object" || members instanceof Raw) return members;
  const said2 = Object.entries(members ?? {}).filter(([, member]) => !saysNothing(member));
  return said2.length > 0 ? Object.fromEntries(said2) : void 0;
}
function saysNothing(member) {
  return member === void 0 || member === null || member === "" || Array.isArray(member) && member.length === 0;
}
function readRequest(raw) {
  if (wrongWith(raw, judge3) !== void 0) return void 0;
  const given = raw.value();
  const observability = { ...block(given.observability) };
  if (observability.baggage) withRaw(observability.baggage, raw.at("observability", "baggage"));
  return withRaw(
    {
      id: given.id,
      type: given.type,
      payload: withRaw(given.payload, raw.at("payload")),
      context: { ...block(given.context) },
      routing: { ...block(given.routing) },
      observability
    },
    raw
  );
}
function judge3(p) {
  p.label("id");
  const type = p.label("type");
  if (isOwn(type)) p.wrong("type", "must not begin with request:, event:, response: or notify:");
  if (acts.includes(type)) p.wrong("type", `is of a message about a task that there is: ${type} asks for none`);
  p.object("payload");
  p.inside("context", (c) => {
    for (const key2 of ["conversationId", "parentTaskId", "user"]) c.label(key2, "optional");
    c.moment("timestamp", "optional");
    c.word("priority", taskPriorities, "optional");
  }, "optional");
  p.inside("routing", (r) => {
    for (const key2 of ["source", "target"]) r.label(key2, "optional");
    r.labels("delegationChain");
  }, "optional");
  p.inside("observability", (o) => {
    for (const key2 of ["traceId", "spanId"]) o.label(key2, "optional");
    const baggage = o.object("baggage", "optional");
    if (Buffer.byteLength(baggage?.text ?? "") > mostBaggage) o.wrong("baggage", `must not be longer than ${mostBaggage} bytes`);
  }, "optional");
}

// src/work/asks.ts
var [mostAsked, longestAsked] = [1e3, 16 << 20];
var Asks = class {
  /** The number of calls of serve. */
  serving = 0;
  #queue = /* @__PURE__ */ new Set();
  // in order
  #latest = /* @__PURE__ */ new Map();
  // the latest queued item of each task
  #tell;
  #size = 0;
  #dropped = 0;
  // items dropped and not yet logged
  /**
   * tell is called when items were dropped. It gets a function that returns and resets their
   * number.
   */
  constructor(tell) {
    this.#tell = tell;
  }
  /** Queues a line that is a task request or an act on one. */
  hear(line2, type) {
    const size = line2.text.length;
    const act = acts.includes(type) ? readAct(line2) : void 0;
    const request = acts.includes(type) ? void 0 : readRequest(line2);
    if (act) this.push({ act, size });
    if (request) this.push({ request, size });
  }
  push(asked2) {
    const task2 = about2(asked2);
    const before = this.#latest.get(task2);
    if (before && alike(before, asked2)) return;
    this.#latest.set(task2, asked2);
    this.#queue.add(asked2);
    this.#size += asked2.size ?? 0;
    while (this.serving === 0 && this.#queue.size > 1 && (this.#queue.size > mostAsked || this.#size > longestAsked)) this.#drop();
  }
  shift() {
    const [asked2] = this.#queue;
    if (asked2) this.#remove(asked2);
    return asked2;
  }
  /** Drops the oldest item that is not a shutdown. */
  #drop() {
    for (const asked2 of this.#queue) {
      if (asked2.leave) continue;
      this.#remove(asked2);
      break;
    }
    const count = () => {
      const dropped = this.#dropped;
      this.#dropped = 0;
      return dropped;
    };
    if (++this.#dropped === 1) this.#tell(count);
  }
  #remove(asked2) {
    this.#queue.delete(asked2);
    this.#size -= asked2.size ?? 0;
    const task2 = about2(asked2);
    if (this.#latest.get(task2) === asked2) this.#latest.delete(task2);
  }
};
function about2({ request, act, id }) {
  return (request ?? act)?.id ?? id ?? "";
}
function alike(before, asked2) {
  if (asked2.leave) return before.leave === true;
  if (asked2.request) return before.request !== void 0;
  return asked2.act?.type === "task.status" && before.act?.type === "task.status";
}

// src/wire/fault.ts
var FaultCode = {
  InvalidInput: "INVALID_INPUT",
  MissingField: "MISSING_REQUIRED_FIELD",
  FieldType: "INVALID_FIELD_TYPE",
  FieldValue: "INVALID_FIELD_VALUE",
  AgentNotFound: "AGENT_NOT_FOUND",
  /** No agent offers the type. */
  CapabilityNotFound: "CAPABILITY_NOT_FOUND",
  AgentUnavailable: "AGENT_UNAVAILABLE",
  AgentBusy: "AGENT_BUSY",
  MCPNotConnected: "MCP_NOT_CONNECTED",
  MCPAuth: "MCP_AUTH_FAILED",
  MCPRateLimited: "MCP_RATE_LIMITED",
  MCP: "MCP_ERROR",
  Coordination: "COORDINATION_FAILED",
  /** The work would return to an agent that has had it. */
  GraphCycle: "TASK_GRAPH_CYCLE",
  /** The work cannot be delegated. */
  Delegation: "DELEGATION_FAILED",
  Timeout: "TIMEOUT",
  Internal: "INTERNAL_ERROR",
  KnowledgeNotFound: "KNOWLEDGE_NOT_FOUND",
  RateLimited: "RATE_LIMITED"
};
var Fault = class extends Error {
  name = "Fault";
  code;
  details;
  recoverable;
  constructor(code, message2, { details, recoverable = false, ...options2 } = {}) {
    super(message2, options2);
    this.code = code;
    this.details = details;
    this.recoverable = recoverable;
  }
  /** The message and the code. */
  get spoken() {
    return `${this.message} (${this.code})`;
  }
};
function faultOf(thrown) {
  let found = thrown;
  for (let depth = 0; depth < 16 && found instanceof Error && !(found instanceof Fault); depth++) found = found.cause;
  if (!(found instanceof Fault)) return { code: FaultCode.Internal, message: words(thrown), recoverable: false };
  const { code, message: message2, details, recoverable } = found;
  const exact = details?.["raw"] instanceof Raw ? details["raw"] : details;
  return { code: blank(code) ? FaultCode.Internal : code, message: words(message2), ...exact && { details: exact }, recoverable };
}
var longest2 = 8 << 10;
function untold(why) {
  const message2 = Buffer.from(`what came of it cannot be told: ${spoken(why)}`).subarray(0, longest2).toString();
  return { code: FaultCode.Internal, message: message2, recoverable: false };
}

// src/wire/taskresponse.ts
var statuses = ["pending", "in_progress", "completed", "failed", "cancelled", "input_required"];
function isFinal(r) {
  return r.status === "completed" || r.status === "failed" || r.status === "cancelled";
}
function troubleOf(r) {
  const why = r.error && new Fault(r.error.code, r.error.message, r.error);
  if (r.status === "failed") return why;
  return new Cancelled(why?.message ?? r.message ?? "", why);
}
function spellResponse(members) {
  return checkedLine(members, (p) => {
    judge4(p);
    p.each("artifacts", (a) => {
      if (/^sha256:[0-9a-f]{64}$/.test(a.text("ref", "optional"))) a.wrong("ref", "must not be one that the orchestrator gives to what it keeps");
    }, "optional");
  });
}
var unexplained = "The task failed, and its agent gave no reason";
var unasked = "The agent needs input to continue, and did not specify it";
function readResponse(raw) {
  if (wrongWith(raw, judge4) !== void 0) return void 0;
  const given = raw.value();
  const { id, status, message: message2, metadata, artifacts } = given;
  const all = {
    id,
    ...typeof message2 === "string" && { message: message2 },
    metadata: said(metadata ?? {}),
    artifacts: (artifacts ?? []).map((a) => said({ ...a, content: a.content ?? "" }))
  };
  const error = raw.at("error");
  switch (status) {
    case "completed": {
      const result2 = raw.at("result");
      return withRaw({ ...all, status, result: result2 && read(result2) }, raw);
    }
    case "failed":
      return withRaw({ ...all, status, error: faultIn(error) }, raw);
    case "cancelled":
      return withRaw({ ...all, status, ...error?.text[0] === "{" && { error: faultIn(error) } }, raw);
    case "input_required":
      return withRaw({ ...all, status, question: question(raw), options: options(raw.at("input", "options")) }, raw);
  }
  return withRaw({ ...all, status }, raw);
}
function said(members) {
  return Object.fromEntries(Object.entries(members).filter(([, member]) => member !== null));
}
function faultIn(error) {
  const { code, message: message2, recoverable } = error?.value() ?? {};
  const details = error?.at("details");
  return {
    code: blank(code) ? FaultCode.Internal : code,
    message: blank(message2) ? unexplained : message2,
    ...details && details.text !== "null" && { details: read(details) },
    recoverable: recoverable ?? false
  };
}
function question(raw) {
  const candidates = [raw.at("message"), raw.at("input", "question"), raw.at("error", "message")].map((text) => text?.value());
  return candidates.find((text) => !blank(text)) ?? unasked;
}
function options(list2) {
  const given = list2?.items().map((item) => item.value()) ?? [];
  const found = given.every((item) => typeof item === "string") ? given.map((value2) => ({ label: value2, value: value2 })) : given.map(option);
  const values = new Set(found.map((o) => blank(o?.value) ? void 0 : o.value));
  return values.has(void 0) || values.size < found.length ? [] : found;
}
function option(item) {
  const { label, value: value2 } = item ?? {};
  return typeof value2 === "string" && typeof (label ?? "") === "string" ? { label: label || value2, value: value2 } : void 0;
}
function judge4(p) {
  p.label("id");
  const status = p.word("status", statuses);
  p.without("type", "must not be in a response: only a request has it");
  p.fits("result", status === "completed", `must not be set with the status ${status}: only completed has it`);
  p.inside("error", (e) => {
    for (const key2 of ["code", "message"]) e.text(key2, "optional");
    e.object("details", "optional");
    e.truth("recoverable", "optional");
  }, "optional");
  p.inside("metadata", (m) => {
    for (const key2 of ["startedAt", "completedAt"]) m.moment(key2, "optional");
    for (const key2 of ["duration_ms", "retryCount"]) m.whole(key2, 0, "optional");
    m.label("agent", "optional");
  }, "optional");
  p.each("artifacts", (a) => {
    a.name("name");
    a.name("type");
    a.text("content", a.text("ref", "optional") === "" ? "needed" : "optional");
  }, "optional");
}

// src/work/delegation.ts
var [mostWaiting, longestWaiting] = [64, 16 << 20];
var reused = "id_reused";
var Delegation = class {
  /** The id of the task. */
  id;
  #stream;
  #within;
  #aside;
  #bell = new Bell();
  #turns = new Turns(1);
  // only one act is under way at a time
  #fresh = [];
  // not taken yet
  #size = 0;
  #heard = false;
  #last;
  #lost;
  // why no final response will come
  #act;
  /** @internal */
  constructor(id, stream, within, aside) {
    this.id = id;
    this.#stream = stream;
    this.#within = within;
    this.#aside = aside;
  }
  /**
   * Iterates over the responses up to the final one. Each response goes to one caller. Ends early
   * when the signal is aborted, when the request is refused, or when the stream has ended; wait
   * throws the reason. If responses are not taken, only the latest are kept.
   */
  async *responses({ signal = this.#within } = {}) {
    for (; ; ) {
      const next = await this.#find(() => this.#take(), signal).catch((error) => {
        if (!signal?.aborted) throw error;
      });
      if (!next) return;
      yield next;
    }
  }
  /**
   * Waits for the final response; takes nothing from responses. Throws a Fault if the work failed,
   * and Refused if the request was refused. Throws Cancelled if the work was cancelled, with a
   * Fault as its cause if the response has one. Goes on waiting while the work needs input. To send
   * that input, iterate over responses.
   */
  async wait({ signal = this.#within } = {}) {
    const last = await this.#find(() => this.#last, signal);
    if (last === void 0) throw about("delegate", this.#lost);
    if (last.status === "failed" || last.status === "cancelled") throw troubleOf(last);
    return last;
  }
  /**
   * Asks how the work stands and returns the next response, which responses yields as well. If the
   * work is over, sends nothing and returns the final response.
   */
  async status({ signal = this.#within } = {}) {
    return this.#say("task.status", {}, signal);
  }
  /**
   * Sends the input that the work requires, which may be any value, and returns at the next
   * response.
   */
  async update(input, { signal = this.#within } = {}) {
    await this.#say("task.update", { input }, signal);
  }
  /** Asks to cancel the work and waits for its final response. */
  async cancel(reason = "", { signal = this.#within } = {}) {
    await this.#say("task.cancel", { reason }, signal);
  }
  /** Sends an act when its turn comes. If the work is over, nothing is sent. */
  async #say(type, what, signal) {
    let done;
    try {
      const line2 = spellAct(this.id, type, what);
      done = await this.#turns.take(signal);
      if (this.#last === void 0) return await this.#saying(type, line2, signal);
      if (type === "task.update") throw new Unsaid(`task ${this.id} is over`);
      return this.#last;
    } catch (error) {
      throw about(type, error);
    } finally {
      done?.();
    }
  }
  async #saying(type, line2, signal) {
    const lost = this.#lost;
    if (lost instanceof Closed) throw new Closed(`${type}: not asked: the orchestrator has closed the stream`, false, lost.cause);
    if (lost !== void 0) throw lost;
    let acting;
    const come = new Promise((resolve, reject) => {
      this.#act = acting = { toTheEnd: type === "task.cancel", resolve, reject };
    });
    try {
      return (await this.#stream.held(() => Promise.all([unless(come, signal), this.#stream.write(line2)])))[0];
    } catch (error) {
      if (error instanceof Torn && this.#act === acting) this.#act = void 0;
      throw error;
    }
  }
  /** Waits until find returns a value. Returns undefined if it never will. */
  async #find(find, signal) {
    const over = () => this.#last !== void 0 || this.#lost !== void 0;
    let found = find();
    if (found !== void 0 || over()) return found;
    const back = this.#aside?.(signal);
    try {
      await this.#stream.held(async () => {
        while (found === void 0 && !over()) {
          await this.#bell.after(this.#bell.rung, signal);
          found = find();
        }
      });
      return found;
    } finally {
      await back?.();
    }
  }
  #take() {
    const oldest = this.#fresh.shift();
    if (oldest) this.#size -= oldest.raw.text.length;
    return oldest;
  }
  /** @internal Keeps a response until it is taken, and passes it to the act under way. */
  hear(response) {
    const final = isFinal(response);
    this.#heard = true;
    if (final) this.#last = response;
    this.#fresh.push(response);
    this.#size += response.raw.text.length;
    while (this.#fresh.length > 1 && (this.#fresh.length > mostWaiting || this.#size > longestWaiting)) this.#take();
    if (final || this.#act?.toTheEnd === false) this.#acted((act) => act.resolve(response));
    this.#bell.ring();
  }
  /**
   * @internal Handles a refusal and reports whether the work goes on. It does not if the request
   * itself was refused: its id belongs to another task, or no act is under way and no response has
   * arrived.
   */
  decline(why) {
    const request = why.reason === reused || this.#act === void 0 && !this.#heard;
    if (request) this.lose(why);
    else this.#acted((act) => act.reject(why));
    return !request;
  }
  /** @internal Records why the final response will not come. */
  lose(why) {
    this.#lost = why;
    this.#acted((act) => act.reject(why));
    this.#bell.ring();
  }
  #acted(tell) {
    const act = this.#act;
    this.#act = void 0;
    if (act) tell(act);
  }
};

// src/work/delegations.ts
var Delegations = class {
  #stream;
  #open = /* @__PURE__ */ new Map();
  // by the id of the task
  constructor(stream) {
    this.#stream = stream;
  }
  /** Delegates work. Calls that wait for it use the signal within, and aside around the wait. */
  async delegate(task2, signal, within, aside) {
    try {
      signal?.throwIfAborted();
      const { id, line: line2 } = spellRequest(task2);
      const { over } = this.#stream;
      if (over) throw new Closed(`delegate: not asked: ${over.message}`, false, over.cause);
      if (this.#open.has(id)) throw new Unsaid(`${id} was asked for, and is not over`);
      const d = new Delegation(id, this.#stream, within, aside);
      this.#open.set(id, d);
      await this.#stream.write(line2).catch((error) => {
        this.#open.delete(id);
        throw error;
      });
      return d;
    } catch (error) {
      throw about("delegate", error);
    }
  }
  /** Passes a response to its delegation. */
  hear(raw) {
    const response = readResponse(raw);
    const d = response && this.#open.get(response.id);
    if (!d) return;
    if (isFinal(response)) this.#open.delete(d.id);
    d.hear(response);
  }
  /** Passes a refusal to its delegation. Returns false if the refusal concerns something else. */
  decline(id, why) {
    const d = this.#open.get(id);
    if (d && !d.decline(new Refused(why))) this.#open.delete(id);
    return d !== void 0;
  }
  /** Ends all delegations: no more responses will arrive. */
  end(over) {
    for (const d of this.#open.values()) {
      d.lose(new Closed(`task ${d.id}: asked for, but no answer will come: ${over.message}`, true, over.cause));
    }
    this.#open.clear();
  }
};

// src/work/exchange.ts
var longest3 = 16 << 20;
var Finals = class {
  #byTask = /* @__PURE__ */ new Map();
  // the oldest are dropped first
  #size = 0;
  /** Adds a final response. It replaces an older one of the same task. */
  add(task2, word) {
    this.#forget(task2);
    this.#byTask.set(task2, word);
    this.#size += word.line.length;
    for (const oldest of this.#byTask.keys()) {
      if (this.#byTask.size === 1 || this.#size <= longest3 && this.#byTask.size <= remembered) break;
      this.#forget(oldest);
    }
  }
  get(task2) {
    return this.#byTask.get(task2);
  }
  #forget(task2) {
    this.#size -= this.#byTask.get(task2)?.line.length ?? 0;
    this.#byTask.delete(task2);
  }
};
var Exchange = class extends Stream {
  /** @internal The agent's delegations. */
  delegations = new Delegations(this);
  /** @internal The final responses of the agent. */
  finals = new Finals();
  #asks = new Asks((dropped) => this.#telling = this.#tellDropped(dropped));
  // for the function that serves
  #asked = new Bell();
  #telling;
  // sends the number of dropped items
  /**
   * Asks another agent for work: the target of its routing, or any agent that offers the type.
   * Returns when the request is written. The Delegation reports what follows, even that the request
   * was refused.
   */
  delegate(task2, { signal } = {}) {
    return this.delegations.delegate(task2, signal);
  }
  /** @internal Counts the calls of serve: change is 1 at the start of one, -1 at its end. */
  serves(change) {
    this.#asks.serving += change;
    this.needsNoNotices();
  }
  /** @internal Waits for the next item asked of the agent. Returns undefined as next does. */
  async nextAsked(signal) {
    return this.held(async () => {
      while (!signal.aborted) {
        const asked2 = this.#asks.shift();
        if (asked2 !== void 0 || this.over !== void 0) return asked2;
        await this.#asked.after(this.#asked.rung, signal).catch(() => {
        });
      }
      return void 0;
    });
  }
  /** @internal */
  handed(message2, type) {
    this.#asks.hear(message2, type);
    this.#asked.ring();
  }
  /** @internal */
  responded(response) {
    this.delegations.hear(response);
  }
  /** @internal */
  declined(id, why) {
    return this.delegations.decline(id, why);
  }
  /** @internal Queues a refusal for the function that serves. It may be about a response. */
  protested(id, refused) {
    if (this.#asks.serving === 0) return;
    this.#asks.push({ refused, id });
    this.#asked.ring();
  }
  /** @internal */
  shuttingDown() {
    this.#asks.push({ leave: true });
    this.#asked.ring();
  }
  /** @internal */
  closed(over) {
    this.delegations.end(over);
    this.#asked.ring();
  }
  /** @internal */
  async flushed() {
    await this.#telling;
  }
  /** Logs, after a pause, how many items were dropped. */
  async #tellDropped(dropped) {
    await rest(shortPause, this.ended);
    const message2 = `${dropped()} of the messages that ask this agent for work were dropped: the agent does not serve`;
    await this.tell("log", { level: "warn", message: message2 }).catch(() => {
    });
  }
};

// src/work/delegated.ts
var Delegated = class {
  id;
  type;
  /** The payload, with its text as raw. */
  payload;
  /** The whole request, as it came. */
  request;
  conn;
  /** @internal How often its question was refused for the rate limit. */
  tries = 0;
  /** @internal Settled when nothing is done for the job any more. */
  gone = Promise.resolve();
  #agent;
  #places;
  #stop;
  #asking = new Turns(1);
  #artifacts = [];
  #started;
  #question;
  #over = false;
  #place;
  // that it has, or waits for
  #returned = false;
  #waiting = 0;
  // number of waits that have given up the place
  /** @internal */
  constructor(conn, request, agent2, places, within) {
    this.conn = conn;
    this.request = request;
    this.id = request.id;
    this.type = request.type;
    this.payload = request.payload;
    this.#agent = agent2;
    this.#places = places;
    this.#stop = new Linked(within);
  }
  /**
   * Aborted with Cancelled, Shutdown or Closed, or for the reason of the signal given to serve. The
   * skill should then return soon.
   */
  get signal() {
    return this.#stop.signal;
  }
  /**
   * Reports that the job is running, with a message if there is one. Sends nothing while the job
   * waits for input.
   */
  progress = async (message2) => {
    this.#goesOn();
    if (!this.#question) await this.conn.write(this.#response("in_progress", blank(message2) ? {} : { message: message2 }));
  };
  /**
   * Asks the delegating agent for input and waits for it. The answer may be any value, whatever the
   * options are. Questions are asked one at a time. When the signal is aborted, ask reports that
   * the job goes on without the input. Input that arrives before that report is returned all the
   * same.
   */
  ask = async (question2, options2, { signal = this.signal } = {}) => read(await this.askRaw(question2, options2, { signal }));
  /** Like ask, but returns the undecoded answer. */
  askRaw = async (question2, options2, { signal = this.signal } = {}) => {
    const asks = asking2(question2, options2);
    const done = await this.#asking.take(signal);
    try {
      this.#goesOn();
      const line2 = this.#response("input_required", asks);
      const came = {};
      const answer = new Promise((resolve, refuse) => {
        this.#question = { asks, refuse, answer: (given) => resolve(came.input = given) };
      });
      const back = this.aside(signal);
      try {
        return (await this.conn.held(() => Promise.all([unless(answer, signal), this.conn.write(line2)])))[0];
      } catch (error) {
        if (came.input === void 0 || !signal.aborted) throw error;
        return came.input;
      } finally {
        await this.#withdraw().finally(back);
      }
    } finally {
      done();
    }
  };
  /** Keeps an artifact for the final response. */
  artifact = (artifact) => {
    this.#goesOn();
    const kept = { ...artifact };
    spellResponse({ id: this.id, status: "in_progress", artifacts: [kept] });
    this.#artifacts.push(kept);
  };
  /**
   * Delegates a part of the job to another agent, as Conn.delegate does. The request takes over the
   * job's trace, baggage, conversation, user and routing chain. Waits for the part end with the
   * job's signal, unless they have another one.
   */
  delegate = async (task2, { signal = this.signal } = {}) => {
    const { conversationId, user } = this.request.context;
    const { delegationChain } = this.request.routing;
    const { traceId, spanId, baggage } = this.request.observability;
    const part = {
      ...task2,
      context: { ...task2.context, ...conversationId && { conversationId }, ...user && { user }, parentTaskId: this.id },
      routing: { ...task2.routing, delegationChain: delegationChain ?? [] },
      observability: { ...task2.observability, ...traceId && { traceId }, ...spanId && { spanId }, ...baggage && { baggage: baggage.raw } }
    };
    return this.conn.delegations.delegate(part, signal, this.signal, (within = this.signal) => this.aside(within));
  };
  /** @internal Whether the final response is sent. */
  get over() {
    return this.#over;
  }
  /**
   * @internal Waits for the previous job of the same task, because both would change the same
   * things, and for a place. Returns false if the job does not begin.
   */
  async begin(before) {
    try {
      if (before) await unless(before, this.signal);
      this.#place = this.#places.join();
      await unless(this.#place.settled, this.signal);
    } catch {
    }
    if (this.signal.aborted) return false;
    this.#started = /* @__PURE__ */ new Date();
    return true;
  }
  /** @internal Ends the work on the job and gives up its place. */
  leave() {
    this.#returned = true;
    this.#makeRoom();
    this.#stop.letGo();
  }
  /** @internal */
  stop(reason) {
    this.#stop.abort(reason);
  }
  /**
   * @internal Passes input to the job's open question, if there is one, and sends the new status.
   */
  async answer(input) {
    this.#question?.answer(input);
    this.#question = void 0;
    await this.conn.write(this.standing());
  }
  /** @internal Whether the job waits for input. */
  get asks() {
    return this.#question !== void 0;
  }
  /** @internal Refuses the job's open question. Returns false if none is open. */
  refuse(why) {
    if (!this.asks) return false;
    this.#question?.refuse(why);
    this.#question = void 0;
    return true;
  }
  /** @internal Encodes the current status of the job. */
  standing() {
    if (this.#question) return this.#response("input_required", this.#question.asks);
    return this.#response(this.#started ? "in_progress" : "pending");
  }
  /** @internal Encodes the final response, after which nothing is sent. */
  last(status, what, artifacts) {
    const now = Math.max(Date.now(), this.#started?.getTime() ?? 0);
    this.#started ??= new Date(now);
    const took = { completedAt: timestamp(new Date(now)), duration_ms: now - this.#started.getTime() };
    const line2 = this.#response(status, { ...what, ...artifacts && this.#artifacts.length > 0 && { artifacts: this.#artifacts } }, took);
    this.#over = true;
    return line2;
  }
  /**
   * @internal Gives up the job's place while it waits. The returned function waits for a place
   * again; it returns without one if the job has to stop or the signal is aborted.
   */
  aside(signal) {
    this.#waiting++;
    this.#makeRoom();
    return async () => {
      this.#waiting--;
      if (this.#returned || this.#waiting > 0) return;
      this.#place ??= this.#places.join(true);
      await unless(unless(this.#place.settled, this.signal), signal).catch(() => {
      });
    };
  }
  /** Gives up the job's place, or its position in line for one. */
  #makeRoom() {
    if (this.#place) this.#places.leave(this.#place);
    this.#place = void 0;
  }
  #goesOn() {
    if (!this.#over) return;
    this.signal.throwIfAborted();
    throw new Unsaid(`job ${this.id} is over`);
  }
  /** Reports that the job goes on without the input, if it has not come. */
  async #withdraw() {
    if (!this.#question) return;
    this.#question = void 0;
    if (!this.#over && !this.signal.aborted) await this.conn.write(this.standing());
  }
  #response(status, what = {}, took = {}) {
    const metadata = { startedAt: this.#started && timestamp(this.#started), ...took, agent: this.#agent };
    const said2 = Object.values(metadata).some((member) => member !== void 0);
    return spellResponse({ id: this.id, status, ...what, ...said2 && { metadata } });
  }
};
function asking2(question2, options2) {
  if (blank(question2)) throw new Unsaid("a question needs words");
  const all = (options2 ?? []).map((o) => typeof o === "string" ? { label: o, value: o } : { label: o.label || o.value, value: o.value });
  const values = new Set(all.map((o) => o.value));
  if (values.size < all.length || [...values].some(blank)) throw new Unsaid("the options of a question must differ, and say something");
  return { message: question2, ...all.length > 0 && { input: { question: question2, options: all } } };
}
var Places = class {
  #free;
  #back = [];
  // of jobs that have finished waiting
  #line = [];
  // of jobs that have not begun
  /** Without a capacity there is no limit. */
  constructor(capacity) {
    this.#free = capacity !== void 0 && capacity >= 1 ? Math.floor(capacity) : Infinity;
  }
  /** Takes a place, or joins a line for one. Jobs that get their place back go first. */
  join(back = false) {
    const place = new Place();
    if (this.#free > 0) {
      this.#free--;
      place.settle();
    } else {
      (back ? this.#back : this.#line).push(place);
    }
    return place;
  }
  /** Passes a place to the next in line, or leaves the line. */
  leave(place) {
    for (const line2 of [this.#back, this.#line]) {
      const at = line2.indexOf(place);
      if (at < 0) continue;
      line2.splice(at, 1);
      return place.settle();
    }
    const next = this.#back.shift() ?? this.#line.shift();
    if (next) next.settle();
    else this.#free++;
  }
};
var Place = class {
  /** @internal */
  settle;
  /** Settled when the place is granted or given up. */
  settled = new Promise((settle) => this.settle = settle);
};

// src/work/serving.ts
var tooMany = "too_many_questions";
var Serving = class {
  #conn;
  #skills;
  #agent;
  #places;
  #stop;
  #running = new Running();
  #jobs = /* @__PURE__ */ new Map();
  // by task, until its work is over
  #repeats = /* @__PURE__ */ new Set();
  // the tasks with a response to repeat
  #unfinished = 0;
  constructor(conn, skills, { agent: agent2, capacity, signal }) {
    this.#conn = conn;
    this.#skills = skills;
    this.#agent = agent2 || process.env["ORC_AGENT_ID"] || void 0;
    spellResponse({ id: "any", status: "pending", metadata: { agent: this.#agent } });
    this.#places = new Places(capacity);
    this.#stop = new Linked(signal);
  }
  async run() {
    this.#conn.serves(1);
    await this.#listen(this.#stop.signal);
    this.#stop.abort(this.#conn.over);
    await this.#listenOn();
    this.#conn.serves(-1);
    for (const job of this.#jobs.values()) if (!job.over) this.#unfinished++;
    parting(this.#stop.signal.reason, this.#unfinished);
  }
  /**
   * Handles requests until the last skill has returned, because a skill may take a while to stop.
   */
  async #listenOn() {
    if (this.#running.idle) return;
    const idle = new AbortController();
    const rest2 = this.#running.wait().then(() => idle.abort());
    await this.#listen(idle.signal);
    await rest2;
    await this.#running.wait();
  }
  /** Handles requests until a signal is aborted or the stream ends. */
  async #listen(signal) {
    for (let a = await this.#conn.nextAsked(signal); a; a = await this.#conn.nextAsked(signal)) this.#heed(a);
  }
  /** Handles one item without blocking. */
  #heed({ request, act, refused, id, leave }) {
    if (leave) this.#stop.abort(new Shutdown());
    if (request) this.#requested(request);
    if (act) this.#told(act);
    if (refused) this.#protested(id, refused);
  }
  /** Returns the job of a task, or undefined if there is none that is not over. */
  #job(task2) {
    const job = this.#jobs.get(task2);
    return job?.over ? void 0 : job;
  }
  #told(act) {
    const job = this.#job(act.id);
    if (!job) {
      if (act.type === "task.status") this.#again(act.id);
    } else if (act.type === "task.status") {
      this.#go(() => this.#conn.write(job.standing()));
    } else if (act.type === "task.update") {
      this.#go(() => job.answer(act.input));
    } else {
      this.#end(job, "cancelled", () => ({}));
      job.stop(new Cancelled(act.reason ?? ""));
    }
  }
  /**
   * Begins the job of a request, unless there is one. If the final response of the task is
   * remembered, repeats that instead, unless the task may be done again.
   */
  #requested(request) {
    if (this.#job(request.id)) return;
    if (this.#conn.finals.get(request.id)?.again === false) return this.#again(request.id);
    const job = new Delegated(this.#conn, request, this.#agent, this.#places, this.#stop.signal);
    const skill = skillFor(request.type, this.#skills);
    if (!skill) {
      job.leave();
      const error = { code: FaultCode.CapabilityNotFound, message: `this agent has no skill for ${request.type}`, recoverable: false };
      return this.#end(job, "failed", () => ({ error }));
    }
    const before = this.#jobs.get(job.id);
    this.#jobs.set(job.id, job);
    job.gone = this.#running.go(() => this.#do(job, skill, before?.gone));
  }
  async #do(job, skill, before) {
    const begun = await job.begin(before);
    if (begun) await this.#perform(job, skill);
    job.leave();
    await before;
    const there = this.#jobs.get(job.id) === job;
    if (there && (begun || job.over)) this.#jobs.delete(job.id);
  }
  async #perform(job, skill) {
    try {
      const result2 = await skill.call(this.#skills, job);
      this.#end(job, "completed", () => ({ result: value(result2) ?? Raw.part("{}") }));
    } catch (error) {
      if (!job.over && gaveUp(job.signal, error)) this.#unfinished++;
      else this.#end(job, "failed", () => ({ error: faultOf(error) }));
    }
  }
  /**
   * Sends the final response of a job, unless one was sent, and remembers it. If it cannot be
   * encoded, the artifacts are left out, and the job fails unless it was cancelled.
   */
  #end(job, status, outcome) {
    if (job.over) return;
    let [line2, what] = ["", {}];
    try {
      what = outcome();
      line2 = job.last(status, what, true);
    } catch (error) {
      if (status !== "cancelled") what = { error: untold(error) };
      line2 = job.last(status === "cancelled" ? status : "failed", what, false);
    }
    const again = status === "cancelled" || what.error?.recoverable === true;
    this.#conn.finals.add(job.id, { line: line2, again, tries: 0 });
    this.#go(() => this.#conn.write(line2));
  }
  /** Repeats the final response of a task, if it is still remembered. */
  #again(task2) {
    const word = this.#conn.finals.get(task2);
    if (word) this.#go(() => this.#conn.write(word.line));
  }
  // Only refused responses get an answer. A question or final response must not be lost: if it is
  // refused for the rate limit, it is sent again later, provided that it still holds.
  #protested(task2, why) {
    const [job, word, limited] = [this.#job(task2), this.#conn.finals.get(task2), why.reason === Reason.Limited];
    const wrong = why.code === "INVALID_REQUEST" && why.reason === "";
    if (!job && !word) return;
    if (job && limited) {
      if (job.asks) this.#later(task2, job, () => job.asks ? job.standing() : void 0);
    } else if (limited) {
      this.#later(task2, word, () => this.#job(task2) ? void 0 : this.#conn.finals.get(task2)?.line);
    } else if (!job && wrong && !word.instead) {
      this.#insteadOf(word, task2, why);
    } else if (!job || !(wrong || why.reason === tooMany) || !job.refuse(why)) {
      this.#go(() => Promise.reject(new Error(`task ${task2}: ${spoken(why)}`, { cause: why })));
    }
  }
  /** Repeats a response after a pause, if it still holds. */
  #later(task2, what, spell2) {
    if (this.#repeats.has(task2)) return;
    this.#repeats.add(task2);
    const wait = Math.min(shortPause * 2 ** what.tries++, longPause);
    this.#go(async () => {
      await rest(wait, this.#conn.ended);
      this.#repeats.delete(task2);
      const line2 = spell2();
      if (line2 !== void 0) await this.#conn.write(line2);
    });
  }
  /** Reports a job as failed, because its final response was refused. */
  #insteadOf(word, id, why) {
    const error = { code: FaultCode.Internal, message: `what came of it was refused: ${why.message}`, recoverable: false };
    const line2 = spellResponse({ id, status: "failed", error, metadata: Raw.part(word.line).at("metadata") });
    this.#conn.finals.add(id, { line: line2, again: false, instead: true, tries: 0 });
    this.#go(() => this.#conn.write(line2));
  }
  #go(what) {
    void this.#running.go(() => what().catch((error) => troubled(this.#conn, error, this.#stop)));
  }
};
function skillFor(type, skills) {
  const skill = Object.hasOwn(skills, type) || !(type in Object.prototype) ? skills[type] : void 0;
  return typeof skill === "function" ? skill : void 0;
}

// src/work/session.ts
import { randomUUID as randomUUID5 } from "node:crypto";
var Member = class _Member {
  conn;
  identity;
  #chain;
  /** @internal The highest sequence number sent or received. */
  numbers;
  /** @internal */
  constructor(conn, identity, chain, numbers = { last: 0 }) {
    this.conn = conn;
    this.identity = identity;
    this.#chain = chain;
    this.numbers = numbers;
  }
  /**
   * Returns the same session with a correlation_id for its messages. Answers keep the
   * correlation_id of the message that they answer.
   */
  chain(correlationId) {
    return new _Member(this.conn, this.identity, correlationId, this.numbers);
  }
  /** @internal */
  get correlationId() {
    return this.#chain;
  }
  /**
   * Assigns a task to a developer. Starts a new correlation_id, unless the session comes from
   * chain.
   */
  assign(developer, work) {
    const m = this.#to({ agent_id: developer, agent_type: "developer" }, "task_assignment");
    return this.#say({ ...m, correlationId: m.correlationId ?? randomUUID5() }, assignment(work));
  }
  /** Acknowledges an assignment. */
  acknowledge(said2) {
    return this.#say(this.#answering(said2, "acknowledgment"), {});
  }
  /** Reports progress to the agent that assigned a task. */
  report(said2, how) {
    return this.#say(this.#answering(said2, "task_progress"), progress({ ...how, task_id: how.task_id || taskOf(said2) }));
  }
  /**
   * Reports the outcome of a task to the agent that assigned it. The default status is completed.
   */
  complete(said2, what) {
    return this.#say(this.#answering(said2, "task_completion"), completion({ ...what, task_id: what.task_id || taskOf(said2) }));
  }
  /** Asks a reviewer to review a task. */
  requestReview(reviewer, what) {
    const m = this.#to({ agent_id: reviewer, agent_type: "reviewer" }, "review_request");
    return this.#say(m, reviewRequest({ ...what, review_id: what.review_id || randomUUID5() }));
  }
  /** Sends the result of a review to the agent that asked for it. */
  judge(request, result2) {
    const asked2 = request.message_type === "review_request" ? request.payload : void 0;
    const ids = { review_id: result2.review_id || asked2?.review_id, task_id: result2.task_id || asked2?.task_id };
    return this.#say(this.#answering(request, "review_result"), reviewResult({ ...result2, ...ids }));
  }
  /** Sends feedback to an agent. */
  giveFeedback(to, what) {
    return this.#say(this.#to(to, "feedback"), feedback(what));
  }
  /** Sends feedback to the sender of a message. */
  answer(said2, what) {
    return this.#say(this.#answering(said2, "feedback"), feedback(what));
  }
  /** Asks another agent for its status. */
  askStatus(to, about3 = {}) {
    return this.#say(this.#to(to, "status_query"), about3);
  }
  /** Answers a status query with any object. The roles answer by themselves, with a Status. */
  tellStatus(query, status) {
    return this.#say(this.#answering(query, "status_response"), status);
  }
  /**
   * Tells an agent that a task or the session is aborted. The default session is the agent's own.
   */
  abort(to, what) {
    const own = what.scope === "session" ? this.identity.session : "";
    return this.#say(this.#to(to, "abort"), abort({ ...what, target_id: what.target_id || own }));
  }
  #to(to, type) {
    return { to, type, correlationId: this.#chain, sessionId: this.identity.session || void 0 };
  }
  /** Returns a message to the sender of another, with the same correlation_id. */
  #about(said2, type) {
    this.saw(said2);
    const m = this.#to(said2.from_agent, type);
    return { ...m, correlationId: said2.correlation_id ?? m.correlationId, sessionId: said2.session_id ?? m.sessionId };
  }
  #answering(said2, type) {
    return { ...this.#about(said2, type), replyTo: said2.message_id };
  }
  /**
   * @internal Raises the sequence number to that of a received message, so that numbers rise in the
   * whole session.
   */
  saw(said2) {
    const number = said2.sequence_number ?? 0;
    if (number > this.numbers.last && number - this.numbers.last <= farAhead) this.numbers.last = number;
  }
  async #say(m, payload) {
    for (let ahead = this.conn.ahead(m.to.agent_id); ahead; ahead = this.conn.ahead(m.to.agent_id)) await ahead;
    let written;
    let sent;
    try {
      const number = this.numbers.last + 1;
      const id = randomUUID5();
      const text = this.#spell(m, id, number, payload);
      this.numbers.last = number;
      sent = new Sent(m.type, m.to.agent_id, id, m.correlationId ?? "", number);
      written = this.conn.writeSession(sent, text);
    } catch (error) {
      throw about(m.type, error);
    }
    await written;
    return sent;
  }
  /** Encodes a message as a line and validates it as the orchestrator will. */
  #spell(m, id, number, payload) {
    const text = line({
      message_id: id,
      timestamp: timestamp(),
      sequence_number: number,
      from_agent: { agent_id: this.identity.agent, agent_type: this.identity.type },
      to_agent: m.to,
      message_type: m.type,
      payload: document(payload),
      correlation_id: m.correlationId,
      reply_to: m.replyTo,
      session_id: m.sessionId
    });
    const said2 = readSaid(text);
    const wrong = said2 instanceof Error ? said2.message : misdirected(said2);
    if (wrong !== void 0) throw new Unsaid(`it cannot be said: ${wrong}`);
    return text;
  }
};
var farAhead = 1 << 20;
function taskOf(said2) {
  return said2.message_type === "task_assignment" ? said2.payload.task.task_id : "";
}
function identify(me, env = process.env) {
  const agent2 = me.agent || env["ORC_AGENT_ID"] || "";
  const type = me.type || env["ORC_SESSION_TYPE"] || "";
  const session = me.session || env["ORC_SESSION"] || "";
  if (agent2 === "") throw new TypeError("who the agent is in its session is not known: $ORC_AGENT_ID is not set");
  if (!agentTypes.includes(type)) {
    throw new TypeError(`who the agent is in its session is not known: "${type}" is none of the types ${agentTypes.join(", ")} ($ORC_SESSION_TYPE)`);
  }
  return { agent: agent2, type, session };
}

// src/work/job.ts
var lookAgain = 6e4;
var Job = class {
  id;
  conn;
  /** As it was when do or plan was called. */
  task;
  #stop;
  #bell = new Bell();
  #said = [];
  // not taken yet
  /** @internal The artifacts so far. */
  made = [];
  /** @internal */
  constructor(conn, id, within) {
    this.conn = conn;
    this.id = id;
    this.#stop = new Linked(within);
  }
  /**
   * Aborted with Cancelled, Shutdown or Closed, or for the reason of the signal given to work. The
   * handler should then return soon.
   */
  get signal() {
    return this.#stop.signal;
  }
  /**
   * Reports how much of the task is done, from 0 to 1, and what there is so far. It does not complete
   * the task.
   */
  progress = (fraction, message2, output) => this.conn.progress(this.id, fraction, message2, output);
  /**
   * Keeps an artifact, which is handed in with the result: a text, or the path of a text file in the
   * agent's folder, which is read when the task is completed. One that is stored elsewhere has a ref.
   */
  artifact = (artifact) => {
    this.made.push({ ...artifact });
  };
  /**
   * Iterates over what the orchestrator reports about the task while it runs: the approval of its
   * plan or feedback on it, the answer of a person, an urgent note. Starts with the first update,
   * yields each once, and ends when the signal is aborted; the default is the job's signal.
   */
  updates = ({ signal = this.signal } = {}) => this.#updates(signal);
  async *#updates(signal) {
    while (!signal.aborted) {
      const rung = this.#bell.rung;
      const message2 = this.#said.shift();
      if (message2 !== void 0) yield message2;
      else await this.#bell.after(rung, signal).catch(() => {
      });
    }
  }
  /**
   * Asks a person a question about the task and waits for the answer, however long it takes. Until
   * then the task is out of the agent's hands. The context may be any value. Throws Withdrawn if
   * the task goes on without an answer.
   *
   * Conn.askUser is for a question that has nothing to do with a task, or a time limit.
   */
  help = async (question2, context, { signal = this.signal } = {}) => {
    const { help: asked2 } = await this.conn.requestHelp(this.id, question2, context, { signal });
    for (; ; ) {
      const rung = this.news;
      const task2 = await this.look(signal);
      const help = task2.help ?? {};
      if (help.questionId === asked2?.questionId && help.answeredAt) return help.answer ?? "";
      if (task2.state !== "needs_human") throw new Withdrawn();
      await this.await(rung, signal);
    }
  };
  /**
   * @internal The number of updates. Read it before looking at the task, so that none is missed.
   */
  get news() {
    return this.#bell.rung;
  }
  /** @internal Waits for news, or until it is time to look again. */
  await(news, signal = this.signal) {
    return this.#bell.after(news, signal, lookAgain);
  }
  /** @internal Adds updates and wakes all waiting calls. */
  hear(...messages) {
    this.#said.push(...messages);
    this.#bell.ring();
  }
  /** @internal Asks for the current state of the task. */
  async look(signal = this.signal) {
    const answer = await this.conn.askPatiently("get-task", { taskId: this.id }, signal);
    return partOf(answer, "task");
  }
  /** @internal Drops the artifacts so far, because the task is done again. */
  discard() {
    this.made.length = 0;
  }
  /** @internal */
  stop(reason) {
    this.#stop.abort(reason);
  }
  /** @internal */
  letGo() {
    this.#stop.letGo();
  }
};
function result(what) {
  return { $schema: "orchestratia/task-result/v1", ...what };
}
function fulfilled(data) {
  return { status: "fulfilled", data };
}
function partial(data) {
  return { status: "partial", data };
}
function skipped(reason) {
  return { status: "skipped", data: { reason } };
}

// src/work/postman.ts
import { createHash } from "node:crypto";
var Topic = {
  TaskAssigned: "task.assigned",
  TaskCompleted: "task.completed",
  TaskFailed: "task.failed",
  TaskProgress: "task.progress",
  AgentSpawned: "agent.spawned",
  AgentTerminated: "agent.terminated",
  AlertFired: "alert.fired",
  AlertResolved: "alert.resolved",
  Heartbeat: "heartbeat",
  Direct: "message.direct",
  Broadcast: "broadcast.all",
  /** The bus has accepted mail on a topic that is not registered. */
  Unknown: "topic.unknown"
};
var Actor = { Global: "GO", Bus: "Bus", Governor: "Governor" };
var broadcast = "broadcast";
var Postman = class {
  #conn;
  #read;
  #troubled;
  constructor(conn, read2, troubled2) {
    this.#conn = conn;
    this.#read = read2;
    this.#troubled = troubled2;
  }
  async deal(signal) {
    for (let mail = await this.#conn.mailbox.oldest(signal); mail; mail = await this.#conn.mailbox.oldest(signal)) {
      let failed;
      try {
        await this.#read(mail, signal);
      } catch (error) {
        if (gaveUp(signal, error)) return;
        failed = { why: error };
      }
      this.#conn.mailbox.dealtWith(mail.seq);
      await this.#close(mail, failed).catch(this.#troubled);
    }
  }
  /**
   * Acknowledges a message. If it failed, first reports that to GO. If the report fails, throws an
   * error and leaves the message unacknowledged. The next acknowledgment covers it all the same.
   */
  async #close(mail, failed) {
    const place = `message ${mail.seq} on ${mail.topic}`;
    if (failed) {
      const letter = letterOf(mail, failed.why);
      if (letter === void 0) await this.#troubled(new Error(`${place} is given up: ${spoken(failed.why)} (${codeOf(failed.why)})`));
      else {
        await this.#settle("send-message", letter, (why) => `${place} failed: ${spoken(failed.why)}; and ${Actor.Global} cannot be told: ${why}`);
      }
    }
    const seq = mail.raw.at("seq");
    await this.#settle("ack-messages", { seq }, (why) => `${place} is dealt with: ${why}`);
  }
  async #settle(operation, payload, trouble) {
    try {
      await this.#conn.settle(operation, payload);
    } catch (error) {
      throw error instanceof Torn ? error : new Error(trouble(spoken(error)), { cause: error });
    }
  }
  /** Sends a heartbeat at once and then at each interval. A refused heartbeat does not stop it. */
  async beat(signal, given) {
    let every = given ?? 6e4;
    while (!signal.aborted) {
      try {
        const beat = await this.#conn.askPatiently("heartbeat", void 0, signal);
        if (given === void 0 && beat.heartbeat_ms > 0) every = beat.heartbeat_ms;
      } catch (error) {
        if (gaveUp(signal, error)) return;
        await this.#troubled(error);
      }
      await sleep(Math.min(every, 2147483647), signal).catch(() => {
      });
    }
  }
};
var longest4 = 8 << 10;
function codeOf(why) {
  return why instanceof Fatal ? why.code : "FAILED";
}
function letterOf(mail, why) {
  if (mail.topic === Topic.TaskFailed || mail.from_actor === Actor.Bus) return void 0;
  const error = Buffer.from(words(why)).subarray(0, longest4).toString();
  return {
    to_actor: Actor.Global,
    topic: Topic.TaskFailed,
    payload: { error_code: codeOf(why), error, topic: mail.topic },
    reply_to: mail.seq,
    idempotency_key: key(`failed at ${mail.seq} of ${mail.created_at}`)
  };
}
function key(name) {
  const urls = Buffer.from("6ba7b8119dad11d180b400c04fd430c8", "hex");
  const sum = createHash("sha1").update(urls).update(name).digest();
  sum[6] = sum[6] & 15 | 80;
  sum[8] = sum[8] & 63 | 128;
  return sum.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// src/work/worker.ts
var unfinished2 = /* @__PURE__ */ Symbol("unfinished");
var noPlan = "no plan: this agent works as it is told";
var uncorrected = ["not_verified", "result", "no_workspace"];
var Work = class {
  #conn;
  #worker;
  #stop;
  #running = new Running();
  #jobs = /* @__PURE__ */ new Map();
  // by task; without cancelled jobs
  #unfinished = 0;
  constructor(conn, worker, signal) {
    this.#conn = conn;
    this.#worker = worker;
    this.#stop = new Linked(signal);
  }
  async run() {
    const { signal } = this.#stop;
    const { mail, beat } = this.#worker;
    if (mail) {
      const postman = new Postman(this.#conn, (m, s) => mail.call(this.#worker, m, s), (trouble) => this.#troubled(trouble));
      void this.#running.go(() => postman.deal(signal));
      void this.#running.go(() => postman.beat(signal, beat));
    }
    for (let e = await this.#conn.next("notices", signal); e; e = await this.#conn.next("notices", signal)) this.#heed(e.notice);
    this.#stop.abort(this.#conn.over);
    await this.#running.wait();
    parting(signal.reason, this.#unfinished);
  }
  /** Handles a notice. It does not wait for handlers. */
  #heed(notice) {
    if (notice.name === "shutdown") return this.#stop.abort(new Shutdown());
    if (notice.name === "message") {
      if (this.#worker.mail) this.#conn.mailbox.post(notice.payload);
      return;
    }
    const { taskId, reason, message: message2 } = notice.payload;
    if (typeof taskId !== "string" || taskId === "") return;
    if (notice.name === "task-assigned") this.#begin(taskId);
    if (notice.name === "task-cancelled") this.#cancel(taskId, reason ?? "");
    if (notice.name === "task-updated") this.#jobs.get(taskId)?.hear(message2 ?? "");
  }
  /**
   * Starts a job. The orchestrator repeats an assignment if its arrival is uncertain, or if it
   * wants a plan after all. A running job then looks at its task.
   */
  #begin(task2) {
    const known = this.#jobs.get(task2);
    if (known) return known.hear();
    const job = new Job(this.#conn, task2, this.#stop.signal);
    this.#jobs.set(task2, job);
    void this.#running.go(() => this.#finish(job));
  }
  /**
   * Stops a job. It is removed at once, even if its handler still runs, because the task may be
   * assigned again.
   */
  #cancel(task2, reason) {
    const job = this.#jobs.get(task2);
    this.#jobs.delete(task2);
    job?.stop(new Cancelled(reason));
  }
  async #finish(job) {
    let failed;
    try {
      if (await this.#perform(job) === unfinished2) this.#unfinished++;
    } catch (error) {
      failed = error instanceof Torn ? error : new Error(`task ${job.id}: ${spoken(error)}`);
    }
    if (this.#jobs.get(job.id) === job) this.#jobs.delete(job.id);
    job.letGo();
    if (failed !== void 0) await this.#troubled(failed);
  }
  /**
   * Does a task from its assignment to its report. If a person is asked whether the result will do, it
   * waits for the answer and does the task again.
   */
  async #perform(job) {
    const cancelled = () => job.signal.reason instanceof Cancelled;
    try {
      for (; ; ) {
        if (!await this.#begun(job) || cancelled()) return;
        let result2;
        try {
          if (!this.#worker.do) throw new Error("this agent has nothing that does tasks");
          result2 = await this.#worker.do(job);
        } catch (error) {
          if (cancelled() || gaveUp(job.signal, error)) throw error;
          return this.#fail(job.id, words(error));
        }
        if (cancelled() || !await this.#complete(job, result2)) return;
        job.discard();
      }
    } catch (error) {
      if (cancelled()) return;
      if (gaveUp(job.signal, error)) return unfinished2;
      throw error;
    }
  }
  // States of a task before it can be done, and what moves it on:
  //
  //     assigned     start-task; refused as long as the task waits for others
  //     planning     plan, submit-plan
  //     plan_review  a person approves the plan: running; or sends it back: planning
  //     needs_human  a person answers: running
  //     running      do
  //
  // A task that was matched by role and capabilities is running once its agent is notified. The
  // agent itself starts any other task.
  /** Brings a task to the state running. Returns false if there is nothing to do. */
  async #begun(job) {
    for (; ; ) {
      const news = job.news;
      job.task = await job.look();
      try {
        switch (job.task.state) {
          case "pending":
          case "done":
          case "failed":
          case "cancelled":
            return false;
          case "assigned":
            await this.#start(job);
            return true;
          case "planning":
            await this.#plan(job);
            break;
          case "plan_review":
          case "needs_human":
          case "in_review":
            await job.await(news);
            break;
          default:
            return true;
        }
      } catch (error) {
        if (refusedFor(Reason.Blocked, error)) await job.await(news);
        else if (!refusedFor(Reason.WrongState, error)) throw error;
      }
    }
  }
  /**
   * Reports the start of the work. Keeps resolved_inputs, because only the answer to get-task
   * contains them.
   */
  async #start(job) {
    const answer = await this.#conn.askPatiently("start-task", { taskId: job.id }, job.signal);
    job.task = read(partOf(answer, "task").raw.with("resolved_inputs", job.task.raw.at("resolved_inputs")));
  }
  /**
   * Submits a plan for the task. If planning fails, adds a note for people: a task that has not
   * begun cannot fail.
   */
  async #plan(job) {
    try {
      const plan = value(await this.#worker.plan?.(job)) ?? noPlan;
      await this.#conn.askPatiently("submit-plan", { taskId: job.id, plan }, job.signal);
    } catch (error) {
      if (gaveUp(job.signal, error) || job.signal.aborted || refusedFor(Reason.WrongState, error)) throw error;
      const content = `it cannot be planned: ${spoken(error)}`;
      await this.#conn.askPatiently("add-note", { taskId: job.id, content }, job.signal);
      throw new Error(content, { cause: error });
    }
  }
  /**
   * Reports a result, and returns whether the task has to be done again because a person is asked. If
   * the orchestrator refuses the result, the task fails; otherwise it would run for ever. It may be
   * tried again if what was done could not be verified.
   */
  async #complete(job, result2) {
    try {
      await this.#deliver(job, result2);
    } catch (error) {
      if (refusedFor("needs_human", error)) return true;
      if (error instanceof Unsaid) await this.#fail(job.id, `its result cannot be told: ${error.message}`);
      else if (error instanceof Refused && (uncorrected.includes(error.reason) || error.reason === "" && error.code === "INVALID_REQUEST")) {
        await this.#fail(job.id, `its result was refused: ${error.message}`, error.reason !== "" || void 0);
      } else throw error;
    }
    return false;
  }
  /** Asks for the completion. If its verification is interrupted, asks again after the next news. */
  async #deliver(job, result2) {
    const artifacts = job.made.length > 0 ? job.made : void 0;
    for (; ; ) {
      const { news } = job;
      try {
        await this.#conn.settle("complete-task", { taskId: job.id, result: value(result2), artifacts });
        return;
      } catch (error) {
        if (!refusedFor("interrupted", error)) throw error;
      }
      await job.await(news);
    }
  }
  /** Reports that a task failed. */
  async #fail(task2, why, retryable) {
    await this.#conn.settle("fail-task", { taskId: task2, error: why, retryable });
  }
  /** Reports the error of one task or one message. */
  #troubled(error) {
    return troubled(this.#conn, error, this.#stop);
  }
};

// src/conn.ts
function connect(input = process.stdin, output = process.stdout) {
  return new Conn(input, output);
}
var Conn = class extends Exchange {
  /**
   * Does assigned tasks until the agent is told to shut down, the stream ends or the signal is
   * aborted. Then it waits for the handlers and returns. The orchestrator limits how many tasks run
   * at a time to the agent's capacity, 1 by default.
   *
   * A task that is not running is started. While it waits for other tasks or for a person, other
   * tasks go on. The return value of a handler completes the task, and an exception fails it. A
   * cancelled task is not reported.
   *
   * At a shutdown, a handler may give up by throwing the reason of its signal, or Closed. Its task
   * is not reported either: the orchestrator decides what becomes of it. work then throws
   * Unfinished. The agent must exit with a failure, because a successful exit may complete its
   * task.
   */
  async work(worker, { signal } = {}) {
    await new Work(this, typeof worker === "function" ? { do: worker } : worker, signal).run();
  }
  /**
   * Does the jobs that others delegate to the agent, until the agent is told to shut down, the
   * stream ends or the signal is aborted. Then it waits for the skills and returns. A job without a
   * skill fails with CAPABILITY_NOT_FOUND.
   *
   * Each job gets one final response. Before it, only the skill reports progress. serve answers
   * status queries at once, and those about a finished job with its final response. It answers a
   * repeated request in the same way. If the job was cancelled, or failed with a recoverable fault,
   * a repeated request does it again.
   *
   * A cancelled job is over at once, and the result of its skill is dropped. At a shutdown, a skill
   * may give up by throwing the reason of its signal, or Closed. Such jobs, and jobs that have not
   * begun, are not reported: the orchestrator decides what becomes of them. serve then throws
   * Unfinished, as work does. Until the last skill has returned, serve answers requests and accepts
   * cancellations.
   *
   * Requests that arrive before serve is called are queued, up to a thousand and some megabytes.
   * Dropped ones are counted in the log. serve consumes no notices, so work, news or a session role
   * may run beside it. Only one serve may run at a time.
   */
  async serve(skills, options2 = {}) {
    await new Serving(this, skills, options2).run();
  }
  /** Returns the agent's membership in a session. */
  openSession(me = {}) {
    return new Session(this, identify(me));
  }
};
var Session = class _Session extends Member {
  chain(correlationId) {
    return new _Session(this.conn, this.identity, correlationId, this.numbers);
  }
  /**
   * Calls lead, which gives out the work of the session, and returns its result. While it runs, the
   * Architect receives news about the tasks.
   */
  async lead(lead, options2 = {}) {
    this.#opened("architect");
    return Architect.lead(this, typeof lead === "function" ? { do: lead } : lead, options2.signal);
  }
  /**
   * Does assigned tasks until the agent is told to shut down, the stream ends or the signal is
   * aborted. Then it waits for running tasks. It acknowledges each task, reports progress while the
   * task takes long, and always reports the outcome.
   *
   * A repeated assignment is done once. A new assignment of the same task replaces the old one,
   * which is no longer reported; neither is an aborted task. Tasks given up because of a shutdown
   * are not reported; develop then throws Unfinished, as Conn.work does.
   */
  async develop(developer, options2 = {}) {
    this.#opened("developer");
    await new Developing(this, typeof developer === "function" ? { do: developer } : developer).work(options2.signal);
  }
  /**
   * Answers review requests until the agent has to shut down, as develop does. A repeated request
   * is answered once; a request for an aborted task is not answered.
   *
   * If a review fails, there is no result. The architect gets feedback instead, which answers the
   * request and requires an action.
   */
  async review(reviewer, options2 = {}) {
    this.#opened("reviewer");
    await new Judging(this, typeof reviewer === "function" ? { do: reviewer } : reviewer).work(options2.signal);
  }
  #opened(role) {
    const { agent: agent2, type } = this.identity;
    if (type !== role) throw new TypeError(`${agent2} is of the type ${type}, and this is for one of the type ${role}`);
  }
};
export {
  Actor,
  Again,
  Architect,
  Assigned,
  Cancelled,
  Closed,
  Conn,
  Delegated,
  Delegation,
  Ended,
  Failed,
  Fatal,
  Fault,
  FaultCode,
  Incomplete,
  Job,
  Members,
  Raw,
  Reason,
  Refused,
  Rejected,
  Sent,
  Session,
  SessionTask,
  Shutdown,
  Topic,
  Torn,
  Undelivered,
  Undone,
  Unfinished,
  Unreviewed,
  Unsaid,
  Withdrawn,
  abortScopes,
  after2 as after,
  agentTypes,
  broadcast,
  categories,
  changeTypes,
  connect,
  dependencyTypes,
  feedbackTypes,
  fixes,
  focusAreas,
  fulfilled,
  inWords,
  messageTypes,
  outcomes,
  partial,
  priorities,
  result,
  severities,
  skipped,
  spoken,
  timestamp,
  touched,
  verdicts
};
