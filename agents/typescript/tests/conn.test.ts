import assert from "node:assert/strict";
import { PassThrough, Writable } from "node:stream";
import { it } from "node:test";
import { Closed, connect, Refused, spoken, Torn, Unsaid } from "@orchestrator/agent";
import { next, pipe } from "./pipe.js";

it("waits no longer than its signal allows, and passes over a late answer", async () => {
  const { conn, said, say, end } = pipe();
  const stop = new AbortController();
  const slow = conn.getTask("t-1", { signal: stop.signal });
  const request = await next(said);
  stop.abort(new Error("enough"));
  await assert.rejects(slow, /enough/);
  say({ type: "response:success", correlationId: request.id, payload: { task: { id: "t-1" } } });
  await assert.rejects(conn.getTask("t-2", { signal: stop.signal }), /enough/, "it is not even asked");
  const quick = conn.getTask("t-3");
  const asked = await next(said);
  assert.equal(asked.payload.taskId, "t-3");
  say({ type: "response:success", correlationId: asked.id, payload: { task: { id: "t-3" } } });
  assert.equal((await quick).id, "t-3");
  end();
  await conn.wait();
});

it("withdraws a question to a person that it no longer waits for", async () => {
  const { conn, said, end } = pipe();
  const stop = new AbortController();
  const asking = conn.askUser({ question: "Which one?" }, { signal: stop.signal });
  const request = await next(said);
  stop.abort(new Error("enough"));
  await assert.rejects(asking, /enough/);
  const withdrawn = await next(said);
  assert.deepEqual([withdrawn.type, withdrawn.payload], ["request:withdraw-question", { requestId: request.id }]);
  end();
  await conn.wait();
});

it("finds a thousand answers, each for its own question", async () => {
  const { conn, said, say } = pipe();
  const all = Array.from({ length: 1000 }, (_, n) => conn.ask<{ n: number }>("echo", { n }));
  const requests = [];
  while (requests.length < all.length) requests.push(await next(said));
  for (const request of requests.reverse()) say({ type: "response:success", correlationId: request.id, payload: request.payload });
  (await Promise.all(all)).forEach((answer, n) => assert.equal(answer.n, n));
});

it("takes texts as the options of a question", async () => {
  const { conn, said, say } = pipe();
  const answer = conn.askUser({ question: "Which?", options: ["md", { label: "Go", value: "go" }] });
  const request = await next(said);
  assert.deepEqual(request.payload.options, [{ value: "md" }, { label: "Go", value: "go" }]);
  say({ type: "response:success", correlationId: request.id, payload: { answer: "md" } });
  assert.equal((await answer).answer, "md");
});

it("keeps every notice, for whoever looks", async () => {
  const { conn, say, end } = pipe();
  for (let n = 0; n < 5000; n++) say({ type: "notify:noise", id: String(n) });
  end();
  const heard: string[] = [];
  for await (const notice of conn.news()) {
    heard.push(notice.id);
    if (heard.length === 7) break; // loses nothing
  }
  const takers = [1, 2, 3].map(async () => {
    for await (const notice of conn.news()) heard.push(notice.id);
  });
  await Promise.all(takers);
  assert.deepEqual(heard.map(Number).sort((a, b) => a - b), Array.from({ length: 5000 }, (_, n) => n));
});

it("stops listening when its signal is aborted", async () => {
  const { conn, say } = pipe();
  const stop = new AbortController();
  const heard: string[] = [];
  const listening = (async () => {
    for await (const { id } of conn.news({ signal: stop.signal })) {
      heard.push(id);
      stop.abort();
    }
  })();
  say({ type: "notify:noise", id: "1" });
  say({ type: "notify:noise", id: "2" });
  await listening;
  assert.deepEqual(heard, ["1"]);
});

it("says nothing more after a write that failed", async () => {
  const { conn, tear } = pipe();
  tear();
  await assert.rejects(conn.log("info", "hello"), Torn);
  await assert.rejects(conn.heartbeat(), Torn);
  await assert.rejects(conn.work(async () => "done", { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
});

it("tells why the stream could not be read", async () => {
  const input = new PassThrough();
  const conn = connect(input, new Writable({ write: (_chunk, _encoding, done) => done() }));
  const asking = conn.heartbeat();
  input.destroy(new Error("the line is dead"));
  await assert.rejects(asking, (error) => error instanceof Closed && error.asked && /the line is dead/.test(error.message));
  await assert.rejects(conn.wait(), /the line is dead/);
  await assert.rejects(conn.work(async () => {}), /the line is dead/);
});

it("names what was refused, and what cannot be said", async () => {
  const { conn, said, say } = pipe();
  const asking = conn.getTask("t-9");
  const { id } = await next(said);
  say({ type: "response:error", correlationId: id, error: { code: "NOT_FOUND", message: "there is no task t-9", details: { reason: "conflict" } } });
  await assert.rejects(asking, (error) => {
    assert(error instanceof Refused);
    assert.deepEqual([error.code, error.message, error.reason, error.operation], ["NOT_FOUND", "there is no task t-9", "conflict", "get-task"]);
    assert.equal(spoken(error), "get-task: there is no task t-9 (NOT_FOUND)");
    return true;
  });
  await assert.rejects(conn.ask("echo", [1]), (error) => error instanceof Unsaid && error.message === "echo: it cannot be said: a payload must be an object");
  const round: { self?: object } = {};
  round.self = round;
  await assert.rejects(conn.ask("echo", round), Unsaid);
  await assert.rejects(conn.log("info", "hello", "text" as never), /context must be an object/);
});

it("knows who it is in a session from its environment", () => {
  const { conn } = pipe();
  assert.throws(() => conn.openSession({ type: "developer" }), /ORC_AGENT_ID is not set/);
  assert.throws(() => conn.openSession({ agent: "coder", type: "worker" as never }), /"worker" is none of the types/);
  Object.assign(process.env, { ORC_AGENT_ID: "coder", ORC_SESSION_TYPE: "developer", ORC_SESSION: "kitchen" });
  assert.deepEqual(conn.openSession().identity, { agent: "coder", type: "developer", session: "kitchen" });
});
