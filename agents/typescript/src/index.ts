/**
 * The library for agents written in TypeScript. An agent sends requests and events to the
 * orchestrator, receives its notices, works on tasks, delegates work, does delegated work, and
 * takes part in sessions.
 *
 * The package gives an agent no more rights than a program that prints lines. It handles no signals
 * and sets no time limits. It repeats only session messages, requests of its roles, and responses
 * of serve, if they are refused for a limit.
 */
export { Conn, connect, Session } from "./conn.js";
export { Architect, type Lead } from "./roles/architect.js";
export { Assigned, type Developer, Failed } from "./roles/developer.js";
export type { Reviewer } from "./roles/reviewer.js";
export { Delegated } from "./work/delegated.js";
export { Delegation } from "./work/delegation.js";
export { type Delivery, Ended, Incomplete, type Order, Rejected, Undone, Unreviewed } from "./work/delivery.js";
export { type Contract, fulfilled, Job, partial, type Result, result, skipped } from "./work/job.js";
export { Actor, broadcast, Topic } from "./work/postman.js";
export type { ServeOptions, Skill, Skills } from "./work/serving.js";
export type { Identity } from "./work/session.js";
export { inWords, SessionTask } from "./work/sessiontask.js";
export type { Worker } from "./work/worker.js";
export type { Notice, ShutdownNotice, TaskNotice } from "./connection/inbox.js";
export { type DeliveryError, Sent, Undelivered } from "./connection/sent.js";
export type { Options } from "./connection/waiting.js";
export type * from "./wire/documents.js";
export { timestamp } from "./wire/envelope.js";
export {
  Again, Cancelled, Closed, type Code, type Details, Fatal, Reason, Refused, Shutdown, spoken, Torn, Unfinished, Unsaid, Withdrawn,
} from "./wire/errors.js";
export { Fault, FaultCode, type FaultOptions, type TaskFault } from "./wire/fault.js";
export { type Document, type Heard, Members, Raw } from "./wire/json.js";
export type { AgentIdentifier, Said } from "./wire/said.js";
export * from "./wire/sessions.js";
export type { DelegateTask, TaskPriority, TaskRequest } from "./wire/taskrequest.js";
export type {
  Artifact, ResponseMetadata, ResponseStatus, TaskAsks, TaskCompleted, TaskFailed, TaskGivenUp, TaskOption, TaskPending, TaskResponse,
} from "./wire/taskresponse.js";
