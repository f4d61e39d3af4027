import type { Heard } from "../wire/json.js";
import type { Mail } from "../wire/documents.js";
import { Bell } from "./waiting.js";

/** An unsolicited message from the orchestrator. */
export type Notice = {
  [N in keyof NoticePayloads]: NoticeOf<N, Heard<NoticePayloads[N]>>;
}[keyof NoticePayloads];

interface NoticeOf<N, P> {
  /** Without its prefix. There may be other names. */
  name: N;
  /** "" if missing. */
  id: string;
  timestamp: string;
  /** An empty object if missing. */
  payload: P;
}

interface NoticePayloads {
  "task-assigned": TaskNotice;
  "task-cancelled": TaskNotice;
  /** Something is new about a task that the agent has. */
  "task-updated": TaskNotice;
  /** There is mail for the agent. */
  message: Mail;
  /** A person interrupts what the agent does. It need not have a task. */
  interrupt: Partial<TaskNotice>;
  shutdown: ShutdownNotice;
}

/** The payload of a notice about a task. */
export interface TaskNotice {
  taskId: string;
  message?: string;
  reason?: string;
}

/** The payload of the shutdown notice. */
export interface ShutdownNotice {
  /** Milliseconds. */
  gracePeriod: number;
  reason: string;
}

/**
 * Mail that has arrived and is not handled yet. It belongs to the connection, because each message
 * is announced once per run. The next call of work continues where the last one stopped.
 */
export class Mailbox {
  readonly #bell = new Bell();
  readonly #mail: Heard<Mail>[] = []; // ordered by number
  #dealt = 0; // the highest number handled

  /** Inserts mail in the order of the numbers, which start at 1. Duplicates are ignored. */
  post(mail: Heard<Mail>): void {
    if (typeof mail.seq !== "number" || mail.seq <= this.#dealt) return;
    let at = this.#mail.length;
    while (at > 0 && this.#mail[at - 1]!.seq > mail.seq) at--;
    if (this.#mail[at - 1]?.seq === mail.seq) return;
    this.#mail.splice(at, 0, mail);
    this.#bell.ring();
  }

  /**
   * Waits for the oldest message and leaves it in the mailbox. Returns undefined if the signal is
   * aborted first.
   */
  async oldest(signal: AbortSignal): Promise<Heard<Mail> | undefined> {
    while (!signal.aborted) {
      if (this.#mail[0] !== undefined) return this.#mail[0];
      await this.#bell.after(this.#bell.rung, signal).catch(() => {}); // aborted, which the loop sees
    }
    return undefined;
  }

  /** Removes a message and all older ones, which its acknowledgment covers. */
  dealtWith(seq: number): void {
    this.#dealt = seq;
    while (this.#mail[0] !== undefined && this.#mail[0].seq <= seq) this.#mail.shift();
  }
}
