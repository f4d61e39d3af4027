import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { it } from "node:test";
import { Raw } from "../src/wire/json.js";
import { difference, type Names, resolve } from "./equal.js";
import { parseSteps, type Step } from "./file.js";

// The examples of the README are programs. Each has the conversation behind it that it
// has with its orchestrator.

const folder = process.env["EXAMPLES"];
assert(folder, "$EXAMPLES is where the examples are, in JavaScript");
const text = readFileSync("README.md", "utf8");
const conversations = [...text.matchAll(/^```ts\n(.*?)\n```\n\n```dialogue\n(.*?)```$/gms)].map((found) => found[2]!);
const programs = readdirSync(folder).filter((name) => name.endsWith(".mjs")).sort();
assert.equal(programs.length, conversations.length, "each example has a conversation behind it");

conversations.forEach((conversation, i) => {
  it(programs[i]!, { timeout: 20_000 }, () => converse(join(folder, programs[i]!), parseSteps(conversation, programs[i]!)));
});

/** Has a conversation with a program, which must end by itself and well. */
async function converse(program: string, steps: Step[]): Promise<void> {
  const who = steps[0]?.word === "as" ? (JSON.parse(steps.shift()!.rest) as { agent: string; type: string; session?: string }) : undefined;
  const env = { ...process.env, ORC_AGENT_ID: who?.agent, ORC_SESSION_TYPE: who?.type, ORC_SESSION: who?.session };
  const child = spawn(process.execPath, [program], { env, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((over) => child.on("close", (code, signal) => over(signal ?? code)));
  try {
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const names: Names = new Map();
    for (const step of steps) await take(step, child, lines, names);
    if (!steps.at(-1)!.rest.includes("notify:shutdown") && steps.at(-1)!.word === "<") child.stdin!.end();
    assert.equal((await lines.next()).value, undefined, "it says nothing more");
    assert.equal(await ended, 0, "it ends well");
  } finally {
    child.kill();
  }
}

async function take({ word, rest, place }: Step, child: ChildProcess, lines: AsyncIterator<string>, names: Names): Promise<void> {
  if (word === "<") return void child.stdin!.write(resolve(rest, names) + "\n");
  const { value, done } = await lines.next();
  assert(!done, `${place}: it has ended before ${word} ${rest}`);
  if (word === "log") return assert.equal(value, rest);
  const how = { whole: true, names, bind: true, uuids: new Set<string>() };
  assert.equal(difference(Raw.part(resolve(rest, names)), new Raw(value), how), undefined, place);
}
