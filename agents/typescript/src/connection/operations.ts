// Code generated from wire.Operations; DO NOT EDIT.

import type {
  Acked, AddNote, Agent, AskPermission, AskUser, AssignTask, AutoAssigned, Beat, Conversation, Dependency, Limited,
  Link, MailList, Match, Note, PollMessages, QueryAgents, QueryTasks, Receipt, ReportProgress, RetryTask, SendMessage,
  SentMail, Server, SubmitTask, Task, Turn, UpdateCapabilities, UpdateTask, Usage, UserAnswer, WithdrawQuestion,
  Withdrawn,
} from "../wire/documents.js";
import { asking, dependency, submission } from "../wire/envelope.js";
import { type Heard, listOf, partOf, type Raw } from "../wire/json.js";
import type { Options } from "./waiting.js";

/** The requests of a connection and the events of coding agents: one method each. */
export abstract class Operations {
  /** Sends a request for any operation. */
  abstract ask<T = { [key: string]: unknown }>(operation: string, payload?: unknown, options?: Options): Promise<Heard<T>>;

  /** Sends any event. */
  abstract tell(event: string, payload?: unknown): Promise<void>;

  /**
   * List agents, by role, status or capabilities. You are one of them. Without a payload the answer
   * lists all agents.
   */
  async queryAgents(query: QueryAgents = {}, options?: Options): Promise<Heard<Heard<Agent>[]>> {
    return listOf(await this.ask("query-agents", query, options), "agents");
  }

  /**
   * List the tasks that you submitted or that are assigned to you. The oldest task comes first. The
   * list leaves out description, payload and result, which can be large; get-task has them.
   */
  async queryTasks(query: QueryTasks = {}, options?: Options): Promise<Heard<Heard<Task>[]>> {
    return listOf(await this.ask("query-tasks", query, options), "tasks");
  }

  /**
   * Submit a task for an idle agent with the role and the capabilities that it requires. The task
   * waits until every task that it depends on is done, and until an agent that fits is idle.
   */
  async submitTask(task: SubmitTask, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("submit-task", submission(task), options), "task");
  }

  /**
   * Show a task in full. The answer has the description, the payload, the progress and, when the
   * task is done, the result.
   *
   * @param taskId The id of the task.
   */
  async getTask(taskId: string, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("get-task", { taskId }, options), "task");
  }

  /**
   * Ask a person a question and wait for the answer. The response arrives when the person answers,
   * or with TIMEOUT. You can send other requests while you wait. An option may be a text.
   */
  askUser(question: AskUser, options?: Options): Promise<Heard<UserAnswer>> {
    return this.ask("ask-user", asking(question), options);
  }

  /**
   * Start a task that is assigned to you, or take one of yours that has no agent. The request is
   * optional: a task starts by itself when its agent has been notified.
   *
   * @param taskId The id of the task.
   */
  async startTask(taskId: string, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("start-task", { taskId }, options), "task");
  }

  /**
   * Complete a task with its result.
   *
   * @param taskId The id of the task.
   * @param result The result for the submitter: any value; {"success":true} when it is missing.
   *   An object with a $schema must be a task-result document: its contracts go to the tasks that
   *   need them.
   * @param artifacts Other products: each has a name, and one of content, path and ref.
   */
  async completeTask(taskId: string, result?: unknown, artifacts?: { name?: string; type?: string; content?: string; path?: string; ref?: string }[], options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("complete-task", { taskId, result: result ?? undefined, artifacts: artifacts ?? undefined }, options), "task");
  }

  /**
   * Fail a task with the reason. Tasks that depend on it are cancelled, unless the configuration
   * keeps them.
   *
   * @param taskId The id of the task.
   * @param error The reason.
   */
  async failTask(taskId: string, error: string, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("fail-task", { taskId, error }, options), "task");
  }

  /**
   * Cancel a task that you submitted and tell its agent. The task must not have ended.
   *
   * @param taskId The id of the task.
   * @param reason The reason, for the agent of the task.
   */
  async cancelTask(taskId: string, reason?: string, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("cancel-task", { taskId, reason: reason || undefined }, options), "task");
  }

  /**
   * Retry a failed or cancelled task. The task is pending again, with its history. Tasks that were
   * cancelled because of it are pending again as well.
   */
  async retryTask(retry: RetryTask, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("retry-task", retry, options), "task");
  }

  /**
   * Show the task that you work on. If you have several, it is the one that started first; if none
   * has started, the one that was assigned first. An agent without a task is refused with
   * NOT_FOUND.
   */
  async currentTask(options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("current-task", {}, options), "task");
  }

  /**
   * Report your activity on a task, with or without the progress. The same as event:progress, for
   * programs that do not write lines. The method progress sends that event.
   */
  async reportProgress(progress: ReportProgress, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("report-progress", progress, options), "task");
  }

  /**
   * Give a task back to the queue. It does not count as an attempt.
   *
   * @param taskId The id of the task.
   * @param reason Why you give the task back.
   * @param after When an agent may get the task again, in ISO 8601: for example, the end of a
   *   limit. A request can still assign it before that time.
   */
  async returnTask(taskId: string, reason: string, after?: string, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("return-task", { taskId, reason, after: after || undefined }, options), "task");
  }

  /**
   * Ask a person whether a tool may be used, and wait for the answer. The answer has the id of the
   * choice. A choice of the kind allow_session or allow_always is remembered: the same tool with
   * the same input is then answered at once. The question is withdrawn when its task ends, is given
   * back or goes to another agent, and when your run ends.
   */
  askPermission(permission: AskPermission, options?: Options): Promise<Heard<UserAnswer>> {
    return this.ask("ask-permission", permission, options);
  }

  /**
   * Withdraw a question of yours that no longer needs an answer. The request that asked the
   * question gets an error.
   */
  withdrawQuestion(question: WithdrawQuestion, options?: Options): Promise<Heard<Withdrawn>> {
    return this.ask("withdraw-question", question, options);
  }

  /**
   * Change the text, the documents or the priority of a task. The task must not have ended. Allowed
   * for the submitter and for planners.
   */
  async updateTask(change: UpdateTask, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("update-task", change, options), "task");
  }

  /**
   * Assign a task to an agent, which may have to submit a plan first. The agent need not fit the
   * requirements. It is notified and starts the task itself. Allowed for the submitter and for
   * planners.
   */
  async assignTask(assignment: AssignTask, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("assign-task", assignment, options), "task");
  }

  /**
   * Assign a task to the agent that fits its requirements best. The agent starts the task itself.
   * If no agent fits, the status of the answer is no_match.
   *
   * @param taskId The id of the task.
   */
  autoAssign(taskId: string, options?: Options): Promise<Heard<AutoAssigned>> {
    return this.ask("auto-assign", { taskId }, options);
  }

  /**
   * Show how each agent fits the requirements of a task. The answer gives the reasons. Nothing is
   * assigned. The best fit comes first.
   *
   * @param taskId The id of the task.
   */
  async matchAgents(taskId: string, options?: Options): Promise<Heard<Heard<Match>[]>> {
    return listOf(await this.ask("match-agents", { taskId }, options), "servers");
  }

  /** List the tasks that are assigned to you and not started. The answer has the tasks in full. */
  async pollTasks(options?: Options): Promise<Heard<Heard<Task>[]>> {
    return listOf(await this.ask("poll-tasks", {}, options), "tasks");
  }

  /**
   * List the tasks that are assigned to a session and not started. Only planners may ask for other
   * sessions.
   *
   * @param sessionId The session: the name of an agent, its server_id, or the id of its run. The
   *   default is your own.
   */
  async checkTasks(sessionId?: string, options?: Options): Promise<Heard<Heard<Task>[]>> {
    return listOf(await this.ask("check-tasks", { sessionId: sessionId || undefined }, options), "tasks");
  }

  /**
   * Ask a person for help with a task. The task waits. When a person answers, you get
   * notify:task-updated, and the task has the answer. This returns without waiting; the method help
   * of a job waits for the answer.
   *
   * @param taskId The id of the task.
   * @param question The question.
   * @param context Further facts about the question: any value.
   */
  async requestHelp(taskId: string, question: string, context?: unknown, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("request-help", { taskId, question, context: context ?? undefined }, options), "task");
  }

  /**
   * Submit the plan that a task requires. The task is in the state planning. Its agent may start
   * when the plan is approved.
   *
   * @param taskId The id of the task.
   * @param plan The plan: an object or a text.
   */
  async submitPlan(taskId: string, plan: object | string, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("submit-plan", { taskId, plan }, options), "task");
  }

  /**
   * Approve the plan of a task. Its agent may start. An agent cannot approve its own plan.
   *
   * @param taskId The id of the task.
   */
  async approvePlan(taskId: string, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("approve-plan", { taskId }, options), "task");
  }

  /**
   * Reject the plan of a task with feedback. The agent must submit another plan. An agent cannot
   * reject its own plan.
   *
   * @param taskId The id of the task.
   * @param feedback The objections to the plan.
   */
  async revisePlan(taskId: string, feedback: string, options?: Options): Promise<Heard<Task>> {
    return partOf(await this.ask("revise-plan", { taskId, feedback }, options), "task");
  }

  /**
   * Add a dependency to a task. The task must not have started. A dependency that closes a cycle is
   * refused.
   */
  async addDependency(taskId: string, on: Dependency, options?: Options): Promise<Heard<Link>> {
    return partOf(await this.ask("add-dependency", dependency(taskId, on), options), "dependency");
  }

  /**
   * Remove a dependency from a task. A task without other open dependencies may start.
   *
   * @param taskId The id of the task that depends on another one.
   * @param dependencyId The id of the dependency, or of the task that it names.
   */
  async removeDependency(taskId: string, dependencyId: string, options?: Options): Promise<Heard<Link>> {
    return partOf(await this.ask("remove-dependency", { taskId, dependencyId }, options), "dependency");
  }

  /** Add a note to a task. Everyone who may see the task can read the note. */
  async addNote(note: AddNote, options?: Options): Promise<Heard<Note>> {
    return partOf(await this.ask("add-note", { ...note, urgent: note.urgent || undefined }, options), "note");
  }

  /**
   * List the notes of a task, oldest first.
   *
   * @param taskId The id of the task.
   */
  async listNotes(taskId: string, options?: Options): Promise<Heard<Heard<Note>[]>> {
    return listOf(await this.ask("list-notes", { taskId }, options), "notes");
  }

  /**
   * Replace your advertised capabilities and refresh your presence. Members that are missing keep
   * their values. Without any member, the request only refreshes your presence.
   */
  updateCapabilities(now: UpdateCapabilities, options?: Options): Promise<Heard<Server>> {
    return this.ask("update-capabilities", now, options);
  }

  /**
   * List all agents with their capabilities and presence. The list is in the terms of the hub,
   * where agents are servers.
   */
  async servers(options?: Options): Promise<Heard<Heard<Server>[]>> {
    return listOf(await this.ask("query-servers", {}, options), "servers");
  }

  /**
   * Send a message to an actor, or as GO to all. The message is kept unchanged until the recipient
   * reads it. An agent can print the payload as a line, with a from_actor. The answer is then only
   * the message.
   */
  sendMessage(mail: SendMessage, options?: Options): Promise<Heard<SentMail>> {
    return this.ask("send-message", mail, options);
  }

  /**
   * Read your messages after your cursor, or after any number, in order. Reading removes nothing: a
   * message that is not acknowledged is returned again.
   */
  async pollMessages(query: PollMessages = {}, options?: Options): Promise<Heard<MailList>> {
    const answer = await this.ask<MailList>("poll-messages", query, options);
    answer.messages = listOf(answer, "messages");
    return answer;
  }

  /**
   * Acknowledge your messages up to a number and move your cursor there. poll-messages continues
   * after that number. A lower number than before changes nothing.
   *
   * @param seq The number of the last message that you have handled.
   */
  ackMessages(seq: number | bigint | Raw, options?: Options): Promise<Heard<Acked>> {
    return this.ask("ack-messages", { seq }, options);
  }

  /**
   * Announce that you are present for the next minute. An agent that has sent one heartbeat must
   * send one each minute. GO is alerted when none comes for three minutes.
   */
  heartbeat(options?: Options): Promise<Heard<Beat>> {
    return this.ask("heartbeat", {}, options);
  }

  /**
   * Report the usage of a turn, or of one request to a model. Usage is added up by agent and by
   * task.
   */
  reportUsage(usage: Usage): Promise<void> {
    return this.tell("usage", usage);
  }

  /** Report the conversation of your program. Your next run gets its id in ORC_CONVERSATION. */
  reportConversation(conversation: Conversation): Promise<void> {
    return this.tell("session", conversation);
  }

  /**
   * Report your current activity, for people. It is not recorded. While you wait for a person, your
   * silence does not count.
   */
  reportTurn(turn: Turn): Promise<void> {
    return this.tell("turn", turn);
  }

  /**
   * Report that you cannot work for a time, usually because of a limit of your vendor. You get no
   * task until then. Give your current task back with return-task.
   */
  reportLimit(limit: Limited): Promise<void> {
    return this.tell("limited", limit);
  }

  /** Report that your model has a bus message, or that your program refused it. */
  reportReceipt(receipt: Receipt): Promise<void> {
    return this.tell("receipt", receipt);
  }
}
