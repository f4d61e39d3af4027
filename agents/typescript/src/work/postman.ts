import { createHash } from "node:crypto";
import type { Stream } from "../connection/stream.js";
import { sleep } from "../connection/waiting.js";
import { Fatal, gaveUp, spoken, Torn, words } from "../wire/errors.js";
import type { Heard } from "../wire/json.js";
import type { Beat, Mail, SendMessage } from "../wire/documents.js";

/** The topics that are always registered. */
export const Topic = {
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
  Unknown: "topic.unknown",
} as const;

/**
 * Actors that always exist. GO runs the system, Bus is the orchestrator itself, and Governor is
 * reserved for supervising programs.
 */
export const Actor = { Global: "GO", Bus: "Bus", Governor: "Governor" } as const;

/** The recipient of mail to all actors. */
export const broadcast = "broadcast";

/** Passes the agent's mail to the worker, one message at a time, and sends heartbeats. */
export class Postman {
  readonly #conn: Stream;
  readonly #read: (mail: Heard<Mail>, signal: AbortSignal) => Promise<void>;
  readonly #troubled: (error: unknown) => Promise<void>;

  constructor(conn: Stream, read: (mail: Heard<Mail>, signal: AbortSignal) => Promise<void>, troubled: (error: unknown) => Promise<void>) {
    this.#conn = conn;
    this.#read = read;
    this.#troubled = troubled;
  }

  async deal(signal: AbortSignal): Promise<void> {
    for (let mail = await this.#conn.mailbox.oldest(signal); mail; mail = await this.#conn.mailbox.oldest(signal)) {
      let failed: { why: unknown } | undefined;
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
  async #close(mail: Heard<Mail>, failed?: { why: unknown }): Promise<void> {
    const place = `message ${mail.seq} on ${mail.topic}`;
    if (failed) {
      const letter = letterOf(mail, failed.why);
      if (letter === undefined) await this.#troubled(new Error(`${place} is given up: ${spoken(failed.why)} (${codeOf(failed.why)})`));
      else {
        await this.#settle("send-message", letter, (why) => `${place} failed: ${spoken(failed.why)}; and ${Actor.Global} cannot be told: ${why}`);
      }
    }
    const seq = mail.raw.at("seq"); // the exact text: it may have more digits than a number
    await this.#settle("ack-messages", { seq }, (why) => `${place} is dealt with: ${why}`);
  }

  async #settle(operation: string, payload: object, trouble: (why: string) => string): Promise<void> {
    try {
      await this.#conn.settle(operation, payload);
    } catch (error) {
      throw error instanceof Torn ? error : new Error(trouble(spoken(error)), { cause: error });
    }
  }

  /** Sends a heartbeat at once and then at each interval. A refused heartbeat does not stop it. */
  async beat(signal: AbortSignal, given?: number): Promise<void> {
    let every = given ?? 60_000;
    while (!signal.aborted) {
      try {
        const beat = await this.#conn.askPatiently<Beat>("heartbeat", undefined, signal);
        if (given === undefined && beat.heartbeat_ms > 0) every = beat.heartbeat_ms;
      } catch (error) {
        if (gaveUp(signal, error)) return;
        await this.#troubled(error);
      }
      await sleep(Math.min(every, 0x7fffffff), signal).catch(() => {}); // aborted, which the loop sees
    }
  }
}

/** Bounds the error text in a report to GO, in bytes. */
const longest = 8 << 10;

function codeOf(why: unknown): string {
  return why instanceof Fatal ? why.code : "FAILED";
}

/**
 * Returns the report to GO about a failed message. Returns undefined for a task.failed and for mail
 * of the bus: reporting their failures could go on for ever.
 */
function letterOf(mail: Mail, why: unknown): SendMessage | undefined {
  if (mail.topic === Topic.TaskFailed || mail.from_actor === Actor.Bus) return undefined;
  const error = Buffer.from(words(why)).subarray(0, longest).toString();
  return {
    to_actor: Actor.Global,
    topic: Topic.TaskFailed,
    payload: { error_code: codeOf(why), error, topic: mail.topic },
    reply_to: mail.seq,
    idempotency_key: key(`failed at ${mail.seq} of ${mail.created_at}`),
  };
}

/**
 * Returns a UUID of version 5 (RFC 9562). It is the same each time, so that a message that fails
 * again is reported once.
 */
function key(name: string): string {
  const urls = Buffer.from("6ba7b8119dad11d180b400c04fd430c8", "hex"); // the namespace of URLs
  const sum = createHash("sha1").update(urls).update(name).digest();
  sum[6] = (sum[6]! & 0x0f) | 0x50;
  sum[8] = (sum[8]! & 0x3f) | 0x80;
  return sum.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
