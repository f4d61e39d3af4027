import type { Readable, Writable } from "node:stream";
import { listOf, partOf, taskOf } from "./answers.js";
import type { Delegation } from "./delegation.js";
import type { Job } from "./job.js";
import type { Heard, Raw } from "./json.js";
import type { Acked, Beat, MailList, PollMessages, SendMessage, SentMail } from "./mail.js";
import type { Notice } from "./notices.js";
import { Mailbox } from "./postman.js";
import type { Said } from "./said.js";
import type { Agent, QueryAgents, Server, UpdateCapabilities } from "./servers.js";
import { type ServeOptions, Serving, type Skills } from "./serving.js";
import { identify, type Identity, Session } from "./session.js";
import { Stream } from "./stream.js";
import {
  type AddNote, type AskUser, type AssignTask, type AutoAssigned, type Dependency, type Link, type Match, type Note,
  type QueryTasks, type SubmitTask, submission, type Task, type UpdateTask, type UserAnswer,
} from "./tasks.js";
import type { DelegateTask } from "./taskrequest.js";
import type { Options } from "./waiting.js";
import { Work, type Worker } from "./work.js";

/**
 * Connects an agent with the orchestrator that has started it, or with another stream. It is
 * called once for a stream: two readers would share the lines.
 */
export function connect(input: Readable = process.stdin, output: Writable = process.stdout): Conn {
  return new Conn(input, output);
}

/**
 * An agent's connection with its orchestrator. All its methods may be called at the same time.
 *
 * What was heard has its text as its raw, because a number in it may have more digits than
 * JavaScript keeps: task.raw.at("payload", "n")?.text. Where a value is said, a Raw or a
 * bigint may stand in its place.
 */
export class Conn extends Stream {
  /** @internal */
  readonly mailbox = new Mailbox();

  /**
   * The notices, in order, from the first one on: none is lost because it came before a caller
   * looked. It ends when the signal is aborted, or when the stream has ended and all is taken.
   * Each notice goes to one taker, and work is one.
   */
  async *news({ signal }: Options = {}): AsyncGenerator<Notice, void, void> {
    for (let e = await this.next("notices", signal); e; e = await this.next("notices", signal)) yield e.notice!;
  }

  /**
   * What the others of a session say to the agent, in order, from the first message on and each
   * once. It ends as news does. Each message goes to one taker: the roles of a Session take them, too.
   */
  async *talk({ signal }: Options = {}): AsyncGenerator<Said, void, void> {
    for (let e = await this.next("session", signal); e; e = await this.next("session", signal)) {
      if (e.said) yield e.said;
    }
  }

  /**
   * Does tasks as they are assigned to the agent until it is to shut down, the stream ends or
   * the signal is aborted; then it waits for the handlers and returns. How many there are at a
   * time is for the orchestrator to say: no more than the agent's capacity, one by default.
   *
   * A task that is not running yet is started, and one that cannot be started yet waits for
   * news; the others go on meanwhile. What a handler returns completes the task, and what it
   * throws fails it. A task that was cancelled is not reported: what became of it is decided.
   *
   * Neither is one that the handler gave up because the agent has to go, throwing the reason of
   * its signal, or Closed: the orchestrator knows what is to become of the tasks of an agent
   * that is gone. Then work throws Unfinished, and an agent that ends well in spite of it would
   * say that its task is done.
   */
  async work(worker: Worker | ((job: Job) => Promise<unknown>), { signal }: Options = {}): Promise<void> {
    await new Work(this, typeof worker === "function" ? { do: worker } : worker, signal).run();
  }

  /**
   * Does what others delegate to the agent, until the agent is to shut down, the stream ends
   * or the signal is aborted; then it waits for the skills and returns. What the agent has no
   * skill for fails with CAPABILITY_NOT_FOUND.
   *
   * Each job comes to one final response. Until then a skill says what it likes, and nothing
   * is said by itself; a question how the job stands is answered at once, and when it is over
   * gets its final response once more. So does a request for the same again, unless it was
   * cancelled or failed so that another try may go well: then it is done again.
   *
   * A job that is cancelled is over at once, and what its skill returns is dropped. Of one
   * that the skill gave up because the agent has to go, throwing the reason of its signal, or
   * Closed, nothing is said by itself, nor of one that has not begun: the orchestrator knows
   * what is to become of it. Then serve throws Unfinished, as work does. Until the last skill
   * has returned requests are answered, and a job may be cancelled.
   *
   * What is asked before a function serves waits for that, the latest thousand as far as some
   * megabytes go; what is dropped is counted in the log. It takes no notices, so work, news or
   * the roles of a session may go on beside it. There is one serve at a time.
   */
  async serve(skills: Skills, options: ServeOptions = {}): Promise<void> {
    await new Serving(this, skills, options).run();
  }

  /**
   * Asks another agent for work: the target that its routing names, or one that can do what its
   * type says. It returns when the request is written. What becomes of it is in the Delegation:
   * that the request was refused, too.
   */
  delegate(task: DelegateTask, { signal }: Options = {}): Promise<Delegation> {
    return this.delegations.delegate(task, signal);
  }

  /** Opens the agent's place in a session. */
  openSession(me: Identity = {}): Session {
    return new Session(this, identify(me));
  }

  /** Tells how much of a task is done, from 0 to 1. It ends nothing: a task is done when completeTask says so. */
  progress(taskId: string, fraction: number, message?: string): Promise<void> {
    return this.tell("progress", { taskId, progress: fraction, message: message || undefined });
  }

  /** Writes into the agent's log. Context is an object. */
  log(level: "info" | "warn" | "error", message: string, context?: object): Promise<void> {
    return this.tell("log", { level, message, context: context ?? undefined });
  }

  /** Tells of an error at work. One from which there is no recovery fails the task. */
  trouble(taskId: string | undefined, error: unknown, recoverable: boolean): Promise<void> {
    return this.tell("error", { taskId: taskId || undefined, error: error instanceof Error ? error.message : String(error), recoverable });
  }

  /** Shows people a question without waiting for an answer. Context is an object. */
  wonder(question: string, context?: object): Promise<void> {
    return this.tell("question", { question, context: context ?? undefined });
  }

  /** Lists the agents of the team that fit. */
  async queryAgents(query: QueryAgents = {}, options?: Options): Promise<Heard<Heard<Agent>[]>> {
    return listOf(await this.ask("query-agents", query, options), "agents");
  }

  /** Lists the agent's own tasks that fit, oldest first: those that it submitted and those that are assigned to it. */
  queryTasks(query: QueryTasks = {}, options?: Options): Promise<Heard<Heard<Task>[]>> {
    return this.#tasks("query-tasks", query, options);
  }

  /** Submits a task and returns it as it is then. */
  submitTask(task: SubmitTask, options?: Options): Promise<Heard<Task>> {
    return this.#task("submit-task", submission(task), options);
  }

  /** Returns everything about one of the agent's own tasks. */
  getTask(taskId: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("get-task", { taskId }, options);
  }

  /** Asks a person and waits for the answer, which may take as long as the question allows. */
  askUser(question: AskUser, options?: Options): Promise<Heard<UserAnswer>> {
    const allowed = question.options?.map((option) => (typeof option === "string" ? { value: option } : option));
    return this.ask("ask-user", allowed ? { ...question, options: allowed } : question, options);
  }

  /** Starts a task that is assigned to the agent, or takes one of its own that has no agent. */
  startTask(taskId: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("start-task", { taskId }, options);
  }

  /** Says that a task is done. Its result is an object or a text; none says no more than that it went well. */
  completeTask(taskId: string, result?: unknown, options?: Options): Promise<Heard<Task>> {
    return this.#task("complete-task", { taskId, result: result ?? undefined }, options);
  }

  /** Says that a task cannot be done, and why. */
  failTask(taskId: string, error: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("fail-task", { taskId, error }, options);
  }

  /** Cancels a task that the agent submitted. */
  cancelTask(taskId: string, reason?: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("cancel-task", { taskId, reason: reason || undefined }, options);
  }

  /** Changes the words, the documents or the priority of a task, and returns it as it is then. */
  updateTask(change: UpdateTask, options?: Options): Promise<Heard<Task>> {
    return this.#task("update-task", change, options);
  }

  /** Gives a task without an agent to one. */
  assignTask(assignment: AssignTask, options?: Options): Promise<Heard<Task>> {
    return this.#task("assign-task", assignment, options);
  }

  /** Gives a task to the agent that fits its requirements best. That there is none is no error: the status says so. */
  autoAssign(taskId: string, options?: Options): Promise<Heard<AutoAssigned>> {
    return this.ask("auto-assign", { taskId }, options);
  }

  /** Tells how each agent fits the requirements of a task, the best first. */
  async matchAgents(taskId: string, options?: Options): Promise<Heard<Heard<Match>[]>> {
    return listOf(await this.ask("match-agents", { taskId }, options), "servers");
  }

  /** Lists what the agent has been given and has not begun. */
  pollTasks(options?: Options): Promise<Heard<Heard<Task>[]>> {
    return this.#tasks("poll-tasks", {}, options);
  }

  /** Is pollTasks for a session: an agent's name, its server id or the id of its run; the agent itself when there is none. */
  checkTasks(sessionId?: string, options?: Options): Promise<Heard<Heard<Task>[]>> {
    return this.#tasks("check-tasks", { sessionId: sessionId || undefined }, options);
  }

  /** Lets a task depend on another one, which must be done first unless the dependency says otherwise. */
  async addDependency(taskId: string, on: Dependency, options?: Options): Promise<Heard<Link>> {
    const d = typeof on === "string" ? { depends_on_task_id: on } : on;
    const payload = { taskId, dependsOnTaskId: d.depends_on_task_id, dependencyType: d.dependency_type, contractKey: d.contract_key };
    return partOf(await this.ask("add-dependency", payload, options), "dependency");
  }

  /** Takes a dependency away, given its own id or that of the task that is depended on, and returns it as it was. */
  async removeDependency(taskId: string, dependencyId: string, options?: Options): Promise<Heard<Link>> {
    return partOf(await this.ask("remove-dependency", { taskId, dependencyId }, options), "dependency");
  }

  /** Adds a note to a task. */
  async addNote(note: AddNote, options?: Options): Promise<Heard<Note>> {
    return partOf(await this.ask("add-note", { ...note, urgent: note.urgent || undefined }, options), "note");
  }

  /** Returns the notes of a task, oldest first. */
  async listNotes(taskId: string, options?: Options): Promise<Heard<Heard<Note>[]>> {
    return listOf(await this.ask("list-notes", { taskId }, options), "notes");
  }

  /**
   * Says that the agent cannot go on with a task without a person, and does not wait for one: a
   * notice tells of the answer, and Job.help waits for it. What goes with the question may be anything.
   */
  requestHelp(taskId: string, question: string, context?: unknown, options?: Options): Promise<Heard<Task>> {
    return this.#task("request-help", { taskId, question, context: context ?? undefined }, options);
  }

  /** Says how the agent will go about a task. The plan is an object or a text. */
  submitPlan(taskId: string, plan: object | string, options?: Options): Promise<Heard<Task>> {
    return this.#task("submit-plan", { taskId, plan }, options);
  }

  /** Lets another agent go about its task as it planned. */
  approvePlan(taskId: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("approve-plan", { taskId }, options);
  }

  /** Sends a plan of another agent back, with what is wrong with it. */
  revisePlan(taskId: string, feedback: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("revise-plan", { taskId, feedback }, options);
  }

  /** Says what the agent can do now, in place of what was known of it. */
  updateCapabilities(now: UpdateCapabilities, options?: Options): Promise<Heard<Server>> {
    return this.ask("update-capabilities", now, options);
  }

  /** Lists all agents with what they can do, and whether they are online. */
  async servers(options?: Options): Promise<Heard<Heard<Server>[]>> {
    return listOf(await this.ask("query-servers", {}, options), "servers");
  }

  /** Sends mail and returns it as it is kept; who it is from is the agent's own actor. */
  sendMessage(mail: SendMessage, options?: Options): Promise<Heard<SentMail>> {
    return this.ask("send-message", mail, options);
  }

  /**
   * Lists the agent's mail, oldest first: what it has not acknowledged, or all behind a number.
   * It changes nothing, so the same mail is there again until ackMessages.
   */
  async pollMessages(query: PollMessages = {}, options?: Options): Promise<Heard<MailList>> {
    const answer = await this.ask<MailList>("poll-messages", query, options);
    answer.messages = listOf(answer, "messages");
    return answer;
  }

  /** Says that the agent has dealt with all its mail up to a number. */
  ackMessages(seq: number | bigint | Raw, options?: Options): Promise<Heard<Acked>> {
    return this.ask("ack-messages", { seq }, options);
  }

  /** Says that the agent's actor is there. */
  heartbeat(options?: Options): Promise<Heard<Beat>> {
    return this.ask("heartbeat", {}, options);
  }

  async #task(operation: string, payload: object, options?: Options): Promise<Heard<Task>> {
    return taskOf(await this.ask(operation, payload, options));
  }

  async #tasks(operation: string, payload: object, options?: Options): Promise<Heard<Heard<Task>[]>> {
    return listOf(await this.ask(operation, payload, options), "tasks");
  }
}
