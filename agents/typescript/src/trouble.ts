import { Closed, Shutdown, spoken, Torn, Unfinished } from "./errors.js";
import type { Stream } from "./stream.js";
import type { Linked } from "./waiting.js";

// Error handling of the loops that call functions of the agent's author.

/** Logs the error of one task or message. It stops the loop only if writing has failed. */
export async function troubled(conn: Stream, error: unknown, stop: Linked): Promise<void> {
  let torn: unknown = error;
  if (!(error instanceof Torn)) torn = await conn.log("warn", spoken(error)).catch((e: unknown) => e);
  if (torn instanceof Torn) stop.abort(torn);
}

/**
 * Ends a loop. Throws the reason, unless it is a shutdown or the end of the stream; then throws
 * Unfinished if tasks were given up.
 */
export function parting(reason: unknown, unfinished: number): void {
  if (!(reason instanceof Shutdown) && !(reason instanceof Closed && reason.cause === undefined)) throw reason;
  if (unfinished > 0) throw new Unfinished(unfinished, reason);
}
