import { randomUUID } from "node:crypto";
import { Sent } from "../connection/sent.js";
import type { Stream } from "../connection/stream.js";
import { about, document, line, timestamp } from "../wire/envelope.js";
import { Unsaid } from "../wire/errors.js";
import { abort, assignment, completion, feedback, progress, reviewRequest, reviewResult } from "../wire/fill.js";
import { type AgentIdentifier, misdirected, readSaid, type Said } from "../wire/said.js";
import {
  type Abort, type AgentType, agentTypes, type Assignment, type Completion, type Feedback, type Loose, type MessageType,
  type Progress, type ReviewRequest, type ReviewResult, type StatusQuery,
} from "../wire/sessions.js";

/** An agent's identity in a session. */
export interface Identity {
  /** Its name; the default is $ORC_AGENT_ID. */
  agent?: string;
  /** The default is $ORC_SESSION_TYPE. */
  type?: AgentType;
  /** The default is $ORC_SESSION. Required only if the agent is in several sessions. */
  session?: string;
}

interface Speech {
  to: AgentIdentifier;
  type: MessageType;
  correlationId: string | undefined;
  sessionId: string | undefined;
  replyTo?: string;
}

/**
 * An agent's membership in a session. Its methods send one message each and return when it is
 * written; the Sent reports a later refusal. Invalid messages are rejected at once, as Unsaid.
 *
 * A message refused for a rate limit or a full queue is sent again, for a few minutes at most.
 * Messages that would overtake it wait.
 */
export class Member {
  readonly conn: Stream;
  readonly identity: Readonly<{ agent: string; type: AgentType; session: string }>;
  readonly #chain: string | undefined;
  /** @internal The highest sequence number sent or received. */
  protected readonly numbers: { last: number };

  /** @internal */
  constructor(conn: Stream, identity: Member["identity"], chain?: string, numbers = { last: 0 }) {
    this.conn = conn;
    this.identity = identity;
    this.#chain = chain;
    this.numbers = numbers;
  }

  /**
   * Returns the same session with a correlation_id for its messages. Answers keep the
   * correlation_id of the message that they answer.
   */
  chain(correlationId: string): Member {
    return new Member(this.conn, this.identity, correlationId, this.numbers);
  }

  /** @internal */
  get correlationId(): string | undefined {
    return this.#chain;
  }

  /**
   * Assigns a task to a developer. Starts a new correlation_id, unless the session comes from
   * chain.
   */
  assign(developer: string, work: Loose<Assignment>): Promise<Sent> {
    const m = this.#to({ agent_id: developer, agent_type: "developer" }, "task_assignment");
    return this.#say({ ...m, correlationId: m.correlationId ?? randomUUID() }, assignment(work));
  }

  /** Acknowledges an assignment. */
  acknowledge(said: Said): Promise<Sent> {
    return this.#say(this.#answering(said, "acknowledgment"), {});
  }

  /** Reports progress to the agent that assigned a task. */
  report(said: Said, how: Loose<Progress>): Promise<Sent> {
    return this.#say(this.#answering(said, "task_progress"), progress({ ...how, task_id: how.task_id || taskOf(said) }));
  }

  /**
   * Reports the outcome of a task to the agent that assigned it. The default status is completed.
   */
  complete(said: Said, what: Loose<Completion>): Promise<Sent> {
    return this.#say(this.#answering(said, "task_completion"), completion({ ...what, task_id: what.task_id || taskOf(said) }));
  }

  /** Asks a reviewer to review a task. */
  requestReview(reviewer: string, what: Loose<ReviewRequest>): Promise<Sent> {
    const m = this.#to({ agent_id: reviewer, agent_type: "reviewer" }, "review_request");
    return this.#say(m, reviewRequest({ ...what, review_id: what.review_id || randomUUID() }));
  }

  /** Sends the result of a review to the agent that asked for it. */
  judge(request: Said, result: Loose<ReviewResult>): Promise<Sent> {
    const asked = request.message_type === "review_request" ? request.payload : undefined;
    const ids = { review_id: result.review_id || asked?.review_id, task_id: result.task_id || asked?.task_id };
    return this.#say(this.#answering(request, "review_result"), reviewResult({ ...result, ...ids }));
  }

  /** Sends feedback to an agent. */
  giveFeedback(to: AgentIdentifier, what: Loose<Feedback>): Promise<Sent> {
    return this.#say(this.#to(to, "feedback"), feedback(what));
  }

  /** Sends feedback to the sender of a message. */
  answer(said: Said, what: Loose<Feedback>): Promise<Sent> {
    return this.#say(this.#answering(said, "feedback"), feedback(what));
  }

  /** Asks another agent for its status. */
  askStatus(to: AgentIdentifier, about: StatusQuery = {}): Promise<Sent> {
    return this.#say(this.#to(to, "status_query"), about);
  }

  /** Answers a status query with any object. The roles answer by themselves, with a Status. */
  tellStatus(query: Said, status: object): Promise<Sent> {
    return this.#say(this.#answering(query, "status_response"), status);
  }

  /**
   * Tells an agent that a task or the session is aborted. The default session is the agent's own.
   */
  abort(to: AgentIdentifier, what: Loose<Abort>): Promise<Sent> {
    const own = what.scope === "session" ? this.identity.session : "";
    return this.#say(this.#to(to, "abort"), abort({ ...what, target_id: what.target_id || own }));
  }

  #to(to: AgentIdentifier, type: MessageType): Speech {
    return { to, type, correlationId: this.#chain, sessionId: this.identity.session || undefined };
  }

  /** Returns a message to the sender of another, with the same correlation_id. */
  #about(said: Said, type: MessageType): Speech {
    this.saw(said);
    const m = this.#to(said.from_agent, type);
    return { ...m, correlationId: said.correlation_id ?? m.correlationId, sessionId: said.session_id ?? m.sessionId };
  }

  #answering(said: Said, type: MessageType): Speech {
    return { ...this.#about(said, type), replyTo: said.message_id };
  }

  /**
   * @internal Raises the sequence number to that of a received message, so that numbers rise in the
   * whole session.
   */
  saw(said: Said): void {
    const number = said.sequence_number ?? 0;
    if (number > this.numbers.last && number - this.numbers.last <= farAhead) this.numbers.last = number;
  }

  async #say(m: Speech, payload: object): Promise<Sent> {
    for (let ahead = this.conn.ahead(m.to.agent_id); ahead; ahead = this.conn.ahead(m.to.agent_id)) await ahead;
    let written: Promise<void>;
    let sent: Sent;
    try {
      const number = this.numbers.last + 1;
      const id = randomUUID();
      const text = this.#spell(m, id, number, payload);
      this.numbers.last = number;
      sent = new Sent(m.type, m.to.agent_id, id, m.correlationId ?? "", number);
      written = this.conn.writeSession(sent, text); // at once, so that numbers rise on the stream as well
    } catch (error) {
      throw about(m.type, error);
    }
    await written;
    return sent;
  }

  /** Encodes a message as a line and validates it as the orchestrator will. */
  #spell(m: Speech, id: string, number: number, payload: object): string {
    const text = line({
      message_id: id,
      timestamp: timestamp(),
      sequence_number: number,
      from_agent: { agent_id: this.identity.agent, agent_type: this.identity.type },
      to_agent: m.to,
      message_type: m.type,
      payload: document(payload),
      correlation_id: m.correlationId,
      reply_to: m.replyTo,
      session_id: m.sessionId,
    });
    const said = readSaid(text);
    const wrong = said instanceof Error ? said.message : misdirected(said);
    if (wrong !== undefined) throw new Unsaid(`it cannot be said: ${wrong}`);
    return text;
  }
}

/** Bounds the jump of a sequence number. Following a larger one could use up the numbers. */
const farAhead = 1 << 20;

/** Returns the id of the assigned task. */
function taskOf(said: Said): string {
  return said.message_type === "task_assignment" ? said.payload.task.task_id : "";
}

/**
 * @internal Returns the agent's identity. Missing members default to the variables that the
 * orchestrator sets for the agents that it starts.
 */
export function identify(me: Identity, env = process.env): Member["identity"] {
  const agent = me.agent || env["ORC_AGENT_ID"] || "";
  const type = me.type || env["ORC_SESSION_TYPE"] || "";
  const session = me.session || env["ORC_SESSION"] || "";
  if (agent === "") throw new TypeError("who the agent is in its session is not known: $ORC_AGENT_ID is not set");
  if (!(agentTypes as readonly string[]).includes(type)) {
    throw new TypeError(`who the agent is in its session is not known: "${type}" is none of the types ${agentTypes.join(", ")} ($ORC_SESSION_TYPE)`);
  }
  return { agent, type: type as AgentType, session };
}
