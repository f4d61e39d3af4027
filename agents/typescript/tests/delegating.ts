import { type Conn, Fault, type Heard, type Skills, type TaskResponse } from "../src/index.js";
import { Called, type Calls } from "./program.js";

// What a program does for others, and what it is told of what others do for it.

/** Serves with a function for each of the skills, which does what the dialogue says. */
export function serve(conn: Conn, calls: Calls, { skills, agent, capacity }: { skills: string[]; agent?: string; capacity?: number }): Promise<void> {
  const all: Skills = {};
  for (const type of skills) {
    all[type] = (job) => {
      const { ask, artifact, delegate } = job;
      return calls.call(new Called("job", job.id, job.request, job.signal, { ask, artifact, delegate, progress: (how) => job.progress(how.message) }));
    };
  }
  return conn.serve(all, { agent, capacity });
}

/** A response with what others have written as its text. */
export function exactly(response: Heard<TaskResponse>): object {
  return {
    ...response,
    metadata: response.raw.at("metadata"),
    artifacts: response.raw.at("artifacts") ?? [],
    ...("result" in response && { result: response.raw.at("result") }),
    ...("error" in response && { error: faulty(response.error) }),
  };
}

/** Why work came to nothing, with its details as their text. */
export function faulty(why: unknown): object {
  const { code, message, details, recoverable } = (why ?? {}) as Partial<Fault>;
  return { code, message, details: details?.["raw"], recoverable };
}
