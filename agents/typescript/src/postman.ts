import { createHash } from "node:crypto";
import type { Conn } from "./conn.js";
import { Fatal, gaveUp, spoken, Torn, words } from "./errors.js";
import type { Heard } from "./json.js";
import { Actor, type Beat, type Mail, type SendMessage, Topic } from "./mail.js";
import { Bell, sleep } from "./waiting.js";

/**
 * Mail that the agent was told of and has not dealt with. It is the connection's, because
 * the orchestrator tells a run of each message once: what one call of work leaves, the next
 * one finds.
 */
export class Mailbox {
  readonly #bell = new Bell();
  readonly #mail: Heard<Mail>[] = []; // in order of the numbers
  #dealt = 0; // the number of the last that was

  /** Puts a message into the mailbox, in order of the numbers, which begin with 1. One that comes twice is there once. */
  post(mail: Heard<Mail>): void {
    if (typeof mail.seq !== "number" || mail.seq <= this.#dealt) return;
    let at = this.#mail.length;
    while (at > 0 && this.#mail[at - 1]!.seq > mail.seq) at--;
    if (this.#mail[at - 1]?.seq === mail.seq) return;
    this.#mail.splice(at, 0, mail);
    this.#bell.ring();
  }

  /** Waits for the oldest message, which stays until it is dealt with; undefined when the signal is aborted first. */
  async oldest(signal: AbortSignal): Promise<Heard<Mail> | undefined> {
    while (!signal.aborted) {
      if (this.#mail[0] !== undefined) return this.#mail[0];
      await this.#bell.after(this.#bell.rung, signal).catch(() => {}); // aborted, which the loop sees
    }
    return undefined;
  }

  /** Takes a message out, and all that is older: acknowledged is what is older in any case. */
  dealtWith(seq: number): void {
    this.#dealt = seq;
    while (this.#mail[0] !== undefined && this.#mail[0].seq <= seq) this.#mail.shift();
  }
}

/** Deals with the agent's mail, message after message, and says that the agent is there. */
export class Postman {
  readonly #conn: Conn;
  readonly #read: (mail: Heard<Mail>, signal: AbortSignal) => Promise<void>;
  readonly #troubled: (error: unknown) => Promise<void>;

  constructor(conn: Conn, read: (mail: Heard<Mail>, signal: AbortSignal) => Promise<void>, troubled: (error: unknown) => Promise<void>) {
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
   * Acknowledges a message, when GO has been told if it failed. One of which GO cannot be told
   * is not acknowledged, and the log says so; that is all that can be done, because the next
   * one is acknowledged with all before it.
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
    const seq = mail.raw.at("seq"); // as it was written: it may have more digits than a number
    await this.#settle("ack-messages", { seq }, (why) => `${place} is dealt with: ${why}`);
  }

  async #settle(operation: string, payload: object, trouble: (why: string) => string): Promise<void> {
    try {
      await this.#conn.settle(operation, payload);
    } catch (error) {
      throw error instanceof Torn ? error : new Error(trouble(spoken(error)), { cause: error });
    }
  }

  /** Sends a heartbeat now and then one each time it is due. One that is refused says nothing about the next. */
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

/** How much of an error is told, in bytes. */
const longest = 8 << 10;

function codeOf(why: unknown): string {
  return why instanceof Fatal ? why.code : "FAILED";
}

/**
 * How the one who runs it all is told that a message has failed; undefined for what would be
 * the next to fail, for ever: a task.failed, and what the bus has to say.
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

/** The same key each time, so that a message which fails again, because it was not acknowledged, is told of once (RFC 9562, version 5). */
function key(name: string): string {
  const urls = Buffer.from("6ba7b8119dad11d180b400c04fd430c8", "hex"); // the namespace of URLs
  const sum = createHash("sha1").update(urls).update(name).digest();
  sum[6] = (sum[6]! & 0x0f) | 0x50;
  sum[8] = (sum[8]! & 0x3f) | 0x80;
  return sum.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
