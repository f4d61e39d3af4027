import { type Details, Refused } from "../wire/errors.js";
import type { Heard } from "../wire/json.js";
import type { MessageType } from "../wire/sessions.js";

/** The details of a message that was not delivered. */
export interface DeliveryError {
  original_message_id: string;
  error_type: "timeout" | "rejected" | "malformed";
  retry_count: number;
  max_retries: number;
  /** Missing if it will not be retried. */
  next_retry_at?: string;
}

/** A session message was not delivered. */
export class Undelivered extends Refused {
  override name = "Undelivered";
  declare readonly details: Heard<Details & Partial<DeliveryError>> | undefined;

  override get spoken(): string {
    const tries = Number(this.details?.retry_count ?? 0);
    return `not delivered${tries > 0 ? ` after ${tries + 1} attempts` : ""}: ${super.spoken}`;
  }

  /** @internal Whether the delivery is retried. */
  get again(): boolean {
    return this.details?.next_retry_at !== undefined && this.details.next_retry_at !== "";
  }

  /**
   * The patterns of the files that a task may change; undefined if the message was refused for
   * another reason.
   */
  get scope(): string[] | undefined {
    const scope = this.details?.["scope"];
    return Array.isArray(scope) ? scope.map(String) : undefined;
  }
}

/**
 * A session message that the agent has sent. Delivery is never confirmed; a failure is reported
 * sooner or later.
 */
export class Sent {
  readonly messageId: string;
  readonly correlationId: string;
  readonly sequenceNumber: number;
  /**
   * Resolves to the reason when the message will not be delivered. It stays pending while delivery
   * is retried.
   */
  readonly refused: Promise<Undelivered>;
  /** @internal */
  readonly type: MessageType;
  /** @internal The name of the recipient. */
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

  /** Why the message will not be delivered, or undefined while that is not known. */
  get error(): Undelivered | undefined {
    return this.#why;
  }

  /** @internal */
  refuse(why: Undelivered): void {
    this.#why = why;
    this.#tell(why);
  }
}
