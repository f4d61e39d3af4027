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
 * Connects an agent to the orchestrator that started it, or to another stream. Call it only once
 * for a stream, because two readers would share the lines.
 */
export function connect(input: Readable = process.stdin, output: Writable = process.stdout): Conn {
  return new Conn(input, output);
}

/**
 * An agent's connection to its orchestrator. Its methods may be called concurrently.
 *
 * Received documents have their text as raw, because a number may have more digits than JavaScript
 * keeps: task.raw.at("payload", "n")?.text. In documents to send, a Raw or a bigint may replace any
 * value.
 */
export class Conn extends Stream {
  /** @internal */
  readonly mailbox = new Mailbox();

  /**
   * Iterates over all notices in order, including those that arrived before the call. An agent that
   * serves, and has never read notices, keeps only the latest few thousand. Ends when the signal is
   * aborted, or when the stream has ended and all notices are taken. Each notice goes to one
   * caller; work and the session roles take them, too.
   */
  async *news({ signal }: Options = {}): AsyncGenerator<Notice, void, void> {
    for (let e = await this.next("notices", signal); e; e = await this.next("notices", signal)) yield e.notice!;
  }

  /**
   * Iterates over the session messages for the agent, in order, from the first one and each once.
   * Ends as news does. Each message goes to one caller; the roles of a Session take them, too.
   */
  async *talk({ signal }: Options = {}): AsyncGenerator<Said, void, void> {
    for (let e = await this.next("session", signal); e; e = await this.next("session", signal)) {
      if (e.said) yield e.said;
    }
  }

  /**
   * Does assigned tasks until the agent is told to shut down, the stream ends or the signal is
   * aborted. Then it waits for the handlers and returns. The orchestrator limits how many tasks run
   * at a time to the agent's capacity, 1 by default.
   *
   * A task that is not running is started. While it waits for other tasks or for a person, other
   * tasks go on. The return value of a handler completes the task, and an exception fails it. A
   * cancelled task is not reported.
   *
   * At a shutdown, a handler may give up by throwing the reason of its signal, or Closed. Its task
   * is not reported either: the orchestrator decides what becomes of it. work then throws
   * Unfinished. The agent must exit with a failure, because a successful exit may complete its
   * task.
   */
  async work(worker: Worker | ((job: Job) => Promise<unknown>), { signal }: Options = {}): Promise<void> {
    await new Work(this, typeof worker === "function" ? { do: worker } : worker, signal).run();
  }

  /**
   * Does the jobs that others delegate to the agent, until the agent is told to shut down, the
   * stream ends or the signal is aborted. Then it waits for the skills and returns. A job without a
   * skill fails with CAPABILITY_NOT_FOUND.
   *
   * Each job gets one final response. Before it, only the skill reports progress. serve answers
   * status queries at once, and those about a finished job with its final response. It answers a
   * repeated request in the same way. If the job was cancelled, or failed with a recoverable fault,
   * a repeated request does it again.
   *
   * A cancelled job is over at once, and the result of its skill is dropped. At a shutdown, a skill
   * may give up by throwing the reason of its signal, or Closed. Such jobs, and jobs that have not
   * begun, are not reported: the orchestrator decides what becomes of them. serve then throws
   * Unfinished, as work does. Until the last skill has returned, serve answers requests and accepts
   * cancellations.
   *
   * Requests that arrive before serve is called are queued, up to a thousand and some megabytes.
   * Dropped ones are counted in the log. serve consumes no notices, so work, news or a session role
   * may run beside it. Only one serve may run at a time.
   */
  async serve(skills: Skills, options: ServeOptions = {}): Promise<void> {
    await new Serving(this, skills, options).run();
  }

  /**
   * Asks another agent for work: the target of its routing, or any agent that offers the type.
   * Returns when the request is written. The Delegation reports what follows, even that the request
   * was refused.
   */
  delegate(task: DelegateTask, { signal }: Options = {}): Promise<Delegation> {
    return this.delegations.delegate(task, signal);
  }

  /** Returns the agent's membership in a session. */
  openSession(me: Identity = {}): Session {
    return new Session(this, identify(me));
  }

  /**
   * Reports how much of a task is done, from 0 to 1. It does not complete the task; completeTask
   * does.
   */
  progress(taskId: string, fraction: number, message?: string): Promise<void> {
    return this.tell("progress", { taskId, progress: fraction, message: message || undefined });
  }

  /** Writes to the agent's log. The context is an object. */
  log(level: "info" | "warn" | "error", message: string, context?: object): Promise<void> {
    return this.tell("log", { level, message, context: context ?? undefined });
  }

  /** Reports an error. An error that is not recoverable fails the task. */
  trouble(taskId: string | undefined, error: unknown, recoverable: boolean): Promise<void> {
    return this.tell("error", { taskId: taskId || undefined, error: error instanceof Error ? error.message : String(error), recoverable });
  }

  /** Shows people a question without waiting for an answer. The context is an object. */
  wonder(question: string, context?: object): Promise<void> {
    return this.tell("question", { question, context: context ?? undefined });
  }

  /** Lists the agents of the team that match the query. */
  async queryAgents(query: QueryAgents = {}, options?: Options): Promise<Heard<Heard<Agent>[]>> {
    return listOf(await this.ask("query-agents", query, options), "agents");
  }

  /** Lists matching tasks, oldest first, among those that the agent submitted or is assigned to. */
  queryTasks(query: QueryTasks = {}, options?: Options): Promise<Heard<Heard<Task>[]>> {
    return this.#tasks("query-tasks", query, options);
  }

  /** Submits a task and returns it as stored. */
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

  /**
   * Starts a task that is assigned to the agent. It also takes an unassigned task that the agent
   * submitted.
   */
  startTask(taskId: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("start-task", { taskId }, options);
  }

  /**
   * Reports that a task is done. The result is an object or a text, or undefined for success
   * without a result.
   */
  completeTask(taskId: string, result?: unknown, options?: Options): Promise<Heard<Task>> {
    return this.#task("complete-task", { taskId, result: result ?? undefined }, options);
  }

  /** Reports that a task cannot be done, and why. */
  failTask(taskId: string, error: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("fail-task", { taskId, error }, options);
  }

  /** Cancels a task that the agent submitted. */
  cancelTask(taskId: string, reason?: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("cancel-task", { taskId, reason: reason || undefined }, options);
  }

  /** Changes the text, documents or priority of a task, and returns the updated task. */
  updateTask(change: UpdateTask, options?: Options): Promise<Heard<Task>> {
    return this.#task("update-task", change, options);
  }

  /** Assigns an unassigned task to an agent. */
  assignTask(assignment: AssignTask, options?: Options): Promise<Heard<Task>> {
    return this.#task("assign-task", assignment, options);
  }

  /**
   * Assigns a task to the agent that matches its requirements best. If there is none, no error is
   * thrown and the status says so.
   */
  autoAssign(taskId: string, options?: Options): Promise<Heard<AutoAssigned>> {
    return this.ask("auto-assign", { taskId }, options);
  }

  /** Returns how well each agent matches a task, the best first. */
  async matchAgents(taskId: string, options?: Options): Promise<Heard<Heard<Match>[]>> {
    return listOf(await this.ask("match-agents", { taskId }, options), "servers");
  }

  /** Lists the tasks that the agent was assigned and has not begun. */
  pollTasks(options?: Options): Promise<Heard<Heard<Task>[]>> {
    return this.#tasks("poll-tasks", {}, options);
  }

  /**
   * Like pollTasks, for another session: an agent's name, its server id or the id of its run. By
   * default it is the agent itself.
   */
  checkTasks(sessionId?: string, options?: Options): Promise<Heard<Heard<Task>[]>> {
    return this.#tasks("check-tasks", { sessionId: sessionId || undefined }, options);
  }

  /**
   * Makes a task depend on another one, which must be done first unless the dependency has another
   * type.
   */
  async addDependency(taskId: string, on: Dependency, options?: Options): Promise<Heard<Link>> {
    const d = typeof on === "string" ? { depends_on_task_id: on } : on;
    const payload = { taskId, dependsOnTaskId: d.depends_on_task_id, dependencyType: d.dependency_type, contractKey: d.contract_key };
    return partOf(await this.ask("add-dependency", payload, options), "dependency");
  }

  /** Removes and returns a dependency, given its id or that of the task depended on. */
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
   * Reports that the agent needs a person to go on with a task, and returns without waiting. A
   * notice announces the answer; Job.help waits for it. The context may be any value.
   */
  requestHelp(taskId: string, question: string, context?: unknown, options?: Options): Promise<Heard<Task>> {
    return this.#task("request-help", { taskId, question, context: context ?? undefined }, options);
  }

  /** Submits the agent's plan for a task: an object or a text. */
  submitPlan(taskId: string, plan: object | string, options?: Options): Promise<Heard<Task>> {
    return this.#task("submit-plan", { taskId, plan }, options);
  }

  /** Approves the plan of another agent. */
  approvePlan(taskId: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("approve-plan", { taskId }, options);
  }

  /** Sends the plan of another agent back, with feedback. */
  revisePlan(taskId: string, feedback: string, options?: Options): Promise<Heard<Task>> {
    return this.#task("revise-plan", { taskId, feedback }, options);
  }

  /** Replaces the agent's capabilities. */
  updateCapabilities(now: UpdateCapabilities, options?: Options): Promise<Heard<Server>> {
    return this.ask("update-capabilities", now, options);
  }

  /** Lists all agents with what they can do, and whether they are online. */
  async servers(options?: Options): Promise<Heard<Heard<Server>[]>> {
    return listOf(await this.ask("query-servers", {}, options), "servers");
  }

  /** Sends mail from the agent's actor and returns the stored message. */
  sendMessage(mail: SendMessage, options?: Options): Promise<Heard<SentMail>> {
    return this.ask("send-message", mail, options);
  }

  /**
   * Lists the agent's mail, oldest first: the unacknowledged messages, or all after a given number.
   * It changes nothing; only ackMessages does.
   */
  async pollMessages(query: PollMessages = {}, options?: Options): Promise<Heard<MailList>> {
    const answer = await this.ask<MailList>("poll-messages", query, options);
    answer.messages = listOf(answer, "messages");
    return answer;
  }

  /** Acknowledges all mail up to a number. */
  ackMessages(seq: number | bigint | Raw, options?: Options): Promise<Heard<Acked>> {
    return this.ask("ack-messages", { seq }, options);
  }

  /** Reports that the agent's actor is present. */
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
