import { randomUUID } from "node:crypto";
import { Architect, type Lead } from "./architect.js";
import type { Conn } from "./conn.js";
import { type Assigned, type Developer, Developing } from "./developer.js";
import { about, document, line, timestamp } from "./envelope.js";
import { Unsaid } from "./errors.js";
import { abort, assignment, completion, feedback, progress, reviewRequest, reviewResult } from "./fill.js";
import { type AgentType, agentTypes, type MessageType } from "./protocol.js";
import { Judging, type Reviewer } from "./reviewer.js";
import { type AgentIdentifier, misdirected, readSaid, type Said } from "./said.js";
import { Sent } from "./sent.js";
import type { Abort, Assignment, Completion, Feedback, Loose, Progress, ReviewRequest, ReviewResult, StatusQuery } from "./sessions.js";
import type { Options } from "./waiting.js";

/** Who an agent is in a session. */
export interface Identity {
  /** Its name; $ORC_AGENT_ID when it is missing. */
  agent?: string;
  /** $ORC_SESSION_TYPE when it is missing. */
  type?: AgentType;
  /** Which session; $ORC_SESSION when it is missing. Needed by those alone who are in several. */
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
 * An agent's place in a session. Its verbs say one message each, and are over when it
 * is written: what may become of it later is in the Sent. What makes no sense is
 * refused at once, as Unsaid. What is refused because there is too much just now is said
 * again, for a few minutes at most, and what would overtake it waits until then.
 */
export class Session {
  readonly conn: Conn;
  readonly identity: Readonly<{ agent: string; type: AgentType; session: string }>;
  readonly #chain: string | undefined;
  readonly #numbers: { last: number }; // the highest sequence number that was said or heard

  /** @internal Use Conn.openSession. */
  constructor(conn: Conn, identity: Session["identity"], chain?: string, numbers = { last: 0 }) {
    this.conn = conn;
    this.identity = identity;
    this.#chain = chain;
    this.#numbers = numbers;
  }

  /** The same session for messages that belong together with others: those that answer nothing get this correlation_id. */
  chain(correlationId: string): Session {
    return new Session(this.conn, this.identity, correlationId, this.#numbers);
  }

  /** @internal */
  get correlationId(): string | undefined {
    return this.#chain;
  }

  /** Gives a task to a developer. It begins a chain of messages, unless the session is one of a chain. */
  assign(developer: string, work: Loose<Assignment>): Promise<Sent> {
    const m = this.#to({ agent_id: developer, agent_type: "developer" }, "task_assignment");
    return this.#say({ ...m, correlationId: m.correlationId ?? randomUUID() }, assignment(work));
  }

  /** Says that an assignment has arrived. */
  acknowledge(said: Said): Promise<Sent> {
    return this.#say(this.#answering(said, "acknowledgment"), {});
  }

  /** Tells the agent that assigned a task how far it is. */
  report(said: Said, how: Loose<Progress>): Promise<Sent> {
    return this.#say(this.#answering(said, "task_progress"), progress({ ...how, task_id: how.task_id || taskOf(said) }));
  }

  /** Tells the agent that assigned a task what came of it. It is completed, when the status does not say otherwise. */
  complete(said: Said, what: Loose<Completion>): Promise<Sent> {
    return this.#say(this.#answering(said, "task_completion"), completion({ ...what, task_id: what.task_id || taskOf(said) }));
  }

  /** Asks a reviewer to look at a task. */
  requestReview(reviewer: string, what: Loose<ReviewRequest>): Promise<Sent> {
    const m = this.#to({ agent_id: reviewer, agent_type: "reviewer" }, "review_request");
    return this.#say(m, reviewRequest({ ...what, review_id: what.review_id || randomUUID() }));
  }

  /** Tells the agent that asked for a review what came of it. */
  judge(request: Said, result: Loose<ReviewResult>): Promise<Sent> {
    const asked = request.message_type === "review_request" ? request.payload : undefined;
    const ids = { review_id: result.review_id || asked?.review_id, task_id: result.task_id || asked?.task_id };
    return this.#say(this.#answering(request, "review_result"), reviewResult({ ...result, ...ids }));
  }

  /** Says something to any other agent. */
  giveFeedback(to: AgentIdentifier, what: Loose<Feedback>): Promise<Sent> {
    return this.#say(this.#to(to, "feedback"), feedback(what));
  }

  /** Says it to the sender of a message. */
  answer(said: Said, what: Loose<Feedback>): Promise<Sent> {
    return this.#say(this.#answering(said, "feedback"), feedback(what));
  }

  /** Asks another agent how things are. */
  askStatus(to: AgentIdentifier, about: StatusQuery = {}): Promise<Sent> {
    return this.#say(this.#to(to, "status_query"), about);
  }

  /** Answers that, with any object. The roles do it by themselves, with a Status. */
  tellStatus(query: Said, status: object): Promise<Sent> {
    return this.#say(this.#answering(query, "status_response"), status);
  }

  /** Tells an agent that a task or the session has ended. The session is the agent's own when there is no target. */
  abort(to: AgentIdentifier, what: Loose<Abort>): Promise<Sent> {
    const own = what.scope === "session" ? this.identity.session : "";
    return this.#say(this.#to(to, "abort"), abort({ ...what, target_id: what.target_id || own }));
  }

  /**
   * Gives out the work of the session: calls a function, and returns what it returns. As
   * long as it runs, the Architect hears what becomes of the tasks.
   */
  async lead<T>(lead: Lead<T> | Lead<T>["do"], options: Options = {}): Promise<T> {
    this.#opened("architect");
    return Architect.lead(this, typeof lead === "function" ? { do: lead } : lead, options.signal);
  }

  /**
   * Does tasks as they are assigned, until the agent is to shut down, the stream ends or
   * the signal is aborted; then it waits for what is being done. It acknowledges each,
   * tells how far it is while it takes long, and says what came of it, whatever that is.
   *
   * An assignment that comes twice is done once. A new one of the same task takes the
   * place of the old one, of which nothing more is said; nor is anything of one that was
   * aborted. What was given up because the agent has to go is not told: then it throws
   * Unfinished, as Conn.work does.
   */
  async develop(developer: Developer | ((task: Assigned) => Promise<Loose<Completion> | void>), options: Options = {}): Promise<void> {
    this.#opened("developer");
    await new Developing(this, typeof developer === "function" ? { do: developer } : developer).work(options.signal);
  }

  /**
   * Judges what it is asked to, until the agent has to go, as develop does. A request that
   * comes twice is answered once; one of a task that was aborted is not.
   *
   * A review that cannot be made has no result, for none would be true: the architect gets
   * feedback instead, an answer to the request that wants something done.
   */
  async review(reviewer: Reviewer | Reviewer["do"], options: Options = {}): Promise<void> {
    this.#opened("reviewer");
    await new Judging(this, typeof reviewer === "function" ? { do: reviewer } : reviewer).work(options.signal);
  }

  #opened(role: AgentType): void {
    const { agent, type } = this.identity;
    if (type !== role) throw new TypeError(`${agent} is of the type ${type}, and this is for one of the type ${role}`);
  }

  #to(to: AgentIdentifier, type: MessageType): Speech {
    return { to, type, correlationId: this.#chain, sessionId: this.identity.session || undefined };
  }

  /** Begins a message for the sender of another, in the chain of that. */
  #about(said: Said, type: MessageType): Speech {
    this.saw(said);
    const m = this.#to(said.from_agent, type);
    return { ...m, correlationId: said.correlation_id ?? m.correlationId, sessionId: said.session_id ?? m.sessionId };
  }

  #answering(said: Said, type: MessageType): Speech {
    return { ...this.#about(said, type), replyTo: said.message_id };
  }

  /** @internal Keeps the numbers rising in the whole session, as far as the agent hears it. */
  saw(said: Said): void {
    const number = said.sequence_number ?? 0;
    if (number > this.#numbers.last && number - this.#numbers.last <= farAhead) this.#numbers.last = number;
  }

  async #say(m: Speech, payload: object): Promise<Sent> {
    for (let ahead = this.conn.ahead(m.to.agent_id); ahead; ahead = this.conn.ahead(m.to.agent_id)) await ahead;
    let written: Promise<void>;
    let sent: Sent;
    try {
      const number = this.#numbers.last + 1;
      const id = randomUUID();
      const text = this.#spell(m, id, number, payload);
      this.#numbers.last = number;
      sent = new Sent(m.type, m.to.agent_id, id, m.correlationId ?? "", number);
      written = this.conn.writeSession(sent, text); // at once, so that numbers rise on the line as well
    } catch (error) {
      throw about(m.type, error);
    }
    await written;
    return sent;
  }

  /** Makes a line of a message, and looks at it as the orchestrator will. */
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

/** A number that no sender has counted to: one that follows it soon has none left. */
const farAhead = 1 << 20;

/** The task that an assignment is about. */
function taskOf(said: Said): string {
  return said.message_type === "task_assignment" ? said.payload.task.task_id : "";
}

/** @internal Who an agent is, as far as it says so itself, and as the orchestrator has set it for the agents that it starts. */
export function identify(me: Identity, env = process.env): Session["identity"] {
  const agent = me.agent || env["ORC_AGENT_ID"] || "";
  const type = me.type || env["ORC_SESSION_TYPE"] || "";
  const session = me.session || env["ORC_SESSION"] || "";
  if (agent === "") throw new TypeError("who the agent is in its session is not known: $ORC_AGENT_ID is not set");
  if (!(agentTypes as readonly string[]).includes(type)) {
    throw new TypeError(`who the agent is in its session is not known: "${type}" is none of the types ${agentTypes.join(", ")} ($ORC_SESSION_TYPE)`);
  }
  return { agent, type: type as AgentType, session };
}
