// Code generated from wire/schema; DO NOT EDIT.

import type { Document, Raw } from "./json.js";
import type { TaskExecutionError } from "./sessiondocuments.js";

// The documents that operations send and return. Documents may have more members than these.

/** The state of a task. The last three are final. */
export type TaskState = "pending" | "assigned" | "planning" | "plan_review" | "running" | "needs_human" | "in_review" | "verifying" | "done"
  | "failed" | "cancelled";

/** A summary of the state of a task. */
export type TaskStatus = "queued" | "running" | "completed" | "failed" | "cancelled";

/** The status of an agent. */
export type AgentStatus = "idle" | "busy" | "starting" | "stopping" | "stale" | "offline" | "crashed";

/** The role of an agent: worker, planner, reviewer, or one that the configuration names. */
export type Role = string;

/** A number, where 1 is the most urgent; or critical, high, normal or low. */
export type Priority = number | string;

/**
 * A dependency of a task to submit: the id of a task that must be done first, or a TypedDependency.
 */
export type Dependency = string | TypedDependency;

/** The trace that a task belongs to. Pass it on with the work that you delegate. */
export interface TaskTrace<Baggage = { [key: string]: unknown }> {
  traceId?: string;
  spanId?: string;
  /** Values that travel with the trace. */
  baggage?: Baggage;
}

/**
 * A task in answers. A list leaves out the members that can be large: description, payload,
 * structured_spec, requirements, plan, help, context, routing and observability. The result is null
 * there.
 */
export interface Task {
  /** The id of the task. */
  id: string;
  /** The name of the task. */
  name: string;
  /** The kind of task, in words of the submitter. */
  type: string;
  /** A summary of the state. */
  status: TaskStatus;
  /** The state of the task. The last three are final. */
  state: TaskState;
  /** The work to do. */
  description?: string;
  /** The payload as it was submitted, digit for digit. */
  payload?: { [key: string]: any };
  /** The role that the agent must have; null for any role. */
  requiredRole: Role | null;
  /** The capabilities that the agent must have. */
  requiredCapabilities: string[];
  /** Ids of tasks that must be done first. */
  dependencies: string[];
  /** The dependencies that are not done yet. */
  waitsFor?: string[];
  /** All dependencies of the task, if one of them does not only block. */
  typedDependencies?: Link[];
  /** The specification in a form for programs: a task-spec document. */
  structured_spec?: { [key: string]: any };
  /** The demands of the task on an agent: a requirements document. */
  requirements?: { [key: string]: any };
  /** The repository that the task is about. */
  targetRepo?: string;
  /** The conditions under which the task counts as done. */
  acceptanceCriteria?: string[];
  /**
   * Who changed the name, the description or another text of the task last, such as agent:planner.
   */
  changedBy?: string;
  /** The project that the task belongs to. */
  projectId?: string;
  /** The session that the task came from. */
  sessionId?: string;
  /** The task that the submitter was working on. */
  parentTaskId?: string;
  /** The plan of the agent. */
  plan?: { [key: string]: any } | string;
  /** The objections to the plan. */
  planFeedback?: string;
  /** The last question of the agent to a person. */
  help?: Help;
  /** The usage of coding agents for the task, in the answer to get-task. */
  used?: { input?: number; output?: number; cost?: number; currency?: string };
  /** When the task may be given to an agent; missing if it may be given to one now. */
  after?: string;
  /**
   * The agent that gets the task again when it can. The task was assigned by hand, and has no
   * requirements for finding another agent.
   */
  addressee?: string;
  /**
   * The last partial result that an agent reported, in the answers to get-task and current-task.
   * The task keeps it when it fails or goes to another agent; the result replaces it.
   */
  output?: unknown;
  /**
   * The artifacts that the agent delivered with the result, without the content, in the answers to
   * get-task. The task response has the content.
   */
  artifacts?: { name: string; type: string; size?: number; ref?: string }[];
  /** The commands that must succeed before the task is done, besides the commands of its agent. */
  verify?: string[][];
  /** How often its verification has failed. */
  unverified?: number;
  /** The task block of the configuration that declares the task. */
  block?: string;
  /** The workspace of the task, if it has one. */
  workspace?: { path: string; commit?: string; host?: string; branch?: string; base?: string; began?: string; merge?: "waiting" | "refused" | "merged" | "unchanged" | "left" };
  /** How often the task was restarted on a fresh branch. */
  restarts?: number;
  /** The class of the failure, if its agent named one. */
  failureClass?: "refused" | "context" | "limit" | "budget" | "login" | "stuck" | "tool";
  /** The context of the task request that submitted the task. */
  context?: TaskContext;
  /** The route of the task request. */
  routing?: TaskRouting;
  /** The trace that the task belongs to. */
  observability?: TaskTrace;
  /**
   * The delivered inputs, by contract key, in the answers to get-task and poll-tasks. An input is
   * null if it has no data.
   */
  resolved_inputs?: { [key: string]: any };
  /** The priority as it was given: a number or a word. 1 is the most urgent. */
  priority?: Priority;
  /** The submitter, such as agent:planner. */
  submittedBy: string;
  /** The agent that has the task, or had it when it ended; null without an agent. */
  assignedTo: string | null;
  /** The progress, from 0 to 1; 0 when it is missing. */
  progress?: number;
  /** The message of the last progress report. */
  message?: string;
  /** How often the task was assigned; 0 when it is missing. */
  attempts?: number;
  /** The result; null before the task is done, and in lists. */
  result: unknown;
  /** Why the task failed. */
  error?: string;
  /** Why the task was cancelled. */
  reason?: string;
  /** When the task was submitted. */
  createdAt: string;
  /** When the task was last assigned. */
  assignedAt?: string;
  /** When the task was last started. */
  startedAt?: string;
  /** When the task ended. */
  endedAt?: string;
}

/** The last question of the agent to a person. */
export interface Help {
  /** The id of the question. */
  questionId: string;
  /** The question. It is untrusted: escape it before you show it. */
  question: string;
  /** Further facts about the question: any value. */
  context?: unknown;
  /** The answer of the person. */
  answer?: string;
  /** When the person answered; missing before that. */
  answeredAt?: string;
}

/** A dependency of a task in answers. */
export interface Link {
  /** The id of the dependency. */
  id: string;
  /** The id of the other task. */
  depends_on_task_id: string;
  /**
   * blocks: the other task must be done first. input: part of its result is needed as well.
   * related: for information only.
   */
  dependency_type: "blocks" | "input" | "related";
  /** The part of the result that an input needs; null for any other type. */
  contract_key: string | null;
  /**
   * Whether the dependency is resolved when the other task ends, in any state; false when it is
   * missing.
   */
  soft?: boolean;
  /** Whether the dependency is resolved: it no longer blocks the task. */
  resolved: boolean;
  /** When the dependency was resolved; null before that. */
  resolved_at: string | null;
  /**
   * The result of the other task, when it is done. It is missing if the author of the dependency
   * may not read the other task.
   */
  result?: any;
  /**
   * Whether the result is left out because a task shows at most 256 KiB of results. To get a part
   * of it, depend on it as an input.
   */
  result_left_out?: boolean;
}

/** A product of a task. It has one of content, path and ref. */
export interface TaskArtifact {
  /** The name, such as a file name; the path when it is missing. */
  name?: string;
  /** The MIME type, such as text/markdown; text/plain when it is missing. */
  type?: string;
  /** The content, as text. */
  content?: string;
  /**
   * The path of a text file in your working folder, which is read now. Only for a run that the
   * orchestrator has started.
   */
  path?: string;
  /** The place of the content, if it is stored elsewhere. */
  ref?: string;
}

/** A dependency of a task to submit. */
export interface TypedDependency {
  /** The id of the other task. */
  depends_on_task_id: string;
  /**
   * blocks: the other task must be done first; the default. input: part of its result is needed as
   * well. related: for information only.
   */
  dependency_type?: "blocks" | "input" | "related";
  /**
   * The part of the result that an input needs. With another type it has no meaning and causes a
   * warning.
   */
  contract_key?: string;
}

/** A task to submit. */
export interface SubmitTask {
  /** The kind of task, in words of the submitter. */
  type: string;
  /** The name of the task. */
  name: string;
  /** The work to do. */
  description?: string;
  /** Data for the agent. It is passed on unchanged, digit for digit. */
  payload?: Document;
  /**
   * The role that the agent must have: worker, planner, reviewer, or a role from the configuration.
   * Any other is refused.
   */
  requiredRole?: Role;
  /** The capabilities that the agent must have. */
  requiredCapabilities?: string[];
  /**
   * The dependencies of the task: ids of tasks that must be done first, or objects with more
   * members.
   */
  dependencies?: Dependency[];
  /**
   * A number or a word. 1 is the most urgent; the default is 3, and all above 3 are equal. The
   * words are critical, high, normal and low; any other counts as normal.
   */
  priority?: Priority | Raw;
  /**
   * The agent that gets the task: its name, its server_id, or the id of its run. It need not have
   * the role and the capabilities.
   */
  assignTo?: string;
  /** With assignTo, whether that agent must submit a plan first. */
  requirePlan?: boolean;
  /** The trace that the task belongs to. */
  observability?: TaskTrace<Document>;
  /** The repository that the task is about. */
  targetRepo?: string;
  /** The conditions under which the task counts as done. */
  acceptanceCriteria?: string[];
  /** The project that the task belongs to. */
  projectId?: string;
  /** The session that the task came from. */
  sessionId?: string;
  /**
   * Commands that must succeed before the task is done, each a list of words. They run as its
   * agent, so only a person may name them.
   */
  verify?: string[][];
  /** The specification in a form for programs: a task-spec document. */
  structured_spec?: Document;
  /** The demands of the task on an agent: a requirements document. */
  requirements?: Requirements | Document;
}

/** The requirements of a task. */
export interface Requirements {
  /** The kind and the version of the document; this version when it is missing. */
  $schema?: string;
  /** The agent must have this repository. */
  repo?: string;
  /** The agent must know all of these. */
  languages?: string[];
  /** The agent must run in one of these. */
  environments?: string[];
  /** Agents that have more of these are preferred. */
  tools?: string[];
  /** Agents with more of these tags are preferred. */
  tags?: string[];
  /** The name of the preferred agent. */
  prefer_server?: string;
}

/** Selects tasks. */
export interface QueryTasks {
  /**
   * Only tasks with this status or in this state. queued is pending or assigned, completed is done,
   * and running is every state in between.
   */
  status?: TaskStatus | TaskState;
  /** Only tasks that require this role. */
  requiredRole?: Role;
  /**
   * The maximum number of tasks; 100 when it is missing. The response has the number of further
   * tasks.
   */
  limit?: number;
  /** Only tasks that were created after this one: the cursor of the previous response. */
  cursor?: string;
  /** Only tasks of this project. */
  projectId?: string;
  /** Only tasks of this conversation: see task-request. */
  conversationId?: string;
}

/** Changes of a task. */
export interface UpdateTask {
  /** The id of the task. */
  taskId: string;
  /** The new payload. */
  payload?: Document;
  /** The new name. */
  name?: string;
  /** The new description; an empty text removes it. */
  description?: string;
  /** The repository that the task is about. */
  targetRepo?: string;
  /** The project that the task belongs to. */
  projectId?: string;
  /** The new type. */
  type?: string;
  /**
   * A number or a word. 1 is the most urgent; the default is 3, and all above 3 are equal. The
   * words are critical, high, normal and low; any other counts as normal.
   */
  priority?: Priority | Raw;
  /** The new conditions under which the task counts as done. */
  acceptanceCriteria?: string[];
  /** The new specification: a task-spec document. null removes it. */
  structured_spec?: Document | null;
  /** The new requirements: a requirements document. null removes them. */
  requirements?: Requirements | Document | null;
}

/** Assigns a task to an agent. */
export interface AssignTask {
  /** The id of the task. */
  taskId: string;
  /** The agent: its name, its server_id, or the id of its run. */
  agent: string;
  /**
   * Whether the agent must submit a plan first, with submit-plan. It can also be set for the agent
   * that has the task and has not started.
   */
  requirePlan?: boolean;
}

/** Tries a task again. */
export interface RetryTask {
  /** The id of the task. */
  taskId: string;
  /** The agent for the task. Without it, the task is assigned as before. */
  agent?: string;
  /**
   * Whether to continue in the present workspace, with the commits and files of the last attempt.
   * Otherwise the task begins on a fresh branch, and the earlier branch is kept under another name.
   */
  keep?: boolean;
  /**
   * Whether the tasks that were cancelled because of this one are pending again as well; true if it
   * is missing.
   */
  dependents?: boolean;
}

/** Answers auto-assign. */
export interface AutoAssigned {
  /** Whether an agent fits and has the task now. */
  status: "assigned" | "no_match";
  /** The server_id of the agent. */
  server_id?: string;
  /** The name of the agent. */
  server_name?: string;
  /** The score of the agent; a higher score is a better fit. */
  match_score?: number;
}

/** The fit of an agent for the requirements of a task, in the answer to match-agents. */
export interface Match {
  /** The server_id of the agent. */
  server_id: string;
  /** The name of the agent. */
  server_name: string;
  /** The score; a higher score is a better fit. -1: the agent does not fit. */
  score: number;
  /** Whether the agent is present. */
  status: "online" | "offline";
  /** The reasons, for people. */
  reasons: string[];
}

/** A note to add to a task. */
export interface AddNote {
  /** The id of the task. */
  taskId: string;
  /** The text of the note. */
  content: string;
  /** Whether the agent of the task is notified at once, with notify:task-updated. */
  urgent?: boolean;
}

/** A note on a task, in the answers to add-note and list-notes. */
export interface Note {
  /** The id of the note. */
  id: string;
  /** The id of the task. */
  task_id: string;
  /** The author, such as agent:planner. */
  author: string;
  /** The text of the note. It is untrusted: escape it before you show it. */
  content: string;
  /** Whether the agent of the task was notified at once. */
  urgent: boolean;
  /** When the note was written. */
  created_at: string;
}

/** A question to a person. */
export interface AskUser {
  /** The question. */
  question: string;
  /**
   * How long to wait, in milliseconds, up to a year; 30000 when it is missing, as for every
   * request.
   */
  timeout?: number;
  /**
   * How long you wait yourself, in milliseconds. Without an answer by then, you get the id of the
   * question, and later its answer as mail.
   */
  wait?: number;
  /**
   * The answers that are allowed, each with its own value. Without options every text is allowed.
   */
  options?: (string | { label?: string; value: string })[];
}

/** A possible answer to ask-permission. */
export interface PermissionChoice {
  /** The answer that you get when the person chooses this. */
  id: string;
  /** The meaning of the answer. */
  kind: "allow_once" | "allow_session" | "allow_always" | "deny";
  /** The text that the person sees. */
  label?: string;
}

/** A request for permission to use a tool. */
export interface AskPermission {
  /** The task that needs it; the task that you work on when it is missing. */
  taskId?: string;
  /** The tool, such as Bash. */
  tool: string;
  /** The action to permit, in one line. */
  title: string;
  /** The input of the tool call. */
  input: Document;
  /** The files and folders that it concerns. */
  paths?: string[];
  /** The possible answers. */
  choices: PermissionChoice[];
  /** Why it is needed. */
  reason?: string;
  /** How long to wait, in milliseconds; a year when it is missing. */
  timeout?: number;
  /**
   * How long you wait yourself, in milliseconds. Without an answer by then, you get the id of the
   * question, and later the choice as mail.
   */
  wait?: number;
}

/** Answers ask-user and ask-permission. */
export interface UserAnswer {
  /** The value of the option that the person chose, or the text that the person typed. */
  answer: string;
  /** The id of a question without an answer yet. The answer comes as mail on message.direct. */
  questionId?: string;
  /** The id of the choice, in the answer to ask-permission. */
  choice?: string;
  /** The person's remark, in the answer to ask-permission. */
  message?: string;
  metadata: { answeredAt?: string };
}

/** The question to withdraw. It has one of the two ids. */
export interface WithdrawQuestion {
  /** The id of the question. */
  questionId?: string;
  /** The id of your request that asked it. */
  requestId?: string;
}

/** Answers withdraw-question. */
export interface Withdrawn {
  /** Whether the question is closed, even if it was answered or withdrawn before. */
  withdrawn: boolean;
}

/** What an agent does for a task. */
export interface ReportProgress {
  /** The id of the task. */
  taskId: string;
  /** Your current activity. */
  message: string;
  /**
   * The kind of the message: tool for a tool call, words for text of the model, plan for a step of
   * a plan.
   */
  kind?: "tool" | "words" | "plan";
  /** Your output so far: any value, up to 64 KiB. The task shows the last one until it is done. */
  output?: unknown;
  /** The progress, from 0 to 1. A missing value changes nothing. */
  progress?: number;
}

/** What a turn, or one request to a model, has used. */
export interface Usage {
  /** The id of the task, if the usage was for one. */
  taskId?: string;
  /** The number of the turn in this run. */
  turn?: number;
  /** The model. */
  model?: string;
  /** The input tokens. */
  input: number;
  /** The output tokens. */
  output: number;
  /** The tokens read from a cache. */
  cacheRead?: number;
  /** The tokens written to a cache. */
  cacheWrite?: number;
  /** The reasoning tokens. */
  reasoning?: number;
  /** The cost. */
  cost?: number;
  /** The currency of the cost, such as USD. */
  currency?: string;
  /** The number of tokens in the conversation. */
  contextUsed?: number;
  /** The maximum number of tokens in a conversation. */
  contextSize?: number;
}

/** The conversation of the agent's program. */
export interface Conversation {
  /** The id of the conversation. Your program resumes the conversation by this id. */
  id: string;
  /** The kind of program, such as claude. */
  kind?: string;
  /** The folder of the conversation. */
  dir?: string;
  /** The version of the program. */
  version?: string;
  /** The model. */
  model?: string;
}

/** What an agent does at the moment. */
export interface Turn {
  /** busy, waiting (for a person) or idle. */
  state: "busy" | "waiting" | "idle";
  /** When the state began, in ISO 8601. */
  since?: string;
  /** Your current activity, in a few words. */
  what?: string;
  /** The id of the task that you work on. */
  taskId?: string;
}

/** A limit of the agent's vendor. */
export interface Limited {
  /** When the limit ends, in ISO 8601. */
  until: string;
  /** The limited resource, in words of the vendor, or another reason. */
  scope?: string;
}

/** What became of a message of the bus. */
export interface Receipt {
  /** The number of the message. */
  seq: number;
  /** in_context: your model has it. refused: your program did not take it. */
  state: "in_context" | "refused";
}

/** Selects agents. */
export interface QueryAgents {
  /**
   * Only agents with this role: worker, planner, reviewer, or a role from the configuration. Any
   * other is refused.
   */
  role?: Role;
  /**
   * Only agents with this status: idle, busy, starting, stopping, stale, offline or crashed. With
   * any other status the list is empty.
   */
  status?: AgentStatus;
  /** Only agents that have all of these. */
  capabilities?: string[];
}

/** An agent in the answer to query-agents. */
export interface Agent {
  /** The name of the agent. */
  id: string;
  /** The role: worker, planner, reviewer, or a role from the configuration. */
  role: Role;
  /** The status of the agent. Only an idle agent gets a task from the queue. */
  status: AgentStatus;
  /** The capabilities of the agent. */
  capabilities: string[];
  /** The id of the first task that the agent has; null if it has none. */
  currentTask: string | null;
  /** Whether its capacity is 0, as for a pipe without a role. */
  takesNoTasks?: boolean;
}

/** The new capabilities of an agent. */
export interface UpdateCapabilities {
  /** Your skills: a capabilities document. */
  capabilities?: Capabilities | Document;
  /** Information about the machine that you run on, such as its load. It is shown to people. */
  system?: Document;
}

/** The capabilities of an agent. */
export interface Capabilities {
  /** The kind and the version of the document; this version when it is missing. */
  $schema?: string;
  /** The repositories of the agent, by name. Each may have a path, languages and tools. */
  repos?: { [name: string]: { path?: string; languages?: string[]; tools?: string[] } };
  /** The languages that the agent can write. */
  languages?: string[];
  /** The tools that the agent has. */
  tools?: string[];
  /** The environments that the agent runs in, such as linux. */
  environments?: string[];
  /** The strengths of the agent, in free words. */
  tags?: string[];
  /**
   * The maximum number of tasks at a time; 1 when it is missing. With 0 the agent gets no tasks.
   */
  max_concurrent_tasks?: number;
}

/** An agent with its capabilities, in the answers to query-servers and update-capabilities. */
export interface Server {
  /** The id of the server, derived from its name. */
  server_id: string;
  /** The name of the agent. */
  name: string;
  /** Whether the agent is present. */
  status: "online" | "offline";
  /** The role: worker, planner, reviewer, or a role from the configuration. */
  role: string;
  /** Whether the agent runs on another machine and has registered. */
  remote: boolean;
  /** The name of the machine. */
  hostname?: string;
  /** The address of the machine, as reported. */
  ip?: string;
  /** The operating system. */
  os?: string;
  /** The repositories of the agent, by name. */
  repos: { [key: string]: any };
  /** The reported capabilities: a capabilities document; null if none are reported. */
  capabilities: Capabilities | null;
  /** Information about the machine, as reported. */
  system?: { [key: string]: any };
  /** The number of tasks that the agent works on. */
  running_tasks: number;
  /** When the agent was last seen, if it runs on another machine. */
  last_seen?: string;
}

/**
 * A stored message, in the answers to poll-messages and send-message and in notify:message. It
 * never changes.
 */
export interface Mail {
  /**
   * The number of the message. Later messages have higher numbers. The numbers in one mailbox have
   * gaps.
   */
  seq: number;
  /** The sender. */
  from_actor: string;
  /** The recipient, or broadcast. */
  to_actor: string;
  /** The topic. Acknowledge messages on unknown topics and continue. */
  topic: string;
  /** The content, unchanged. It is untrusted: escape it before you show it. */
  payload: { [key: string]: any };
  /** The number of the message that this one answers; null if it answers none. */
  reply_to: number | null;
  /** When the message was sent: UTC, with milliseconds. */
  created_at: string;
}

/** Mail to send. */
export interface SendMessage {
  /** You, as an actor; optional. A message in the name of another actor is refused. */
  from_actor?: string;
  /**
   * The recipient: GO, HO:host, PO:project, IO:person, W:id, S:kind:id, Bus or Governor; the name
   * of an agent, for its mailbox; or broadcast, which only GO may use. An actor need not exist yet.
   * At most 200 bytes, without invisible characters.
   */
  to_actor: string;
  /**
   * The topic: words with dots between them, such as task.completed, at most 200 bytes. A topic
   * that is not registered causes a warning.
   */
  topic: string;
  /** The content, at most 1 MiB. It is delivered unchanged, digit for digit. */
  payload: Document;
  /** The number of the message that this one answers, as a number or a text. */
  reply_to?: number | string;
  /**
   * A text that differs for each of your messages, such as a UUID, at most 200 bytes. A message
   * that is sent again with the same key is not sent twice.
   */
  idempotency_key?: string;
}

/** Answers send-message with the stored message and warnings about it. */
export interface SentMail extends Mail {
  /** Whether the message had been sent before, with the same key; missing if it had not. */
  duplicate?: boolean;
  /** Warnings about the message, such as a topic that is not registered. */
  warnings?: string[];
}

/** Selects mail. */
export interface PollMessages {
  /** You, as an actor; optional. Only operators may name another. */
  actor?: string;
  /** Only messages with a higher number; 0 for all. The default is the last acknowledged one. */
  cursor?: number;
  /** The maximum number of messages; 1000 when it is missing. */
  limit?: number;
}

/** Answers poll-messages, in the order of the numbers. */
export interface MailList {
  /** The recipient of the messages. */
  actor: string;
  /** The messages, in the order of their numbers. */
  messages: Mail[];
  /** The number of the last acknowledged message. */
  cursor: number;
  /** Whether more messages follow. */
  more: boolean;
}

/** Answers ack-messages. */
export interface Acked {
  /** The recipient of the messages. */
  actor: string;
  /** The number of the last acknowledged message. */
  cursor: number;
}

/** Answers heartbeat. */
export interface Beat {
  /** The actor that sent the heartbeat. */
  actor: string;
  /** When the actor was last seen: now. */
  last_seen: string;
  /** The expected time between heartbeats, in milliseconds. */
  heartbeat_ms: number;
}

/** A task as the members of its session see it, in the answer to get-session. */
export interface SessionTaskView {
  /** The id of the task. */
  task_id: string;
  /** The name of the task. */
  name: string;
  /** The agent that assigned it. */
  architect: string;
  /** The agent that has the task. */
  developer: string;
  /**
   * held: it waits for other tasks. assigned: the developer has it and has not responded. working:
   * the developer works on it. completed: the developer is done, and no review is requested yet.
   * reviewing: it is reviewed. revise: the architect must assign it again with changes. redesign:
   * it must be planned again. human: a person has to decide. over: it has ended.
   */
  phase: "held" | "assigned" | "working" | "completed" | "reviewing" | "revise" | "redesign" | "human" | "over";
  /** The state, as of every task. */
  state: TaskState;
  /** The progress, from 0 to 1. */
  progress: number;
  /** The current step of the developer. */
  step?: string;
  /** Whether the progress report is overdue. */
  overdue?: boolean;
  /** How often the task was assigned: 2 if it was retried after an error. */
  tries: number;
  /** The number of reviews so far. */
  iteration: number;
  /** The maximum number of reviews. */
  max_iterations: number;
  /** The action after the last allowed review did not approve the task. */
  escalated?: "abort" | "force_approve" | "human_review";
  /** The correlation_id of all messages about the task. */
  correlation_id: string;
  /** The id of the task that this task revises. */
  revises?: string;
  /** Patterns of the files that may be changed. */
  scope: string[];
  /** The findings of all reviews. */
  findings: FindingView[];
  /** The latest error in the work on the task. */
  error?: TaskExecutionError;
}

/** A finding of the reviews of a task. */
export interface FindingView {
  /** The id of the finding. */
  finding_id: string;
  /** The severity of the finding. */
  severity: "critical" | "major" | "minor" | "suggestion";
  /** The category of the finding. */
  category: "bug" | "security" | "performance" | "style" | "logic" | "test";
  /** The file of the finding. */
  file?: string;
  /** The description of the finding. */
  description?: string;
  /** The review that reported the finding. */
  found_in_iteration: number;
  /** The review that reported the finding as fixed; missing while the finding is open. */
  fixed_in_iteration?: number;
}

/** The context of the task. */
export interface TaskContext {
  /** The id of the conversation that the task belongs to. */
  conversationId?: string;
  /** The id of the task that this task is part of. */
  parentTaskId?: string;
  /** The user that the task is done for. */
  user?: string;
  /**
   * When the task was requested: an ISO 8601 time, such as 2026-11-20T09:15:00Z. Without a zone it
   * is UTC.
   */
  timestamp?: string;
  /** The urgency; normal when it is missing. */
  priority?: "low" | "normal" | "high" | "urgent";
}

/** The route of the task. */
export interface TaskRouting {
  /**
   * The sender, which gets the responses. It is optional: when you ask, it is you, and another name
   * is refused.
   */
  source?: string;
  /** The agent that the task is for; any agent with the capability when it is missing. */
  target?: string;
  /**
   * Every agent that has had the task, the latest one last; at most 16 KiB in total. You are added
   * when you pass the task on. The task never returns to an agent in the list.
   */
  delegationChain?: string[];
}
