import { type Heard, listOf, partOf, type Raw } from "../wire/json.js";
import type { Acked, Beat, MailList, PollMessages, SendMessage, SentMail } from "../wire/mail.js";
import type { Agent, QueryAgents, Server, UpdateCapabilities } from "../wire/servers.js";
import {
  type AddNote, type AskUser, type AssignTask, type AutoAssigned, type Dependency, type Link, type Match, type Note,
  type QueryTasks, submission, type SubmitTask, type Task, type UpdateTask, type UserAnswer,
} from "../wire/tasks.js";
import type { Options } from "./waiting.js";

/** The requests of a connection: one method for each operation. */
export abstract class Verbs {
  abstract ask<T = { [key: string]: unknown }>(operation: string, payload?: unknown, options?: Options): Promise<Heard<T>>;

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
    return partOf(await this.ask(operation, payload, options), "task");
  }

  async #tasks(operation: string, payload: object, options?: Options): Promise<Heard<Heard<Task>[]>> {
    return listOf(await this.ask(operation, payload, options), "tasks");
  }
}
