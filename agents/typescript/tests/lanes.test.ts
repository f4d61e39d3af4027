import assert from "node:assert/strict";
import { PassThrough, Writable } from "node:stream";
import { it } from "node:test";
import { connect } from "@orchestrator/agent";

it("says again what was refused because it was too much, and nothing overtakes it", async () => {
  const input = new PassThrough();
  const lines: { message_id: string; sequence_number: number; to_agent: { agent_id: string } }[] = [];
  const write = (chunk: Buffer, _: unknown, done: () => void) => {
    lines.push(JSON.parse(chunk.toString()));
    done();
  };
  const conn = connect(input, new Writable({ write }));
  const session = conn.openSession({ agent: "coder", type: "developer" });
  const say = (to: string) => session.askStatus({ agent_id: to, agent_type: "architect" });
  const refuse = (id: string, details: object) => {
    const error = { code: "TIMEOUT", message: "it takes nothing", details: { original_message_id: id, error_type: "timeout", retry_count: 0, max_retries: 3, ...details } };
    input.write(JSON.stringify({ type: "response:error", correlationId: id, error }) + "\n");
  };
  const first = await say("lead");
  const second = await say("lead");
  refuse(second.messageId, { waiting: 7 });
  refuse(first.messageId, { waiting: 7 });
  refuse(first.messageId, { waiting: 7 });
  await new Promise((over) => setTimeout(over, 20));
  const third = say("lead");
  await say("other"); // who takes what is said
  assert.deepEqual(lines.map((l) => l.sequence_number), [1, 2, 3]);
  const began = Date.now();
  await third;
  assert(Date.now() - began > 900, "it is silent for a while");
  assert.deepEqual(lines.map((l) => l.sequence_number), [1, 2, 3, 1, 2, 4]);
  assert.deepEqual(lines[3], lines[0], "the same line");
  assert.equal(first.error, undefined);
  refuse(first.messageId, {});
  assert.equal((await first.refused).code, "TIMEOUT", "it is not too much any more, and will not be taken");
  input.end();
  await conn.wait();
});

it("says it once when nobody tells any more what is refused", async () => {
  const input = new PassThrough();
  const lines: string[] = [];
  const conn = connect(input, new Writable({ write: (chunk, _, done) => (lines.push(String(chunk)), done()) }));
  const sent = await conn.openSession({ agent: "coder", type: "developer" }).askStatus({ agent_id: "lead", agent_type: "architect" });
  const error = { code: "INVALID_REQUEST", message: "too much", details: { reason: "rate_limited" } };
  input.end(JSON.stringify({ type: "response:error", correlationId: sent.messageId, error }) + "\n");
  await conn.wait();
  assert.equal(lines.length, 2);
  assert.equal(lines[1], lines[0]);
});
