import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { type Conn, connect } from "@orchestrator/agent";

/** A connection, and the orchestrator's side of it. */
export interface Pipe {
  conn: Conn;
  said: AsyncIterator<any>;
  say(message: object | string): void;
  end(): void;
  tear(): void;
}

export function pipe(): Pipe {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const said = (async function* () {
    let rest = "";
    for await (const chunk of output) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      for (const line of lines) yield JSON.parse(line);
    }
  })();
  const say = (message: object | string) => input.write((typeof message === "string" ? message : JSON.stringify(message)) + "\n");
  return { conn: connect(input, output), said, say: (message) => void say(message), end: () => void input.end(), tear: () => void output.destroy(new Error("nobody reads")) };
}

/** The next line that the agent prints. */
export async function next(said: AsyncIterator<any>): Promise<any> {
  return (await said.next()).value;
}

/** The next line that the agent prints, which is what is expected of it and maybe more. */
export async function prints(said: AsyncIterator<any>, want: object): Promise<any> {
  const got = await next(said);
  const part = Object.fromEntries(Object.keys(want).map((key) => [key, got[key]]));
  assert.deepEqual(part, want, JSON.stringify(got));
  return got;
}

/** Lets the agent hear what it was told. */
export async function heard(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
}
