import assert from "node:assert/strict";
import { it } from "node:test";
import { Cancelled, Closed, type Delegated, Fault, Raw, Refused, Shutdown, type Skill, Torn, Unfinished, Unsaid } from "@orchestrator/agent";
import { heard, next, type Pipe, pipe, prints } from "./pipe.js";

function hand(p: Pipe, id: string, type = "bake", more: object = {}): void {
  p.say({ id, type, payload: {}, ...more });
}

/** Serves with one skill. */
function bake(p: Pipe, skill: Skill, capacity?: number): Promise<void> {
  return p.conn.serve({ bake: skill }, { capacity });
}

it("survives whatever a skill throws, and whatever it returns", async () => {
  const p = pipe();
  const round: { self?: object } = {};
  round.self = round;
  const skills: { [type: string]: Skill } = {
    atOnce: () => {
      throw new Error("at once");
    },
    text: () => Promise.reject("a text"),
    nothing: () => Promise.reject(undefined),
    nameless: () => Promise.reject(Object.create(null)),
    odd: () => Promise.reject(Object.assign(new Error(), { message: 5 })),
    caused: () => Promise.reject(new Error("behind it", { cause: new Fault("NO_FLOUR", "there is none", { recoverable: true }) })),
    half: () => Promise.reject(new Error("\ud800")),
    round: async () => round,
    halves: async () => ({
      toJSON() {
        throw new Error("\udc00" + "x".repeat(1 << 20));
      },
    }),
    function: async () => () => 1,
    big: async () => 1n << 70n,
  };
  const serving = p.conn.serve(skills);
  const fails = async (type: string, code: string, message: RegExp) => {
    hand(p, type, type);
    const { status, error } = await next(p.said);
    assert.deepEqual([status, error.code], ["failed", code], type);
    assert.match(error.message, message);
  };
  await fails("atOnce", "INTERNAL_ERROR", /^at once$/);
  await fails("text", "INTERNAL_ERROR", /^a text$/);
  await fails("nothing", "INTERNAL_ERROR", /^undefined$/);
  await fails("nameless", "INTERNAL_ERROR", /./);
  await fails("odd", "INTERNAL_ERROR", /^5$/);
  await fails("caused", "NO_FLOUR", /^there is none$/);
  await fails("half", "INTERNAL_ERROR", /cannot be told: .*half of a character/);
  await fails("round", "INTERNAL_ERROR", /what came of it cannot be told/);
  await fails("halves", "INTERNAL_ERROR", /what came of it cannot be told/);
  for (const type of ["constructor", "toString", "__proto__"]) await fails(type, "CAPABILITY_NOT_FOUND", new RegExp(type));
  hand(p, "function", "function");
  await prints(p.said, { id: "function", status: "completed", result: {} });
  hand(p, "big", "big");
  await prints(p.said, { id: "big", status: "completed", result: 2 ** 70 });
  p.end();
  await serving;
});

it("takes the methods of an object for skills", async () => {
  class Kitchen {
    [type: string]: Skill;
    bake = async () => this.name();
    async brew(job: Delegated) {
      return `${await this.name()} brews ${job.payload["what"]}`;
    }
    async name() {
      return "the kitchen";
    }
  }
  const p = pipe();
  const serving = p.conn.serve(new Kitchen());
  hand(p, "a", "brew", { payload: { what: "tea" } });
  await prints(p.said, { id: "a", result: "the kitchen brews tea" });
  p.end();
  await serving;
});

it("does no more at a time than its capacity, and says of each job once what came of it", async () => {
  const [jobs, capacity] = [300, 7];
  const p = pipe();
  let [now, most] = [0, 0];
  const working = async (what: () => Promise<unknown>) => {
    most = Math.max(most, ++now);
    await what();
    now--;
  };
  const serving = bake(p, async (job) => {
    await working(() => job.progress("at work"));
    await job.ask("Which?");
    await working(heard);
    return job.id;
  }, capacity);
  for (let n = 0; n < jobs; n++) {
    hand(p, String(n));
    p.say({ id: String(n), type: "task.status", payload: {} });
  }
  const ends = new Map<string, string>();
  while (ends.size < jobs) {
    const { id, status } = await next(p.said);
    assert(!ends.has(id), `${id} says ${status} after its end`);
    if (status === "input_required" && id.endsWith("3")) p.say({ id, type: "task.cancel", payload: {} });
    else if (status === "input_required") p.say({ id, type: "task.update", payload: { input: 1 } });
    else if (status === "completed" || status === "cancelled") ends.set(id, status);
  }
  for (const [id, status] of ends) assert.equal(status === "cancelled", id.endsWith("3"), id);
  assert(most > 1 && most <= capacity, `${most} at a time`);
  p.end();
  await serving;
});

it("gives the place of a job that waits for several things away once", async () => {
  const p = pipe();
  const serving = bake(p, async (job) => {
    if (job.id !== "a") return;
    const parts = await Promise.all(["1", "2", "3"].map((id) => job.delegate({ id, type: "mill" })));
    await Promise.all(parts.map((part) => part.wait()));
    await job.ask("And now?");
  }, 1);
  hand(p, "a");
  for (const id of ["1", "2", "3"]) await prints(p.said, { id, type: "mill", context: { parentTaskId: "a" } });
  hand(p, "b");
  await prints(p.said, { id: "b", status: "completed" });
  for (const id of ["1", "2", "3"]) p.say({ id, status: "completed" });
  await prints(p.said, { id: "a", status: "input_required" });
  hand(p, "c");
  await prints(p.said, { id: "c", status: "completed" });
  p.say({ id: "a", type: "task.update", payload: { input: null } });
  await prints(p.said, { id: "a", status: "in_progress" });
  await prints(p.said, { id: "a", status: "completed" });
  for (const id of ["d", "e"]) {
    hand(p, id);
    await prints(p.said, { id, status: "completed" });
  }
  p.end();
  await serving;
});

it("lets a job that goes on have a place before those that have not begun", async () => {
  const p = pipe();
  const begun: string[] = [];
  const gates = new Map<string, () => void>();
  const serving = bake(p, async (job) => {
    begun.push(job.id);
    if (job.id === "a") begun.push(await job.ask("Which?"));
    else await new Promise<void>((open) => gates.set(job.id, open));
  }, 1);
  for (const id of ["a", "b", "c"]) hand(p, id);
  await prints(p.said, { id: "a", status: "input_required" });
  p.say({ id: "a", type: "task.update", payload: { input: "rye" } });
  await prints(p.said, { id: "a", status: "in_progress" });
  gates.get("b")!();
  for (const id of ["b", "a"]) await prints(p.said, { id, status: "completed" });
  assert.deepEqual(begun.slice(0, 3), ["a", "b", "rye"]);
  await heard();
  gates.get("c")!();
  await prints(p.said, { id: "c", status: "completed" });
  p.end();
  await serving;
});

it("serves until its signal is aborted, and remembers what it has said", async () => {
  const p = pipe();
  const [stop, enough] = [new AbortController(), new Error("enough")];
  const untilOver = (job: Delegated) => new Promise((_, reject) => job.signal.addEventListener("abort", () => reject(job.signal.reason)));
  const serving = p.conn.serve({ bake: (job) => (job.id === "a" ? untilOver(job).catch(() => "in time") : untilOver(job)) }, { signal: stop.signal });
  for (const id of ["a", "b"]) hand(p, id);
  await heard();
  stop.abort(enough);
  await assert.rejects(serving, enough);
  await prints(p.said, { id: "a", result: "in time" });
  const again = bake(p, untilOver);
  p.say({ id: "a", type: "task.status", payload: {} });
  await prints(p.said, { id: "a", result: "in time" });
  hand(p, "c");
  await heard();
  p.say({ type: "notify:shutdown", payload: {} });
  await assert.rejects(again, (error) => error instanceof Unfinished && error.tasks === 1 && error.cause instanceof Shutdown);
});

it("ends when nothing can be said any more", async () => {
  const p = pipe();
  const serving = bake(p, async (job) => job.progress("at work"));
  p.tear();
  hand(p, "a");
  await assert.rejects(serving, Torn);
});

it("leaves a question when the stream ends", async () => {
  const p = pipe();
  let why: unknown;
  const serving = bake(p, (job) => job.ask("Which?").catch((error) => Promise.reject((why = error))));
  hand(p, "a");
  await prints(p.said, { id: "a", status: "input_required" });
  p.end();
  await assert.rejects(serving, Unfinished);
  assert(why instanceof Closed);
});

it("goes on without an answer for which it does not wait any longer", async () => {
  const p = pipe();
  const stop = new AbortController();
  const serving = bake(p, async (job) => {
    const asking = assert.rejects(job.ask("Which?", ["rye", "wheat"], { signal: stop.signal }), /enough/);
    await heard();
    await job.progress("passed over while it asks");
    await asking;
    return (await job.ask("How much?")).raw.at("grams");
  });
  hand(p, "a");
  const options = [{ label: "rye", value: "rye" }, { label: "wheat", value: "wheat" }];
  await prints(p.said, { id: "a", message: "Which?", input: { question: "Which?", options } });
  await heard();
  stop.abort(new Error("enough"));
  await prints(p.said, { id: "a", status: "in_progress" });
  await prints(p.said, { id: "a", message: "How much?" });
  p.say('{"id":"a","type":"task.update","payload":{"input":{"grams":0.1e1}}}');
  await prints(p.said, { id: "a", status: "in_progress" });
  await prints(p.said, { id: "a", status: "completed", result: 1 });
  p.end();
  await serving;
});

it("says nothing more of a job that is over", async () => {
  const p = pipe();
  const jobs = new Map<string, Delegated>();
  const serving = bake(p, async (job) => {
    jobs.set(job.id, job);
    if (job.id === "b") await new Promise((over) => job.signal.addEventListener("abort", over));
  });
  hand(p, "a");
  await prints(p.said, { id: "a", status: "completed" });
  hand(p, "b");
  await heard();
  p.say({ id: "b", type: "task.cancel", payload: { reason: "not hungry" } });
  await prints(p.said, { id: "b", status: "cancelled" });
  const [a, b] = [jobs.get("a")!, jobs.get("b")!];
  await assert.rejects(a.progress(), Unsaid);
  await assert.rejects(a.ask("Which?"), Unsaid);
  assert.throws(() => a.artifact({ name: "late", type: "text/plain", content: "" }), Unsaid);
  await assert.rejects(b.progress(), (error) => error instanceof Cancelled && error.reason === "not hungry");
  await assert.rejects(b.delegate({ type: "mill" }), Cancelled);
  p.end();
  await serving;
});

it("refuses what makes no sense before it is said", async () => {
  const p = pipe();
  const serving = bake(p, async (job) => {
    await assert.rejects(job.ask(" "), /a question needs words/);
    await assert.rejects(job.ask("Which?", ["rye", { value: "rye", label: "Rye" }]), /the options of a question must differ/);
    await assert.rejects(job.progress("\ud800"), /half of a character/);
    assert.throws(() => job.artifact({ name: "", type: "text/plain", content: "" }), /name must not be empty/);
    assert.throws(() => job.artifact({ name: "bread", type: "text/plain", content: 7 as never }), /content must be a string/);
    assert.throws(() => job.artifact({ name: "bread", type: "text/plain", content: "", ref: "sha256:" + "0".repeat(64) }), /must not be one that the orchestrator gives/);
    job.artifact({ name: "photo", type: "image/png", content: "", ref: "photo-1" });
  });
  hand(p, "a");
  await prints(p.said, { status: "completed", result: {}, artifacts: [{ name: "photo", type: "image/png", content: "", ref: "photo-1" }] });
  p.end();
  await serving;
});

it("keeps what goes from one agent to another, digit for digit", async () => {
  const p = pipe();
  const lines: string[] = [];
  const write = p.conn.write.bind(p.conn);
  p.conn.write = (line) => (lines.push(line), write(line));
  const serving = bake(p, async ({ payload, request, delegate }) => {
    const part = await delegate({ id: "part", type: "mill", payload: payload.raw });
    await part.wait();
    return request;
  });
  p.say('{"id":"a","type":"bake","payload":{"grams":12345678901234567890},"observability":{"traceId":"t","baggage":{"n":1.50}}}');
  await next(p.said);
  assert.match(lines[0]!, /"payload":\{"grams":12345678901234567890\}.*"baggage":\{"n":1.50\}/);
  p.say('{"id":"part","status":"failed","error":{"code":"BURNT","message":"black","details":{"n":98765432109876543210},"recoverable":true}}');
  await prints(p.said, { id: "a", status: "failed" });
  assert.equal(new Raw(lines[1]!).at("error")?.text, '{"code":"BURNT","message":"black","details":{"n":98765432109876543210},"recoverable":true}');
  p.end();
  await serving;
});

it("knows who it is from its environment", async () => {
  process.env["ORC_AGENT_ID"] = "baker";
  const p = pipe();
  const serving = p.conn.serve({});
  delete process.env["ORC_AGENT_ID"];
  hand(p, "a");
  assert.equal((await next(p.said)).metadata.agent, "baker");
  p.end();
  await serving;
  await assert.rejects(p.conn.serve({}, { agent: "a\nb" }), Unsaid);
});

it("bounds what it keeps when it serves for a long time", async () => {
  const p = pipe();
  for (let n = 0; n < 1000; n++) p.say({ id: "a", type: "task.status", payload: {} });
  for (let n = 0; n < 1000; n++) hand(p, "a");
  for (let n = 0; n < 1000; n++) p.say({ id: "a", type: "task.status", payload: {} });
  await heard();
  let finish!: () => void;
  const may = new Promise<void>((open) => (finish = open));
  const serving = bake(p, async () => {
    await may;
    return "x".repeat(9 << 20);
  });
  await prints(p.said, { id: "a", status: "in_progress" });
  finish();
  await prints(p.said, { id: "a", status: "completed" });
  hand(p, "b");
  await prints(p.said, { id: "b", status: "completed" });
  p.say({ id: "a", type: "task.status", payload: {} }); // which is forgotten
  p.say({ id: "b", type: "task.status", payload: {} });
  await prints(p.said, { id: "b", status: "completed" });
  for (let n = 0; n < 5000; n++) p.say({ type: "notify:noise", id: String(n) });
  p.end();
  await serving;
  const left: string[] = [];
  for await (const { id } of p.conn.news()) left.push(id);
  assert.deepEqual([left.length, left.at(-1)], [4096, "4999"]);
});

it("bounds what is asked while nobody serves, and tells how much it has dropped", async () => {
  const p = pipe();
  p.say({ type: "notify:shutdown", payload: {} });
  for (let n = 0; n < 1500; n++) hand(p, String(n));
  for (let dropped = 0; dropped < 501; ) { // which may be told in parts
    const { level, message } = (await prints(p.said, { type: "event:log" })).payload;
    assert.match(message, /^\d+ of the messages that ask this agent for work were dropped: the agent does not serve$/);
    assert.equal(level, "warn");
    dropped += parseInt(message);
    assert(dropped <= 501);
  }
  await bake(p, async () => {}); // the agent is to go, and nothing begins
  const serving = bake(p, async () => {});
  for (let n = 501; n < 1500; n++) await prints(p.said, { id: String(n), status: "completed" });
  p.end();
  await serving;
});

it("heeds what is asked after its signal was aborted, until the last job has returned", async () => {
  const p = pipe();
  const [stop, enough] = [new AbortController(), new Error("enough")];
  let finish!: () => void;
  const may = new Promise<void>((open) => (finish = open));
  const serving = p.conn.serve({ bake: () => may }, { signal: stop.signal, capacity: 1 });
  for (const id of ["a", "b"]) hand(p, id);
  await heard();
  stop.abort(enough);
  for (const [id, status] of [["a", "in_progress"], ["b", "pending"]]) {
    p.say({ id, type: "task.status", payload: {} });
    await prints(p.said, { id, status });
  }
  p.say({ id: "b", type: "task.cancel", payload: {} });
  await prints(p.said, { id: "b", status: "cancelled" });
  finish();
  await prints(p.said, { id: "a", status: "completed" });
  await assert.rejects(serving, enough);
});

it("returns input that comes as the limit does", async () => {
  const p = pipe();
  const stop = new AbortController();
  const serving = bake(p, async (job) => job.ask("Which?", [], { signal: stop.signal }));
  hand(p, "a");
  await prints(p.said, { id: "a", status: "input_required" });
  const write = p.conn.write.bind(p.conn);
  p.conn.write = (line) => (stop.abort(new Error("too late")), write(line)); // as it is said that the job goes on
  p.say({ id: "a", type: "task.update", payload: { input: "rye" } });
  await prints(p.said, { id: "a", status: "in_progress" });
  await prints(p.said, { id: "a", status: "completed", result: "rye" });
  p.end();
  await serving;
});

it("hears of what it has said only while it serves", async () => {
  const p = pipe();
  const refuse = (id: string) => p.say({ type: "response:error", correlationId: id, error: { code: "INVALID_REQUEST", message: "100 wait", details: { reason: "too_many_questions" } } });
  refuse("a");
  let why: unknown;
  const serving = bake(p, (job) => job.ask("Which?").catch((error) => (why = error) && "without"));
  hand(p, "a");
  await prints(p.said, { id: "a", status: "input_required" });
  refuse("a");
  await prints(p.said, { id: "a", status: "completed", result: "without" });
  assert(why instanceof Refused && why.reason === "too_many_questions");
  p.end();
  await serving;
});
