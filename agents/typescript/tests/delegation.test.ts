import assert from "node:assert/strict";
import { it } from "node:test";
import { Cancelled, Closed, type Delegation, Fault, Raw, Refused, Torn, Unsaid } from "@orchestrator/agent";
import { heard, next, type Pipe, pipe, prints } from "./pipe.js";

/** Delegates something, and hears it said. */
async function delegated(p: Pipe, id: string): Promise<Delegation> {
  const d = await p.conn.delegate({ id, type: "bake" });
  await prints(p.said, { id, type: "bake", payload: {} });
  return d;
}

it("tells everybody who waits what came of the work, and each response to one taker", async () => {
  const p = pipe();
  const d = await delegated(p, "a");
  const all = Promise.all(Array.from({ length: 50 }, () => d.wait()));
  const taken: string[] = [];
  const takers = [1, 2, 3, 4, 5].map(async () => {
    for await (const r of d.responses()) taken.push(r.message ?? r.status);
  });
  for (let n = 0; n < 20; n++) p.say({ id: "a", status: "in_progress", message: String(n) });
  p.say({ id: "a", status: "completed", result: { loaves: 2 } });
  for (const r of await all) assert.equal(r.result.loaves, 2);
  await Promise.all(takers);
  assert.deepEqual(taken, [...Array.from({ length: 20 }, (_, n) => String(n)), "completed"]);
});

it("keeps the latest of the responses that nobody takes", async () => {
  const p = pipe();
  const [many, long] = [await delegated(p, "many"), await delegated(p, "long")];
  for (let n = 0; n < 200; n++) p.say({ id: "many", status: "in_progress", message: String(n) });
  p.say({ id: "many", status: "completed" });
  for (let n = 0; n < 5; n++) p.say({ id: "long", status: "in_progress", message: n + "x".repeat(5 << 20) });
  p.say({ id: "long", status: "failed" });
  await assert.rejects(long.wait(), Fault);
  const kept = async (d: Delegation) => {
    const found: string[] = [];
    for await (const { message, status } of d.responses()) found.push(message?.split("x")[0] ?? status);
    return found;
  };
  const last = await kept(many);
  assert.deepEqual([last.length, last[0], last.at(-1)], [64, "137", "completed"]);
  assert.deepEqual(await kept(long), ["2", "3", "4", "failed"]);
});

it("loses nothing to a taker that leaves", async () => {
  const p = pipe();
  const d = await delegated(p, "a");
  const stop = new AbortController();
  const nothing = d.responses({ signal: stop.signal }).next();
  stop.abort(new Error("enough"));
  assert.equal((await nothing).done, true);
  for (const message of ["one", "two"]) p.say({ id: "a", status: "in_progress", message });
  for await (const { message } of d.responses()) {
    assert.equal(message, "one");
    break;
  }
  for await (const { message } of d.responses()) {
    assert.equal(message, "two");
    break;
  }
  await assert.rejects(d.wait({ signal: AbortSignal.abort(new Error("enough")) }), /enough/);
});

it("does not take what comes of something that was given up for something else", async () => {
  const p = pipe();
  const d = await delegated(p, "a");
  const stop = new AbortController();
  const asking = d.status({ signal: stop.signal });
  await prints(p.said, { id: "a", type: "task.status" });
  const waiting = d.status({ signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(asking, /enough/);
  await assert.rejects(waiting, /enough/, "which was not even said");
  p.say({ type: "response:error", correlationId: "a", error: { code: "INVALID_REQUEST", message: "too much", details: { reason: "rate_limited" } } });
  const update = d.update("rye");
  await prints(p.said, { id: "a", type: "task.update", payload: { input: "rye" } });
  p.say({ id: "a", status: "completed", result: "bread" });
  await update;
  assert.equal((await d.wait()).result, "bread", "the request was not refused");
  await assert.rejects(p.conn.delegate({ id: "b", type: "bake" }, { signal: stop.signal }), /enough/);
  await delegated(p, "b"); // it was not said, so its id is free
});

it("says nothing of what cannot be written, and everything can be asked for again", async () => {
  const p = pipe();
  const d = await delegated(p, "a");
  p.tear();
  await heard();
  await assert.rejects(d.status(), Torn);
  await assert.rejects(d.cancel(), Torn);
  for (let tries = 0; tries < 2; tries++) await assert.rejects(p.conn.delegate({ id: "b", type: "bake" }), Torn);
  p.end();
  await assert.rejects(d.wait(), (error) => error instanceof Closed && error.asked);
});

it("keeps what others have written, digit for digit", async () => {
  const p = pipe();
  const baggage = new Raw('{"n":12345678901234567890,"r":1.50}');
  const d = await p.conn.delegate({ id: "a", type: "bake", payload: { n: 1n << 70n }, observability: { baggage } });
  await next(p.said);
  p.say('{"id":"a","status":"failed","error":{"code":"BURNT","message":"black","details":{"degrees":12345678901234567890}}}');
  await assert.rejects(d.wait(), (error) => {
    assert(error instanceof Fault);
    assert.deepEqual([error.code, error.message, error.recoverable, error.spoken], ["BURNT", "black", false, "black (BURNT)"]);
    assert.equal(error.details?.["raw"].text, '{"degrees":12345678901234567890}');
    return true;
  });
  const e = await delegated(p, "b");
  p.say('{"id":"b","status":"completed","result":{"n":98765432109876543210},"artifacts":[{"name":"big","type":"text/plain","content":"","ref":"sha256:' + "0".repeat(64) + '"}]}');
  const r = await e.wait();
  assert.equal(r.result.raw.text, '{"n":98765432109876543210}');
  assert.equal(r.raw.at("result", "n")?.text, "98765432109876543210");
  assert.equal(r.artifacts[0]?.ref?.length, 71, "the orchestrator may have lost the content, and says so");
});

it("tells why work was cancelled, as far as somebody says", async () => {
  const p = pipe();
  const [a, b] = [await delegated(p, "a"), await delegated(p, "b")];
  p.say({ id: "a", status: "cancelled" });
  p.say({ id: "b", status: "cancelled", error: { code: "TIMEOUT", message: "nobody came", recoverable: true } });
  await assert.rejects(a.wait(), (error) => error instanceof Cancelled && error.reason === "" && error.message === "the task was cancelled" && error.cause === undefined);
  await assert.rejects(b.wait(), (error) => error instanceof Cancelled && error.reason === "nobody came" && error.cause instanceof Fault && error.cause.recoverable);
});

it("names what was refused, and what cannot be said", async () => {
  const p = pipe();
  const d = await delegated(p, "a");
  p.say({ type: "response:error", correlationId: "a", error: { code: "UNAUTHORIZED", message: "not you", details: { pointer: "/routing/source" } } });
  await assert.rejects(d.wait(), (error) => error instanceof Refused && error.spoken === "delegate: not you (UNAUTHORIZED)");
  await assert.rejects(d.cancel(), Refused);
  await assert.rejects(p.conn.delegate({ type: "" }), (error) => error instanceof Unsaid && error.message === "delegate: it cannot be said: type must not be empty");
  await assert.rejects(p.conn.delegate({ type: "bake", routing: { target: "a\nb" } }), /target must not have control characters in it/);
  await assert.rejects(p.conn.delegate({ type: "bake", observability: { baggage: { long: "x".repeat(16 << 10) } } }), /baggage must not be longer/);
  await assert.rejects(p.conn.delegate({ type: "bake", context: { timestamp: "now" } }), /timestamp must be an ISO 8601 time/);
  const e = await delegated(p, "b");
  await assert.rejects(e.update({ half: "\ud800" }), (error) => error instanceof Unsaid && error.message.startsWith("task.update: it cannot be said"));
});
