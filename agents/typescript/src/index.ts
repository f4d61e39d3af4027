/**
 * The library for agents written in TypeScript. An agent sends requests and events to the
 * orchestrator, receives its notices, works on tasks, delegates work, does delegated work, and
 * takes part in sessions.
 *
 * The package gives an agent no more rights than a program that prints lines. It handles no signals
 * and sets no time limits. It repeats only session messages, requests of its roles, and responses
 * of serve, if they are refused for a limit.
 */
export { Architect, type Lead } from "./architect.js";
export { Conn, connect, Session } from "./conn.js";
export { Delegated } from "./delegated.js";
export { Delegation } from "./delegation.js";
export { Assigned, type Developer, Failed } from "./developer.js";
export { type Delivery, Ended, Incomplete, type Order, Rejected, Undone, Unreviewed } from "./delivery.js";
export { timestamp } from "./envelope.js";
export {
  Again, Cancelled, Closed, type Code, type Details, Fatal, Reason, Refused, Shutdown, spoken, Torn, Unfinished, Unsaid, Withdrawn,
} from "./errors.js";
export { Fault, FaultCode, type FaultOptions, type TaskFault } from "./fault.js";
export { type Contract, fulfilled, Job, partial, type Result, result, skipped } from "./job.js";
export { type Heard, Members, Raw } from "./json.js";
export * from "./mail.js";
export type { Notice, ShutdownNotice, TaskNotice } from "./inbox.js";
export type { Reviewer } from "./reviewer.js";
export type { AgentIdentifier, Said } from "./said.js";
export { type DeliveryError, Sent, Undelivered } from "./sent.js";
export * from "./servers.js";
export type { ServeOptions, Skill, Skills } from "./serving.js";
export type { Identity } from "./session.js";
export * from "./sessions.js";
export { inWords, SessionTask, type SessionTaskView } from "./sessiontask.js";
export type {
  AddNote, AskUser, AssignTask, AutoAssigned, Dependency, Help, Link, Match, Note, Priority, QueryTasks, Requirements, Role, SubmitTask,
  Task, TaskState, TaskStatus, TypedDependency, UpdateTask, UserAnswer,
} from "./tasks.js";
export type { DelegateTask, TaskContext, TaskPriority, TaskRequest, TaskRouting, TaskTrace } from "./taskrequest.js";
export type {
  Artifact, ResponseMetadata, ResponseStatus, TaskAsks, TaskCompleted, TaskFailed, TaskGivenUp, TaskOption, TaskPending, TaskResponse,
} from "./taskresponse.js";
export type { Options } from "./waiting.js";
export type { Worker } from "./work.js";
