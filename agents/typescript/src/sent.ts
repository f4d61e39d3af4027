import { type Details, Refused } from "./errors.js";
import type { Heard } from "./json.js";
import type { MessageType } from "./protocol.js";

/** What became of a message that was not delivered. */
export interface DeliveryError {
  original_message_id: string;
  error_type: "timeout" | "rejected" | "malformed";
  retry_count: number;
  max_retries: number;
  /** Missing: it is not tried again. */
  next_retry_at?: string;
}

/** A message of a session was not delivered, and why. */
export class Undelivered extends Refused {
  override name = "Undelivered";
  declare readonly details: Heard<Details & Partial<DeliveryError>> | undefined;

  override get spoken(): string {
    const tries = Number(this.details?.retry_count ?? 0);
    return `not delivered${tries > 0 ? ` after ${tries + 1} attempts` : ""}: ${super.spoken}`;
  }

  /** @internal Says whether it is tried again. */
  get again(): boolean {
    return this.details?.next_retry_at !== undefined && this.details.next_retry_at !== "";
  }

  /** What may be changed for a task; undefined when that is not why the message was refused. */
  get scope(): string[] | undefined {
    const scope = this.details?.["scope"];
    return Array.isArray(scope) ? scope.map(String) : undefined;
  }
}

/**
 * A message of a session that the agent has said. That it was delivered is told by
 * nothing; that it was not, sooner or later.
 */
export class Sent {
  readonly messageId: string;
  readonly correlationId: string;
  readonly sequenceNumber: number;
  /** Is fulfilled when the message will not be delivered, and says why. As long as it is tried again, or said again, it waits. */
  readonly refused: Promise<Undelivered>;
  /** @internal */
  readonly type: MessageType;
  /** @internal The addressee. */
  readonly to: string;
  #tell!: (why: Undelivered) => void;
  #why: Undelivered | undefined;

  /** @internal */
  constructor(type: MessageType, to: string, messageId: string, correlationId: string, sequenceNumber: number) {
    this.type = type;
    this.to = to;
    this.messageId = messageId;
    this.correlationId = correlationId;
    this.sequenceNumber = sequenceNumber;
    this.refused = new Promise((resolve) => (this.#tell = resolve));
  }

  /** Why the message will not be delivered; undefined as long as that was not said. */
  get error(): Undelivered | undefined {
    return this.#why;
  }

  /** @internal */
  refuse(why: Undelivered): void {
    this.#why = why;
    this.#tell(why);
  }
}
