import type { Conn } from "./conn.js";
import { Closed, Shutdown, spoken, Torn, Unfinished } from "./errors.js";
import type { Linked } from "./waiting.js";

// What the loops have in common that call functions of the program.

/** Tells what went wrong. It concerns one thing, and the others go on, unless nothing can be said any more. */
export async function troubled(conn: Conn, error: unknown, stop: Linked): Promise<void> {
  let torn: unknown = error;
  if (!(error instanceof Torn)) torn = await conn.log("warn", spoken(error)).catch((e: unknown) => e);
  if (torn instanceof Torn) stop.abort(torn);
}

/** Ends a loop for a reason, which it throws but for that the agent has to go and nothing was left unfinished. */
export function parting(reason: unknown, unfinished: number): void {
  if (!(reason instanceof Shutdown) && !(reason instanceof Closed && reason.cause === undefined)) throw reason;
  if (unfinished > 0) throw new Unfinished(unfinished, reason);
}
