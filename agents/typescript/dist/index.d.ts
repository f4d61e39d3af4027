import { Readable, Writable } from 'node:stream';

/** Options of a wait. */
export interface Options {
	/** Ends the wait, which fails with the signal's reason. */
	signal?: AbortSignal | undefined;
}
/**
 * A JSON value as its text, which is sent as it came, digit for digit. A Raw may replace any value
 * to send.
 */
export declare class Raw {
	readonly text: string;
	/** The text must be one JSON value. It is put on one line. */
	constructor(text: string);
	/** Returns the value as JSON.parse does: numbers keep only the digits that JavaScript has. */
	value<T = unknown>(): T;
	/**
	 * Returns the value at a path of keys and list indexes, or undefined. Of duplicate keys the last
	 * one counts, as for JSON.parse.
	 */
	at(...path: (string | number)[]): Raw | undefined;
	/** Returns the members of an object, in their order. Other values have none. */
	members(): Members;
	/** Returns the items of a list. Other values have none. */
	items(): Raw[];
	toString(): string;
}
/** The members of an object, with their keys. */
export declare class Members {
	readonly all: (readonly [
		key: string,
		value: Raw
	])[];
	constructor(text: string);
	/** Returns the values under a key. */
	of(key: string): Raw[];
}
/** Any object. A Raw is sent digit for digit. */
export type Document = {
	[key: string]: unknown;
} | Raw;
/** A value that was read from a line, with its text as raw. */
export type Heard<T> = T & {
	readonly raw: Raw;
};
/** The work to do for a task. */
export interface TaskInput {
	/** The id of the task, unique among all tasks. */
	task_id: string;
	/** The work to do, for people. */
	task_description: string;
	/** The context of the task. */
	context: InputContext;
	/** The constraints of the work. */
	constraints: InputConstraints;
	/** The conditions under which the task counts as done. */
	acceptance_criteria: string[];
}
/** What to read before the work on a task begins. */
export interface InputContext {
	/** The specifications of the task. */
	specs: ContextFile[];
	/** Files to read before the work begins. */
	reference_files: ContextFile[];
	/** The previous attempts. */
	previous_attempts?: Attempt[];
}
/** The limits of the work on a task. */
export interface InputConstraints {
	/**
	 * Patterns of the files that may be created, modified or deleted. With an empty list no file may
	 * be changed.
	 */
	scope: string[];
	/** Whether the tests must be run. */
	testing_required: boolean;
	/**
	 * The features that must continue to work. Unless the session is strict, the member may be
	 * missing.
	 */
	must_not_break: string[];
	/** Where the style guide is. */
	style_guide?: string;
}
/** A file to read. */
export interface ContextFile {
	/** The path of the file. */
	path: string;
	/** Why the file is worth reading. */
	reason: string;
	/** The relevant parts of the file; all of it when they are missing. */
	sections?: string[];
}
/** The outcome of an earlier attempt at a task. */
export interface Attempt {
	/** The number of the attempt. */
	attempt_number: number;
	/** The outcome of the attempt. */
	outcome: string;
	/** The feedback on the attempt. */
	feedback: string;
}
/** The tasks that a task waits for. */
export interface TaskDependency {
	/** The task that waits; the assigned task when it is missing. */
	task_id?: string;
	/** The tasks that it waits for. */
	depends_on: string[];
	/**
	 * hard: the task waits until they are done. soft: the task does not wait, and its developer gets
	 * their results later.
	 */
	dependency_type: "hard" | "soft";
}
/** An architect assigns a task to a developer. */
export interface Assignment {
	/** The task. */
	task: TaskInput;
	/** The priority of the task. */
	priority: "high" | "medium" | "low";
	/**
	 * When the task should be done: an ISO 8601 time. It is advisory: the work continues after it.
	 */
	deadline?: string;
	/** The maximum number of reviews of the task. The default is the maximum of the session. */
	max_iterations?: number;
	/** The tasks that the task waits for. An extension of the published protocol. */
	dependencies?: TaskDependency[];
}
/** A developer reports the progress of a task. */
export interface Progress {
	/** The id of the task. */
	task_id: string;
	/** The progress, from 0 to 100; 1 is one percent. */
	progress_percent: number;
	/** The current step of the developer. */
	current_step: string;
	/** The files that were changed so far. */
	files_modified_so_far: string[];
	/** The estimated remaining time, in free words. */
	estimated_remaining?: string;
	/** The obstacles to the work. */
	blockers?: string[];
}
/** A changed file. */
export interface FileChange {
	/** The path of the file. */
	path: string;
	/** The kind of change. A kind that does not match its list causes a warning. */
	change_type: "created" | "modified" | "deleted";
	/** The number of added lines. */
	lines_added?: number;
	/** The number of removed lines. */
	lines_removed?: number;
	/** The change in the file. */
	description?: string;
}
/** The changed files. */
export interface FileChanges {
	/** The new files. */
	files_created: FileChange[];
	/** The modified files. */
	files_modified: FileChange[];
	/** The deleted files. */
	files_deleted: string[];
}
/** The developer's own checks. */
export interface SelfReview {
	/** Whether the tests ran. */
	tests_run: boolean;
	/** Whether they passed. */
	tests_passed: boolean;
	/** Whether the type check passed. */
	type_check_passed: boolean;
	/** The known problems. */
	known_issues?: string[];
}
/** How a task failed. */
export interface TaskExecutionError {
	/** The id of the task again. */
	task_id: string;
	/**
	 * timeout: the work took too long. exception: an unexpected error. scope_violation: a file
	 * outside the scope was changed. resource_limit: a resource ran out.
	 */
	error_type: "timeout" | "exception" | "scope_violation" | "resource_limit";
	/** The error in words. */
	error_message: string;
	/** Whether another try may succeed. */
	recoverable: boolean;
	/** The suggested action: try again, reassign the task, abort it, or ask a person. */
	suggested_action: "retry" | "reassign" | "abort" | "manual";
}
/** A developer reports the end of the work on a task, even if it failed. */
export interface Completion {
	/** The id of the task. */
	task_id: string;
	/**
	 * Whether all of the work is done (completed), part of it (partial), or nothing useful (failed).
	 */
	status: "completed" | "partial" | "failed";
	/** The changed files. */
	changes: FileChanges;
	/** A summary of the work. */
	summary: string;
	/** Notes on the implementation. */
	implementation_notes?: string;
	/** The developer's own checks. */
	self_review: SelfReview;
	/** Why the task is not completed. */
	blockers?: string[];
	/** Suggestions for improvements. */
	suggestions?: string[];
	/**
	 * The failure of the work. An extension of the published protocol. An invalid error is ignored
	 * with a note.
	 */
	error?: TaskExecutionError;
}
/** The files and changes to review. */
export interface ReviewScope {
	/** The files. */
	files: string[];
	/** The topics of the review. */
	focus_areas: ("security" | "performance" | "style" | "logic" | "error_handling" | "test_coverage")[];
	/** Patterns of files to ignore. */
	ignore_patterns?: string[];
}
/**
 * A command that the architect suggests. The package never runs it; the author of the reviewer
 * decides whether and where to run it.
 */
export interface CustomCheck {
	/** The name of the check. */
	name: string;
	/** The command for the reviewer. The orchestrator does not run it. */
	command: string;
	/** The exit code of a passed check. */
	expected_exit_code: number;
}
/**
 * The checks that the work has to pass. The package never runs the custom checks: they are text of
 * the architect.
 */
export interface ReviewCriteria {
	/** Whether the tests must pass. */
	must_pass_tests: boolean;
	/** Whether the type check must pass. */
	must_pass_type_check: boolean;
	/** Whether the linter must pass. */
	must_pass_lint?: boolean;
	/** Other checks that must pass. */
	custom_checks?: CustomCheck[];
}
/** The outcome of an earlier review. */
export interface ReviewSummary {
	/** The number of the review. */
	review_number: number;
	/** The verdict of the review. */
	verdict: string;
	/** The main findings. */
	key_findings: string[];
}
/** The context of the review. */
export interface ReviewContext {
	/** The work to review. */
	task_description: string;
	/** The conditions under which the task counts as done. */
	acceptance_criteria: string[];
	/** The previous reviews. */
	previous_reviews?: ReviewSummary[];
}
/** An architect asks a reviewer to review the work on a task. */
export interface ReviewRequest {
	/** The id of the review, unique among all reviews. */
	review_id: string;
	/** The id of the task. */
	task_id: string;
	/** The files and changes to review. */
	scope: ReviewScope;
	/** The criteria for an approval. */
	criteria: ReviewCriteria;
	/** The context of the review. */
	context: ReviewContext;
}
/** The place of the finding. */
export interface Location {
	/** The file. */
	file: string;
	/** The first line. */
	line_start?: number;
	/** The last line; not less than line_start. */
	line_end?: number;
	/** The code at that place. */
	code_snippet?: string;
}
/** A defect that the reviewer found. */
export interface Finding {
	/** The id of the finding, unique in the result. */
	finding_id: string;
	/** The severity of the finding. */
	severity: "critical" | "major" | "minor" | "suggestion";
	/** The category of the finding. */
	category: "bug" | "security" | "performance" | "style" | "logic" | "test";
	/** The place of the finding. */
	location: Location;
	/** The description of the finding. */
	description: string;
	/** Why the finding matters. Unless the session is strict, it may be missing. */
	rationale: string;
	/** A suggestion for an improvement. */
	suggestion?: string;
	/** The iteration that fixed the finding. A fixed finding does not prevent an approval. */
	fixed_in_iteration?: number;
}
/** The result of a check. */
export interface CheckResult {
	/** Whether the check passed. */
	passed: boolean;
	/** The output of the check. */
	output?: string;
	/** The error of the check. */
	error?: string;
}
/** The results of the checks. */
export interface Verification {
	tests: CheckResult;
	type_check: CheckResult;
	lint?: CheckResult;
	/**
	 * The results of the custom checks of the request, by name. Unless the session is strict, it may
	 * be missing.
	 */
	custom: {
		[name: string]: CheckResult;
	};
}
/** A change that the reviewer requires. */
export interface RequiredChange {
	/** The id of the change. */
	change_id: string;
	/** The priority of the change. */
	priority: "must_fix" | "should_fix" | "consider";
	/** The ids of the findings that the change fixes. */
	related_findings: string[];
	/** The change to make. */
	description: string;
}
/** A reviewer reports the result of a review. */
export interface ReviewResult {
	/** The id of the review. */
	review_id: string;
	/** The id of the task. */
	task_id: string;
	/**
	 * Whether the work is right (approved), needs changes (changes_requested), or must be planned
	 * again (rejected). It cannot be approved while a critical or major finding is open, or a check
	 * has not passed.
	 */
	verdict: "approved" | "changes_requested" | "rejected";
	/** The findings. */
	findings: Finding[];
	/** The results of the checks. */
	verification: Verification;
	/** A summary in one line. */
	summary: string;
	/** The changes that the reviewer requires. */
	required_changes?: RequiredChange[];
	/** The strengths of the work. */
	commendations?: string[];
}
/** An agent gives feedback to another agent. */
export interface Feedback {
	/** The kind of feedback. */
	feedback_type: "clarification" | "correction" | "guidance" | "question";
	/** The subject. */
	subject: string;
	/** The text of the feedback. */
	content: string;
	/** Whether an action is required. */
	action_required: boolean;
	/** The id of the task that the feedback is about. */
	related_task_id?: string;
}
/** Asks an agent for its status. Other members are not read. */
export interface StatusQuery {
	/** The id of the task; all tasks when it is missing. */
	task_id?: string;
}
/** Ends a task or the session. */
export interface Abort {
	/** Whether it ends a task or the session. */
	scope: "task" | "session";
	/** The id of the task, or of the session. */
	target_id: string;
	/** The reason. */
	reason: string;
	/** Whether the agent that did the work must clean up. */
	cleanup_required: boolean;
}
export declare const messageTypes: readonly [
	"task_assignment",
	"task_progress",
	"task_completion",
	"review_request",
	"review_result",
	"feedback",
	"status_query",
	"status_response",
	"abort",
	"acknowledgment"
];
export type MessageType = (typeof messageTypes)[number];
export declare const agentTypes: readonly [
	"architect",
	"developer",
	"reviewer"
];
export type AgentType = (typeof agentTypes)[number];
/** The urgency of an assignment. */
export declare const priorities: readonly [
	"high",
	"medium",
	"low"
];
export type SessionPriority = (typeof priorities)[number];
/** A hard dependency must be done first; a soft one does not block. */
export declare const dependencyTypes: readonly [
	"hard",
	"soft"
];
export type SessionDependencyType = (typeof dependencyTypes)[number];
/** The outcome of a task. */
export declare const outcomes: readonly [
	"completed",
	"partial",
	"failed"
];
export type Outcome = (typeof outcomes)[number];
/** The kind of a change to a file. */
export declare const changeTypes: readonly [
	"created",
	"modified",
	"deleted"
];
export type ChangeType = (typeof changeTypes)[number];
/** What a review should focus on. */
export declare const focusAreas: readonly [
	"security",
	"performance",
	"style",
	"logic",
	"error_handling",
	"test_coverage"
];
export type FocusArea = (typeof focusAreas)[number];
/**
 * The verdict of a review. With changes_requested the task is revised; if it is rejected, it has to
 * be planned again.
 */
export declare const verdicts: readonly [
	"approved",
	"changes_requested",
	"rejected"
];
export type Verdict = (typeof verdicts)[number];
/** The severity of a finding. */
export declare const severities: readonly [
	"critical",
	"major",
	"minor",
	"suggestion"
];
export type Severity = (typeof severities)[number];
/** The category of a finding. */
export declare const categories: readonly [
	"bug",
	"security",
	"performance",
	"style",
	"logic",
	"test"
];
export type Category = (typeof categories)[number];
/** The priority of a required change. */
export declare const fixes: readonly [
	"must_fix",
	"should_fix",
	"consider"
];
export type Fix = (typeof fixes)[number];
export declare const feedbackTypes: readonly [
	"clarification",
	"correction",
	"guidance",
	"question"
];
export type FeedbackType = (typeof feedbackTypes)[number];
/** The scope of an abort. */
export declare const abortScopes: readonly [
	"task",
	"session"
];
export type AbortScope = (typeof abortScopes)[number];
/** The payloads by message type. */
export interface Payloads {
	task_assignment: Assignment;
	task_progress: Progress;
	task_completion: Completion;
	review_request: ReviewRequest;
	review_result: ReviewResult;
	feedback: Feedback;
	status_query: StatusQuery;
	/** Any object. The roles send a Status. */
	status_response: {
		[key: string]: unknown;
	};
	abort: Abort;
	acknowledgment: {
		[key: string]: unknown;
	};
}
/**
 * A document to send, in which members may be missing. They become empty lists, "" or false; the
 * session rejects a document that lacks a required value.
 */
export type Loose<T> = T extends readonly (infer Item)[] ? Loose<Item>[] : T extends object ? {
	[K in keyof T]?: Loose<T[K]> | undefined;
} : T;
/** Returns dependencies on tasks that must be done first. */
export declare function after(...tasks: string[]): TaskDependency[];
/** Returns the paths of all files in the changes of a completion. */
export declare function touched(changes: Completion["changes"]): string[];
/** The answer of a developer or reviewer to a status query. */
export interface Status {
	status: "idle" | "busy";
	tasks: TaskProgress[];
}
/** The status of one task. */
export interface TaskProgress {
	task_id: string;
	/** From 0 to 100. */
	progress_percent: number;
	current_step: string;
}
/** Identifies an agent in a session. */
export interface AgentIdentifier {
	agent_id: string;
	agent_type: AgentType;
	instance_id?: string;
}
/** A session message from another agent. The message and its payload have their texts as raw. */
export type Said<T extends MessageType = MessageType> = {
	[K in T]: Heard<Message<K>>;
}[T];
interface Message<T extends MessageType> {
	message_id: string;
	timestamp: string;
	/** Its position in the session, as far as the sender knows. */
	sequence_number?: number;
	from_agent: AgentIdentifier;
	to_agent: AgentIdentifier;
	message_type: T;
	payload: Heard<Payloads[T]>;
	/** The id that related messages share. */
	correlation_id?: string;
	/** The message_id of the message that it answers. */
	reply_to?: string;
	session_id?: string;
}
/** The state of a task. The last three are final. */
export type TaskState = "pending" | "assigned" | "planning" | "plan_review" | "running" | "needs_human" | "in_review" | "verifying" | "done" | "failed" | "cancelled";
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
export interface TaskTrace<Baggage = {
	[key: string]: unknown;
}> {
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
	payload?: {
		[key: string]: any;
	};
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
	structured_spec?: {
		[key: string]: any;
	};
	/** The demands of the task on an agent: a requirements document. */
	requirements?: {
		[key: string]: any;
	};
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
	plan?: {
		[key: string]: any;
	} | string;
	/** The objections to the plan. */
	planFeedback?: string;
	/** The last question of the agent to a person. */
	help?: Help;
	/** The usage of coding agents for the task, in the answer to get-task. */
	used?: {
		input?: number;
		output?: number;
		cost?: number;
		currency?: string;
	};
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
	artifacts?: {
		name: string;
		type: string;
		size?: number;
		ref?: string;
	}[];
	/** The commands that must succeed before the task is done, besides the commands of its agent. */
	verify?: string[][];
	/** How often its verification has failed. */
	unverified?: number;
	/** The task block of the configuration that declares the task. */
	block?: string;
	/** The workspace of the task, if it has one. */
	workspace?: {
		path: string;
		commit?: string;
		host?: string;
		branch?: string;
		base?: string;
		began?: string;
		merge?: "waiting" | "refused" | "merged" | "unchanged" | "left";
	};
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
	resolved_inputs?: {
		[key: string]: any;
	};
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
	options?: (string | {
		label?: string;
		value: string;
	})[];
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
	metadata: {
		answeredAt?: string;
	};
}
/** The question to withdraw. It has one of the two ids. */
export interface WithdrawQuestion {
	/** The id of the question. */
	questionId?: string;
	/** The id of your request that asked it. */
	requestId?: string;
}
interface Withdrawn {
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
	repos?: {
		[name: string]: {
			path?: string;
			languages?: string[];
			tools?: string[];
		};
	};
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
	repos: {
		[key: string]: any;
	};
	/** The reported capabilities: a capabilities document; null if none are reported. */
	capabilities: Capabilities | null;
	/** Information about the machine, as reported. */
	system?: {
		[key: string]: any;
	};
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
	payload: {
		[key: string]: any;
	};
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
/** A task to deliver: completed and, with a reviewer, approved. */
export interface Order {
	developer: string;
	/** Without a reviewer, a completion is enough. */
	reviewer?: string | undefined;
	assignment: Loose<Assignment>;
	/** Missing members are taken from the task. */
	review?: Loose<ReviewRequest> | undefined;
	/** Returns the id of an attempt, from the second on. Without it the task keeps its id. */
	rename?(attempt: number): string;
}
/** The outcome of an order. */
export interface Delivery {
	/** The id of the last attempt that was reviewed, or of the first. */
	taskId: string;
	/** The last one. */
	completion: Completion | undefined;
	/** The last one; undefined if there was none. */
	review: ReviewResult | undefined;
	/** The number of reviews. */
	reviews: number;
	/** Accepted although the last review did not approve it. */
	forced: boolean;
}
/** A task has ended, or waits for a person, without the result that the architect waits for. */
export declare class Ended extends Error {
	name: string;
	readonly taskId: string;
	/** Undefined if unknown. */
	readonly state: TaskState | undefined;
	readonly why: string;
	constructor(taskId: string, state: TaskState | undefined, why: string);
}
/** The developer has not completed the task. */
export declare class Incomplete extends Error {
	name: string;
	constructor();
}
/** The reviewer has rejected the task. */
export declare class Rejected extends Error {
	name: string;
	constructor();
}
/** The reviewer cannot review the task. */
export declare class Unreviewed extends Error {
	name: string;
	constructor(why: string);
}
/** A task was not delivered. The cause is the reason. */
export declare class Undone extends Error {
	name: string;
	/** The delivery so far. */
	readonly delivery: Delivery;
	readonly cause: unknown;
	constructor(delivery: Delivery, cause: unknown);
}
/** The code of a refusal, for programs. The list is complete. */
export type Code = "INVALID_REQUEST" | "INVALID_MESSAGE_TYPE" | "UNAUTHORIZED" | "NOT_FOUND" | "TIMEOUT" | "INTERNAL_ERROR";
/** The details of a refusal, such as a reason, or the place of an error. */
export type Details = {
	[key: string]: unknown;
};
/** Reasons for refusals that share a code. */
export declare const Reason: {
	/** Too many messages; retry later. */
	readonly Limited: "rate_limited";
	/** Conflicts with the current state. */
	readonly Conflict: "conflict";
	/** The task is in the wrong state, for example ended. */
	readonly WrongState: "wrong_state";
	/** The task waits for others. */
	readonly Blocked: "blocked";
};
interface Refusal {
	code: Code;
	message: string;
	details?: Heard<Details> | undefined;
}
/** The error of a refused request. Its message is that of the orchestrator. */
export declare class Refused extends Error {
	name: string;
	readonly code: Code;
	/** An object with its text as raw. */
	readonly details: Heard<Details> | undefined;
	/** The refused operation, such as "get-task". */
	readonly operation: string | undefined;
	constructor(why: Refusal, operation?: string);
	/** The reason in the details, or "". */
	get reason(): string;
	/**
	 * The milliseconds to wait before the same is sent again; 0 if the refusal does not say. A refusal
	 * with Reason.Limited has it.
	 */
	get retryAfter(): number;
	/** The operation, the message and the code. */
	get spoken(): string;
}
/** The message is invalid, so it was not sent. */
export declare class Unsaid extends Error {
	name: string;
}
/**
 * The orchestrator has closed the stream. If asked is true, the request was sent and may have been
 * carried out. Otherwise it has no effect.
 */
export declare class Closed extends Error {
	name: string;
	readonly asked: boolean;
	constructor(message: string, asked: boolean, cause?: unknown);
}
/** Writing to the orchestrator failed. Nothing more is written. */
export declare class Torn extends Error {
	name: string;
}
/**
 * A task was cancelled. It is the reason of a handler's signal, and the error of delegated work.
 */
export declare class Cancelled extends Error {
	name: string;
	/** Why it was cancelled. */
	readonly reason: string;
	constructor(reason: string, cause?: unknown);
}
/** The reason of a handler's signal when the agent has to shut down. */
export declare class Shutdown extends Error {
	name: string;
	constructor();
}
/** The reason of a developer's signal when its task was assigned again. */
export declare class Again extends Error {
	name: string;
	constructor();
}
/** A question about a task gets no answer: the task went on without it. */
declare class Withdrawn$1 extends Error {
	name: string;
	constructor();
}
/**
 * Some tasks were given up because the agent has to shut down. The agent must exit with a failure,
 * because a successful exit may complete them.
 */
export declare class Unfinished extends Error {
	name: string;
	readonly tasks: number;
	constructor(tasks: number, cause: unknown);
}
/** Thrown by a mail function if retrying a message cannot help. The code is for programs. */
export declare class Fatal extends Error {
	name: string;
	readonly code: string;
	constructor(code: string, message: string, options?: ErrorOptions);
}
/** Returns the text of an error. For a refusal it includes the code. */
export declare function spoken(error: unknown): string;
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
export declare class Undelivered extends Refused {
	name: string;
	readonly details: Heard<Details & Partial<DeliveryError>> | undefined;
	get spoken(): string;
	/**
	 * The patterns of the files that a task may change; undefined if the message was refused for
	 * another reason.
	 */
	get scope(): string[] | undefined;
}
/**
 * A session message that the agent has sent. Delivery is never confirmed; a failure is reported
 * sooner or later.
 */
export declare class Sent {
	#private;
	readonly messageId: string;
	readonly correlationId: string;
	readonly sequenceNumber: number;
	/**
	 * Resolves to the reason when the message will not be delivered. It stays pending while delivery
	 * is retried.
	 */
	readonly refused: Promise<Undelivered>;
	/** Why the message will not be delivered, or undefined while that is not known. */
	get error(): Undelivered | undefined;
}
/** An unsolicited message from the orchestrator. */
export type Notice = {
	[N in keyof NoticePayloads]: NoticeOf<N, Heard<NoticePayloads[N]>>;
}[keyof NoticePayloads];
interface NoticeOf<N, P> {
	/** Without its prefix. There may be other names. */
	name: N;
	/** "" if missing. */
	id: string;
	timestamp: string;
	/** An empty object if missing. */
	payload: P;
}
interface NoticePayloads {
	"task-assigned": TaskNotice;
	"task-cancelled": TaskNotice;
	/** Something is new about a task that the agent has. */
	"task-updated": TaskNotice;
	/** There is mail for the agent. */
	message: Mail;
	/** A person interrupts what the agent does. It need not have a task. */
	interrupt: Partial<TaskNotice>;
	shutdown: ShutdownNotice;
}
/** The payload of a notice about a task. */
export interface TaskNotice {
	taskId: string;
	message?: string;
	reason?: string;
}
/** The payload of the shutdown notice. */
export interface ShutdownNotice {
	/** Milliseconds. */
	gracePeriod: number;
	reason: string;
}
declare abstract class Operations {
	/** Sends a request for any operation. */
	abstract ask<T = {
		[key: string]: unknown;
	}>(operation: string, payload?: unknown, options?: Options): Promise<Heard<T>>;
	/** Sends any event. */
	abstract tell(event: string, payload?: unknown): Promise<void>;
	/**
	 * List agents, by role, status or capabilities. You are one of them. Without a payload the answer
	 * lists all agents.
	 */
	queryAgents(query?: QueryAgents, options?: Options): Promise<Heard<Heard<Agent>[]>>;
	/**
	 * List the tasks that you submitted or that are assigned to you. The oldest task comes first. The
	 * list leaves out description, payload and result, which can be large; get-task has them.
	 */
	queryTasks(query?: QueryTasks, options?: Options): Promise<Heard<Heard<Task>[]>>;
	/**
	 * Submit a task for an idle agent with the role and the capabilities that it requires. The task
	 * waits until every task that it depends on is done, and until an agent that fits is idle.
	 */
	submitTask(task: SubmitTask, options?: Options): Promise<Heard<Task>>;
	/**
	 * Show a task in full. The answer has the description, the payload, the progress and, when the
	 * task is done, the result.
	 *
	 * @param taskId The id of the task.
	 */
	getTask(taskId: string, options?: Options): Promise<Heard<Task>>;
	/**
	 * Ask a person a question and wait for the answer. The response arrives when the person answers,
	 * or with TIMEOUT. You can send other requests while you wait. An option may be a text.
	 */
	askUser(question: AskUser, options?: Options): Promise<Heard<UserAnswer>>;
	/**
	 * Start a task that is assigned to you, or take one of yours that has no agent. The request is
	 * optional: a task starts by itself when its agent has been notified.
	 *
	 * @param taskId The id of the task.
	 */
	startTask(taskId: string, options?: Options): Promise<Heard<Task>>;
	/**
	 * Complete a task with its result.
	 *
	 * @param taskId The id of the task.
	 * @param result The result for the submitter: any value; {"success":true} when it is missing.
	 *   An object with a $schema must be a task-result document: its contracts go to the tasks that
	 *   need them.
	 * @param artifacts Other products: each has a name, and one of content, path and ref.
	 */
	completeTask(taskId: string, result?: unknown, artifacts?: {
		name?: string;
		type?: string;
		content?: string;
		path?: string;
		ref?: string;
	}[], options?: Options): Promise<Heard<Task>>;
	/**
	 * Fail a task with the reason. Tasks that depend on it are cancelled, unless the configuration
	 * keeps them.
	 *
	 * @param taskId The id of the task.
	 * @param error The reason.
	 */
	failTask(taskId: string, error: string, options?: Options): Promise<Heard<Task>>;
	/**
	 * Cancel a task that you submitted and tell its agent. The task must not have ended.
	 *
	 * @param taskId The id of the task.
	 * @param reason The reason, for the agent of the task.
	 */
	cancelTask(taskId: string, reason?: string, options?: Options): Promise<Heard<Task>>;
	/**
	 * Retry a failed or cancelled task. The task is pending again, with its history. Tasks that were
	 * cancelled because of it are pending again as well.
	 */
	retryTask(retry: RetryTask, options?: Options): Promise<Heard<Task>>;
	/**
	 * Show the task that you work on. If you have several, it is the one that started first; if none
	 * has started, the one that was assigned first. An agent without a task is refused with
	 * NOT_FOUND.
	 */
	currentTask(options?: Options): Promise<Heard<Task>>;
	/**
	 * Report your activity on a task, with or without the progress. The same as event:progress, for
	 * programs that do not write lines. The method progress sends that event.
	 */
	reportProgress(progress: ReportProgress, options?: Options): Promise<Heard<Task>>;
	/**
	 * Give a task back to the queue. It does not count as an attempt.
	 *
	 * @param taskId The id of the task.
	 * @param reason Why you give the task back.
	 * @param after When an agent may get the task again, in ISO 8601: for example, the end of a
	 *   limit. A request can still assign it before that time.
	 */
	returnTask(taskId: string, reason: string, after?: string, options?: Options): Promise<Heard<Task>>;
	/**
	 * Ask a person whether a tool may be used, and wait for the answer. The answer has the id of the
	 * choice. A choice of the kind allow_session or allow_always is remembered: the same tool with
	 * the same input is then answered at once. The question is withdrawn when its task ends, is given
	 * back or goes to another agent, and when your run ends.
	 */
	askPermission(permission: AskPermission, options?: Options): Promise<Heard<UserAnswer>>;
	/**
	 * Withdraw a question of yours that no longer needs an answer. The request that asked the
	 * question gets an error.
	 */
	withdrawQuestion(question: WithdrawQuestion, options?: Options): Promise<Heard<Withdrawn>>;
	/**
	 * Change the text, the documents or the priority of a task. The task must not have ended. Allowed
	 * for the submitter and for planners.
	 */
	updateTask(change: UpdateTask, options?: Options): Promise<Heard<Task>>;
	/**
	 * Assign a task to an agent, which may have to submit a plan first. The agent need not fit the
	 * requirements. It is notified and starts the task itself. Allowed for the submitter and for
	 * planners.
	 */
	assignTask(assignment: AssignTask, options?: Options): Promise<Heard<Task>>;
	/**
	 * Assign a task to the agent that fits its requirements best. The agent starts the task itself.
	 * If no agent fits, the status of the answer is no_match.
	 *
	 * @param taskId The id of the task.
	 */
	autoAssign(taskId: string, options?: Options): Promise<Heard<AutoAssigned>>;
	/**
	 * Show how each agent fits the requirements of a task. The answer gives the reasons. Nothing is
	 * assigned. The best fit comes first.
	 *
	 * @param taskId The id of the task.
	 */
	matchAgents(taskId: string, options?: Options): Promise<Heard<Heard<Match>[]>>;
	/** List the tasks that are assigned to you and not started. The answer has the tasks in full. */
	pollTasks(options?: Options): Promise<Heard<Heard<Task>[]>>;
	/**
	 * List the tasks that are assigned to a session and not started. Only planners may ask for other
	 * sessions.
	 *
	 * @param sessionId The session: the name of an agent, its server_id, or the id of its run. The
	 *   default is your own.
	 */
	checkTasks(sessionId?: string, options?: Options): Promise<Heard<Heard<Task>[]>>;
	/**
	 * Ask a person for help with a task. The task waits. When a person answers, you get
	 * notify:task-updated, and the task has the answer. This returns without waiting; the method help
	 * of a job waits for the answer.
	 *
	 * @param taskId The id of the task.
	 * @param question The question.
	 * @param context Further facts about the question: any value.
	 */
	requestHelp(taskId: string, question: string, context?: unknown, options?: Options): Promise<Heard<Task>>;
	/**
	 * Submit the plan that a task requires. The task is in the state planning. Its agent may start
	 * when the plan is approved.
	 *
	 * @param taskId The id of the task.
	 * @param plan The plan: an object or a text.
	 */
	submitPlan(taskId: string, plan: object | string, options?: Options): Promise<Heard<Task>>;
	/**
	 * Approve the plan of a task. Its agent may start. An agent cannot approve its own plan.
	 *
	 * @param taskId The id of the task.
	 */
	approvePlan(taskId: string, options?: Options): Promise<Heard<Task>>;
	/**
	 * Reject the plan of a task with feedback. The agent must submit another plan. An agent cannot
	 * reject its own plan.
	 *
	 * @param taskId The id of the task.
	 * @param feedback The objections to the plan.
	 */
	revisePlan(taskId: string, feedback: string, options?: Options): Promise<Heard<Task>>;
	/**
	 * Add a dependency to a task. The task must not have started. A dependency that closes a cycle is
	 * refused.
	 */
	addDependency(taskId: string, on: Dependency, options?: Options): Promise<Heard<Link>>;
	/**
	 * Remove a dependency from a task. A task without other open dependencies may start.
	 *
	 * @param taskId The id of the task that depends on another one.
	 * @param dependencyId The id of the dependency, or of the task that it names.
	 */
	removeDependency(taskId: string, dependencyId: string, options?: Options): Promise<Heard<Link>>;
	/** Add a note to a task. Everyone who may see the task can read the note. */
	addNote(note: AddNote, options?: Options): Promise<Heard<Note>>;
	/**
	 * List the notes of a task, oldest first.
	 *
	 * @param taskId The id of the task.
	 */
	listNotes(taskId: string, options?: Options): Promise<Heard<Heard<Note>[]>>;
	/**
	 * Replace your advertised capabilities and refresh your presence. Members that are missing keep
	 * their values. Without any member, the request only refreshes your presence.
	 */
	updateCapabilities(now: UpdateCapabilities, options?: Options): Promise<Heard<Server>>;
	/**
	 * List all agents with their capabilities and presence. The list is in the terms of the hub,
	 * where agents are servers.
	 */
	servers(options?: Options): Promise<Heard<Heard<Server>[]>>;
	/**
	 * Send a message to an actor, or as GO to all. The message is kept unchanged until the recipient
	 * reads it. An agent can print the payload as a line, with a from_actor. The answer is then only
	 * the message.
	 */
	sendMessage(mail: SendMessage, options?: Options): Promise<Heard<SentMail>>;
	/**
	 * Read your messages after your cursor, or after any number, in order. Reading removes nothing: a
	 * message that is not acknowledged is returned again.
	 */
	pollMessages(query?: PollMessages, options?: Options): Promise<Heard<MailList>>;
	/**
	 * Acknowledge your messages up to a number and move your cursor there. poll-messages continues
	 * after that number. A lower number than before changes nothing.
	 *
	 * @param seq The number of the last message that you have handled.
	 */
	ackMessages(seq: number | bigint | Raw, options?: Options): Promise<Heard<Acked>>;
	/**
	 * Announce that you are present for the next minute. An agent that has sent one heartbeat must
	 * send one each minute. GO is alerted when none comes for three minutes.
	 */
	heartbeat(options?: Options): Promise<Heard<Beat>>;
	/**
	 * Report the usage of a turn, or of one request to a model. Usage is added up by agent and by
	 * task.
	 */
	reportUsage(usage: Usage): Promise<void>;
	/** Report the conversation of your program. Your next run gets its id in ORC_CONVERSATION. */
	reportConversation(conversation: Conversation): Promise<void>;
	/**
	 * Report your current activity, for people. It is not recorded. While you wait for a person, your
	 * silence does not count.
	 */
	reportTurn(turn: Turn): Promise<void>;
	/**
	 * Report that you cannot work for a time, usually because of a limit of your vendor. You get no
	 * task until then. Give your current task back with return-task.
	 */
	reportLimit(limit: Limited): Promise<void>;
	/** Report that your model has a bus message, or that your program refused it. */
	reportReceipt(receipt: Receipt): Promise<void>;
}
declare class Stream extends Operations {
	#private;
	constructor(input: Readable, output: Writable);
	/**
	 * Waits until the orchestrator's stream has ended and all messages that had to be sent again are
	 * sent. Throws if reading failed.
	 */
	wait(options?: Options): Promise<void>;
	/**
	 * Sends a request for an operation, such as "get-task", and waits for the answer. The answer is
	 * an object, with its text as raw. The payload must be an object; undefined means an empty one.
	 *
	 * Throws Refused if the orchestrator refuses the request. If the signal is aborted first, the
	 * operation may have been carried out; a question to a person is withdrawn, unless the agent has
	 * to shut down. If the stream ends first, asked of Closed reports whether
	 * the request was sent.
	 */
	ask<T = {
		[key: string]: unknown;
	}>(operation: string, payload?: unknown, options?: Options): Promise<Heard<T>>;
	/** Like ask, but returns the undecoded answer. */
	askRaw(operation: string, payload?: unknown, options?: Options): Promise<Raw>;
	/**
	 * Sends an event, such as "progress". Events have no answer, so tell itself validates those of
	 * the protocol and throws Unsaid.
	 */
	tell(event: string, payload?: unknown): Promise<void>;
	/**
	 * Iterates over all notices in order, including those that arrived before the call. An agent that
	 * serves, and has never read notices, keeps only the latest few thousand. Ends when the signal is
	 * aborted, or when the stream has ended and all notices are taken. Each notice goes to one
	 * caller; work and the session roles take them, too.
	 */
	news({ signal }?: Options): AsyncGenerator<Notice, void, void>;
	/**
	 * Iterates over the session messages for the agent, in order, from the first one and each once.
	 * Ends as news does. Each message goes to one caller; the roles of a Session take them, too.
	 */
	talk({ signal }?: Options): AsyncGenerator<Said, void, void>;
	/**
	 * Reports how much of a task is done, from 0 to 1. It does not complete the task; completeTask
	 * does.
	 *
	 * @param output What the agent has so far: any value, up to 64 KiB of JSON. The task shows the
	 *   last one until it is done.
	 */
	progress(taskId: string, fraction: number, message?: string, output?: unknown): Promise<void>;
	/** Writes to the agent's log. The context is an object. */
	log(level: "info" | "warn" | "error", message: string, context?: object): Promise<void>;
	/** Reports an error. An error that is not recoverable fails the task. */
	trouble(taskId: string | undefined, error: unknown, recoverable: boolean): Promise<void>;
	/** Shows people a question without waiting for an answer. The context is an object. */
	wonder(question: string, context?: object): Promise<void>;
}
/** An agent's identity in a session. */
export interface Identity {
	/** Its name; the default is $ORC_AGENT_ID. */
	agent?: string;
	/** The default is $ORC_SESSION_TYPE. */
	type?: AgentType;
	/** The default is $ORC_SESSION. Required only if the agent is in several sessions. */
	session?: string;
}
declare class Member {
	#private;
	readonly conn: Stream;
	readonly identity: Readonly<{
		agent: string;
		type: AgentType;
		session: string;
	}>;
	/**
	 * Returns the same session with a correlation_id for its messages. Answers keep the
	 * correlation_id of the message that they answer.
	 */
	chain(correlationId: string): Member;
	/**
	 * Assigns a task to a developer. Starts a new correlation_id, unless the session comes from
	 * chain.
	 */
	assign(developer: string, work: Loose<Assignment>): Promise<Sent>;
	/** Acknowledges an assignment. */
	acknowledge(said: Said): Promise<Sent>;
	/** Reports progress to the agent that assigned a task. */
	report(said: Said, how: Loose<Progress>): Promise<Sent>;
	/**
	 * Reports the outcome of a task to the agent that assigned it. The default status is completed.
	 */
	complete(said: Said, what: Loose<Completion>): Promise<Sent>;
	/** Asks a reviewer to review a task. */
	requestReview(reviewer: string, what: Loose<ReviewRequest>): Promise<Sent>;
	/** Sends the result of a review to the agent that asked for it. */
	judge(request: Said, result: Loose<ReviewResult>): Promise<Sent>;
	/** Sends feedback to an agent. */
	giveFeedback(to: AgentIdentifier, what: Loose<Feedback>): Promise<Sent>;
	/** Sends feedback to the sender of a message. */
	answer(said: Said, what: Loose<Feedback>): Promise<Sent>;
	/** Asks another agent for its status. */
	askStatus(to: AgentIdentifier, about?: StatusQuery): Promise<Sent>;
	/** Answers a status query with any object. The roles answer by themselves, with a Status. */
	tellStatus(query: Said, status: object): Promise<Sent>;
	/**
	 * Tells an agent that a task or the session is aborted. The default session is the agent's own.
	 */
	abort(to: AgentIdentifier, what: Loose<Abort>): Promise<Sent>;
}
/** A task that an architect has assigned. Only one call at a time may wait for it. */
export declare class SessionTask {
	#private;
	get id(): string;
	/**
	 * Waits for the completion of the task. Throws Undelivered if the assignment is refused, and
	 * Ended if the task has ended without a completion.
	 */
	completion(): Promise<Completion>;
	/**
	 * Has the task reviewed and waits for the result. Missing members of the request are filled in
	 * from the task. Throws the errors of completion, and Unreviewed if the reviewer cannot review
	 * it.
	 */
	review(reviewer: string, request?: Loose<ReviewRequest>): Promise<ReviewResult>;
	/**
	 * Assigns the task to its developer again. The findings of the review are in the description and
	 * in a previous attempt. A new id becomes that of the task.
	 */
	revise(result: ReviewResult, id?: string): Promise<void>;
	/** Aborts the task and wakes the caller that waits for it. */
	abort(reason: string, cleanup?: boolean): Promise<void>;
	/**
	 * Like Architect.deliver, for a task that is already assigned, such as a dependency of the next
	 * one.
	 */
	deliver(order: Order): Promise<Delivery>;
}
/** Returns a finding in one line. */
export declare function inWords(f: Finding): string;
/** Configures Session.lead. Agents that need only do can pass a function instead. */
export interface Lead<T> {
	/**
	 * Assigns tasks and waits for their results. The architect's signal is aborted when the agent has
	 * to shut down.
	 */
	do(architect: Architect): Promise<T>;
	/**
	 * Called with every message, in order, before it is processed. It is the only way to see progress
	 * reports and plain feedback.
	 */
	hear?(said: Said): void;
}
/** Assigns tasks and has them reviewed. Its methods may be called concurrently. */
export declare class Architect {
	#private;
	readonly session: Member;
	/** Aborted with Shutdown or Closed, or for the reason of the signal given to lead. */
	readonly signal: AbortSignal;
	private constructor();
	/**
	 * Returns the task of the session with this id, no matter which agent assigned it. A task that
	 * the caller no longer refers to is forgotten after a few thousand others.
	 */
	task(id: string): SessionTask;
	/** Assigns a task to a developer. Sets a new id if the task has none. */
	assign(developer: string, work: Loose<Assignment>): Promise<SessionTask>;
	/**
	 * Assigns a task, has it reviewed, and has it revised until it is approved. Also returns if the
	 * session accepts the task because it has used up its reviews.
	 *
	 * Throws Undone, which has the delivery so far. Its cause is Incomplete or Rejected if the
	 * developer or the reviewer says so, and Unreviewed if the task cannot be reviewed. It is Ended
	 * if the task was aborted or waits for a person, and Undelivered if a required message was
	 * refused.
	 */
	deliver(order: Order): Promise<Delivery>;
	/** Ends the session for all its members. The message may go to any one of them. */
	abortSession(to: AgentIdentifier, reason: string): Promise<void>;
}
/** Configures Session.develop. Agents that need only do can pass a function instead. */
export interface Developer {
	/**
	 * Does a task and returns its completion. The task's signal is aborted when the task or the
	 * session is aborted, or when the agent has to shut down; do should then return soon. If do
	 * throws, the task has failed. The orchestrator may assign the task again; its previous_attempts
	 * then say what went wrong.
	 */
	do(task: Assigned): Promise<Loose<Completion> | void>;
	/**
	 * Returns a new completion after one was refused because a file outside the scope was changed:
	 * with the file restored, or left out. The refusal has the scope. The task fails if rescope is
	 * missing or throws, or if its completions are refused too often.
	 */
	rescope?(task: Assigned, refused: Undelivered): Promise<Loose<Completion> | void>;
	/** The number of tasks done at a time, 1 by default. Further tasks are acknowledged and wait. */
	capacity?: number | undefined;
	/** Called with every message, in order, before it is processed. */
	hear?(said: Said): void;
	/**
	 * How long a task runs before its progress is reported automatically, and the interval after
	 * that, in milliseconds. The defaults are two minutes and 30 seconds.
	 */
	progressAfter?: number | undefined;
	progressEvery?: number | undefined;
}
/** Thrown by a developer to fail its task and attach a completion with the work done so far. */
export declare class Failed extends Error {
	name: string;
	readonly completion: Loose<Completion>;
	constructor(why: string, completion: Loose<Completion>, options?: ErrorOptions);
}
/** An assignment as its developer holds it. */
export declare class Assigned {
	#private;
	readonly assignment: Assignment;
	/** The message that it came with. */
	readonly said: Said<"task_assignment">;
	/**
	 * Aborted with Cancelled, Again, Shutdown or Closed, or for the reason of the signal given to
	 * develop.
	 */
	get signal(): AbortSignal;
	/** The work to do. */
	get task(): TaskInput;
	/**
	 * Reports to the architect how far the task is, from 0 to 100, its current step, and the files
	 * modified so far. The task goes on.
	 */
	readonly progress: (percent: number, step: string, ...files: string[]) => Promise<void>;
}
/** Configures Session.review. Agents that need only do can pass a function instead. */
export interface Reviewer {
	/**
	 * Reviews what a request asks for. The signal is aborted when the task or the session is aborted,
	 * or when the agent has to shut down; do should then return soon. The request's custom checks are
	 * text of the architect: only do can decide whether to run them. If do throws, there is no
	 * result, and the architect is told why.
	 */
	do(request: Heard<ReviewRequest>, signal: AbortSignal): Promise<Loose<ReviewResult>>;
	/**
	 * Returns a new result after one was refused, for example because it approves despite an open
	 * critical finding. If correct is missing or throws, there is no result.
	 */
	correct?(request: Heard<ReviewRequest>, result: Loose<ReviewResult>, refused: Undelivered, signal: AbortSignal): Promise<Loose<ReviewResult>>;
	/** The number of reviews done at a time, 1 by default. */
	capacity?: number | undefined;
	/** Called with every message, in order, before it is processed. */
	hear?(said: Said): void;
}
/** Work to delegate. Only the type is required. */
export interface DelegateTask {
	/**
	 * The default is a new UUID. Repeating a request with the same id, perhaps after a restart, asks
	 * for the same work.
	 */
	id?: string | undefined;
	/** The name of a capability. */
	type: string;
	payload?: Document | undefined;
	context?: TaskContext | undefined;
	routing?: TaskRouting | undefined;
	observability?: TaskTrace<Document> | undefined;
}
/** A request for delegated work, as the agent received it. Members without a value are left out. */
export interface TaskRequest {
	id: string;
	type: string;
	/** The payload, with its text as raw. */
	payload: Heard<{
		[key: string]: any;
	}>;
	context: TaskContext;
	routing: TaskRouting;
	observability: TaskTrace<Heard<{
		[key: string]: any;
	}>>;
}
declare const taskPriorities: readonly [
	"low",
	"normal",
	"high",
	"urgent"
];
/** The urgency of delegated work; the default is normal. */
export type TaskPriority = (typeof taskPriorities)[number];
/** The error of failed delegated work. */
export interface TaskFault {
	/** One of FaultCode, or another one; the list is open. */
	code: string;
	/** For people. */
	message: string;
	/** An object. */
	details?: {
		[key: string]: any;
	};
	/** A retry may succeed. */
	recoverable: boolean;
}
/** Common codes of faults. */
export declare const FaultCode: {
	readonly InvalidInput: "INVALID_INPUT";
	readonly MissingField: "MISSING_REQUIRED_FIELD";
	readonly FieldType: "INVALID_FIELD_TYPE";
	readonly FieldValue: "INVALID_FIELD_VALUE";
	readonly AgentNotFound: "AGENT_NOT_FOUND";
	/** No agent offers the type. */
	readonly CapabilityNotFound: "CAPABILITY_NOT_FOUND";
	readonly AgentUnavailable: "AGENT_UNAVAILABLE";
	readonly AgentBusy: "AGENT_BUSY";
	readonly MCPNotConnected: "MCP_NOT_CONNECTED";
	readonly MCPAuth: "MCP_AUTH_FAILED";
	readonly MCPRateLimited: "MCP_RATE_LIMITED";
	readonly MCP: "MCP_ERROR";
	readonly Coordination: "COORDINATION_FAILED";
	/** The work would return to an agent that has had it. */
	readonly GraphCycle: "TASK_GRAPH_CYCLE";
	/** The work cannot be delegated. */
	readonly Delegation: "DELEGATION_FAILED";
	readonly Timeout: "TIMEOUT";
	readonly Internal: "INTERNAL_ERROR";
	readonly KnowledgeNotFound: "KNOWLEDGE_NOT_FOUND";
	readonly RateLimited: "RATE_LIMITED";
};
/**
 * The error of failed delegated work. A skill can throw it; the delegating agent gets it from
 * Delegation.wait.
 */
export declare class Fault extends Error implements TaskFault {
	name: string;
	readonly code: string;
	readonly details: {
		[key: string]: any;
	} | undefined;
	readonly recoverable: boolean;
	constructor(code: string, message: string, { details, recoverable, ...options }?: FaultOptions);
	/** The message and the code. */
	get spoken(): string;
}
/** Optional parts of a Fault. */
export interface FaultOptions extends ErrorOptions {
	/** An object. If it has a raw, or is a Raw, it is sent digit for digit. */
	details?: {
		[key: string]: any;
	} | undefined;
	/** A retry may succeed; false by default. */
	recoverable?: boolean | undefined;
}
declare const statuses: readonly [
	"pending",
	"in_progress",
	"completed",
	"failed",
	"cancelled",
	"input_required"
];
/** The status of delegated work. */
export type ResponseStatus = (typeof statuses)[number];
/**
 * A status or the outcome of delegated work. The final response is completed, failed or cancelled.
 */
export type TaskResponse = TaskPending | TaskCompleted | TaskFailed | TaskGivenUp | TaskAsks;
interface Whatever {
	/** The id of the task. */
	id: string;
	/** Free text. */
	message?: string;
	/** How the work was done. */
	metadata: ResponseMetadata;
	/** The products of the work. */
	artifacts: Artifact[];
}
/** Work that has not begun, or is running. */
export interface TaskPending extends Whatever {
	status: "pending" | "in_progress";
}
/** Work that succeeded. */
export interface TaskCompleted extends Whatever {
	status: "completed";
	/** Any value; raw.at("result") of the response has it digit for digit. */
	result: any;
}
/** Work that failed. */
export interface TaskFailed extends Whatever {
	status: "failed";
	error: TaskFault;
}
/** Work that was cancelled. */
export interface TaskGivenUp extends Whatever {
	status: "cancelled";
	/** The reason, if one was given. */
	error?: TaskFault;
}
/** Work that needs input to go on. Delegation.update sends it. */
export interface TaskAsks extends Whatever {
	status: "input_required";
	question: string;
	/** The allowed answers; if empty, any. */
	options: TaskOption[];
}
/** An answer that a question allows. */
export interface TaskOption {
	label: string;
	value: string;
}
/** How work was done, as far as it was reported. */
export interface ResponseMetadata {
	startedAt?: string;
	completedAt?: string;
	duration_ms?: number;
	/** The agent that did it. */
	agent?: string;
	/** The number of retries. */
	retryCount?: number;
}
/** A product of the work. */
export interface Artifact {
	name: string;
	/** A MIME type. */
	type: string;
	content: string;
	/** Where the content is stored, if elsewhere. */
	ref?: string;
}
/** Work that the agent has delegated. Its methods may be called concurrently. */
export declare class Delegation {
	#private;
	/** The id of the task. */
	readonly id: string;
	/**
	 * Iterates over the responses up to the final one. Each response goes to one caller. Ends early
	 * when the signal is aborted, when the request is refused, or when the stream has ended; wait
	 * throws the reason. If responses are not taken, only the latest are kept.
	 */
	responses({ signal }?: Options): AsyncGenerator<Heard<TaskResponse>, void, void>;
	/**
	 * Waits for the final response; takes nothing from responses. Throws a Fault if the work failed,
	 * and Refused if the request was refused. Throws Cancelled if the work was cancelled, with a
	 * Fault as its cause if the response has one. Goes on waiting while the work needs input. To send
	 * that input, iterate over responses.
	 */
	wait({ signal }?: Options): Promise<Heard<TaskCompleted>>;
	/**
	 * Asks how the work stands and returns the next response, which responses yields as well. If the
	 * work is over, sends nothing and returns the final response.
	 */
	status({ signal }?: Options): Promise<Heard<TaskResponse>>;
	/**
	 * Sends the input that the work requires, which may be any value, and returns at the next
	 * response.
	 */
	update(input: unknown, { signal }?: Options): Promise<void>;
	/** Asks to cancel the work and waits for its final response. */
	cancel(reason?: string, { signal }?: Options): Promise<void>;
}
declare class Exchange extends Stream {
	#private;
	/**
	 * Asks another agent for work: the target of its routing, or any agent that offers the type.
	 * Returns when the request is written. The Delegation reports what follows, even that the request
	 * was refused.
	 */
	delegate(task: DelegateTask, { signal }?: Options): Promise<Delegation>;
}
/**
 * A running task, for the function that does it. Its functions may be destructured: ({ task,
 * progress }) => …
 */
export declare class Job {
	#private;
	readonly id: string;
	readonly conn: Exchange;
	/** As it was when do or plan was called. */
	task: Heard<Task>;
	/**
	 * Aborted with Cancelled, Shutdown or Closed, or for the reason of the signal given to work. The
	 * handler should then return soon.
	 */
	get signal(): AbortSignal;
	/**
	 * Reports how much of the task is done, from 0 to 1, and what there is so far. It does not complete
	 * the task.
	 */
	readonly progress: (fraction: number, message?: string, output?: unknown) => Promise<void>;
	/**
	 * Keeps an artifact, which is handed in with the result: a text, or the path of a text file in the
	 * agent's folder, which is read when the task is completed. One that is stored elsewhere has a ref.
	 */
	readonly artifact: (artifact: TaskArtifact) => void;
	/**
	 * Iterates over what the orchestrator reports about the task while it runs: the approval of its
	 * plan or feedback on it, the answer of a person, an urgent note. Starts with the first update,
	 * yields each once, and ends when the signal is aborted; the default is the job's signal.
	 */
	readonly updates: ({ signal }?: Options) => AsyncGenerator<string, void, void>;
	/**
	 * Asks a person a question about the task and waits for the answer, however long it takes. Until
	 * then the task is out of the agent's hands. The context may be any value. Throws Withdrawn if
	 * the task goes on without an answer.
	 *
	 * Conn.askUser is for a question that has nothing to do with a task, or a time limit.
	 */
	readonly help: (question: string, context?: unknown, { signal }?: Options) => Promise<string>;
}
/** A structured result. Its contracts are delivered to the tasks that depend on them. */
export interface Result {
	/** What was done, in one line. */
	summary: string;
	changes?: {
		files_modified?: string[];
		files_created?: string[];
		files_deleted?: string[];
		lines_added?: number;
		lines_removed?: number;
	};
	/** By the keys that the task spec names. */
	contracts?: {
		[key: string]: Contract;
	};
	tests?: {
		framework?: string;
		total: number;
		passed: number;
		failed: number;
		skipped: number;
		coverage_percent?: number;
	};
	/** Anything else, by name. */
	artifacts?: {
		[name: string]: unknown;
	};
}
/** One delivery of a result. */
export interface Contract {
	status: "fulfilled" | "partial" | "skipped";
	data?: unknown;
}
/** Returns a result with the $schema of the document. */
export declare function result(what: Result): Result & {
	$schema: string;
};
/** Returns a contract that is delivered completely. The data is usually an object. */
export declare function fulfilled(data: unknown): Contract;
/** Returns a contract that is delivered in part. */
export declare function partial(data: unknown): Contract;
/** Returns a contract that is not delivered, with the reason. */
export declare function skipped(reason: string): Contract;
/**
 * A job that was delegated to the agent, for the skill that does it. Its functions may be
 * destructured: ({ payload, progress }) => …
 */
export declare class Delegated {
	#private;
	readonly id: string;
	readonly type: string;
	/** The payload, with its text as raw. */
	readonly payload: TaskRequest["payload"];
	/** The whole request, as it came. */
	readonly request: Heard<TaskRequest>;
	readonly conn: Exchange;
	/**
	 * Aborted with Cancelled, Shutdown or Closed, or for the reason of the signal given to serve. The
	 * skill should then return soon.
	 */
	get signal(): AbortSignal;
	/**
	 * Reports that the job is running, with a message if there is one. Sends nothing while the job
	 * waits for input.
	 */
	readonly progress: (message?: string) => Promise<void>;
	/**
	 * Asks the delegating agent for input and waits for it. The answer may be any value, whatever the
	 * options are. Questions are asked one at a time. When the signal is aborted, ask reports that
	 * the job goes on without the input. Input that arrives before that report is returned all the
	 * same.
	 */
	readonly ask: <T = any>(question: string, options?: (string | Partial<TaskOption>)[], { signal }?: Options) => Promise<Heard<T>>;
	/** Like ask, but returns the undecoded answer. */
	readonly askRaw: (question: string, options?: (string | Partial<TaskOption>)[], { signal }?: Options) => Promise<Raw>;
	/** Keeps an artifact for the final response. */
	readonly artifact: (artifact: Artifact) => void;
	/**
	 * Delegates a part of the job to another agent, as Conn.delegate does. The request takes over the
	 * job's trace, baggage, conversation, user and routing chain. Waits for the part end with the
	 * job's signal, unless they have another one.
	 */
	readonly delegate: (task: DelegateTask, { signal }?: Options) => Promise<Delegation>;
}
/**
 * Does a job and returns its result: any value, or undefined for success without a result. A Fault,
 * or an error that has one as its cause, is reported as that fault. Any other error becomes an
 * INTERNAL_ERROR that is not recoverable.
 */
export type Skill = (job: Delegated) => Promise<unknown>;
/** The skills of an agent, by the type of the request. */
export type Skills = {
	[type: string]: Skill;
};
/** Configures Conn.serve. */
export interface ServeOptions extends Options {
	/** The agent's name in its responses; the default is $ORC_AGENT_ID. */
	agent?: string | undefined;
	/**
	 * The number of jobs done at a time; further jobs wait. A job that waits for input or for
	 * delegated work gives up its place meanwhile. By default there is no limit other than the
	 * orchestrator's.
	 */
	capacity?: number | undefined;
}
/** Configures Conn.work. Agents that need only do can pass a function instead. */
export interface Worker {
	/**
	 * Does a task and returns its result: any JSON value, or undefined for success without a
	 * result. If the result fails its verification so often that a person is asked, do is called
	 * again after the answer, which is in the help of its task. The job's signal is aborted when
	 * the task is cancelled or the agent has to shut down; do should then return soon.
	 */
	do?(job: Job): unknown;
	/**
	 * Returns a plan for a task, an object or a text, if a person has to approve it. It is called
	 * again when the plan is sent back; the task's planFeedback then has the reason. If plan is
	 * missing, a default text is submitted. If it fails, the agent adds a note to the task and leaves
	 * it to people.
	 */
	plan?(job: Job): unknown;
	/**
	 * Handles a message to the agent's actor. It is called with one message at a time, in the order
	 * of their numbers, beside the tasks. The signal is aborted when the agent has to shut down.
	 *
	 * If mail returns, the message is acknowledged; return for unknown topics too. If it throws, the
	 * agent sends GO a task.failed and then acknowledges the message. The code is that of a Fatal,
	 * otherwise FAILED. The failure of a task.failed or of mail from the bus is only logged, because
	 * reporting it could go on for ever.
	 *
	 * At a shutdown, mail may throw the reason of its signal, or Closed. The message is then not
	 * acknowledged, and the next run gets it again. The same happens if the agent dies right after
	 * mail has returned. So mail must be safe to repeat.
	 *
	 * Without mail, messages are ignored and not acknowledged.
	 */
	mail?(mail: Heard<Mail>, signal: AbortSignal): Promise<void>;
	/**
	 * The interval between heartbeats, in milliseconds; the default is the orchestrator's. Heartbeats
	 * are sent only with mail.
	 */
	beat?: number | undefined;
}
/**
 * Connects an agent to the orchestrator that started it, or to another stream. Call it only once
 * for a stream, because two readers would share the lines.
 */
export declare function connect(input?: Readable, output?: Writable): Conn;
/**
 * An agent's connection to its orchestrator. Its methods may be called concurrently.
 *
 * Received documents have their text as raw, because a number may have more digits than JavaScript
 * keeps: task.raw.at("payload", "n")?.text. In documents to send, a Raw or a bigint may replace any
 * value.
 */
export declare class Conn extends Exchange {
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
	work(worker: Worker | ((job: Job) => unknown), { signal }?: Options): Promise<void>;
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
	serve(skills: Skills, options?: ServeOptions): Promise<void>;
	/** Returns the agent's membership in a session. */
	openSession(me?: Identity): Session;
}
/**
 * An agent's membership in a session. Its methods send one message each, or take a role. Use
 * Conn.openSession.
 */
export declare class Session extends Member {
	#private;
	readonly conn: Conn;
	chain(correlationId: string): Session;
	/**
	 * Calls lead, which gives out the work of the session, and returns its result. While it runs, the
	 * Architect receives news about the tasks.
	 */
	lead<T>(lead: Lead<T> | Lead<T>["do"], options?: Options): Promise<T>;
	/**
	 * Does assigned tasks until the agent is told to shut down, the stream ends or the signal is
	 * aborted. Then it waits for running tasks. It acknowledges each task, reports progress while the
	 * task takes long, and always reports the outcome.
	 *
	 * A repeated assignment is done once. A new assignment of the same task replaces the old one,
	 * which is no longer reported; neither is an aborted task. Tasks given up because of a shutdown
	 * are not reported; develop then throws Unfinished, as Conn.work does.
	 */
	develop(developer: Developer | ((task: Assigned) => Promise<Loose<Completion> | void>), options?: Options): Promise<void>;
	/**
	 * Answers review requests until the agent has to shut down, as develop does. A repeated request
	 * is answered once; a request for an aborted task is not answered.
	 *
	 * If a review fails, there is no result. The architect gets feedback instead, which answers the
	 * request and requires an action.
	 */
	review(reviewer: Reviewer | Reviewer["do"], options?: Options): Promise<void>;
}
/** The topics that are always registered. */
export declare const Topic: {
	readonly TaskAssigned: "task.assigned";
	readonly TaskCompleted: "task.completed";
	readonly TaskFailed: "task.failed";
	readonly TaskProgress: "task.progress";
	readonly AgentSpawned: "agent.spawned";
	readonly AgentTerminated: "agent.terminated";
	readonly AlertFired: "alert.fired";
	readonly AlertResolved: "alert.resolved";
	readonly Heartbeat: "heartbeat";
	readonly Direct: "message.direct";
	readonly Broadcast: "broadcast.all";
	/** The bus has accepted mail on a topic that is not registered. */
	readonly Unknown: "topic.unknown";
};
/**
 * Actors that always exist. GO runs the system, Bus is the orchestrator itself, and Governor is
 * reserved for supervising programs.
 */
export declare const Actor: {
	readonly Global: "GO";
	readonly Bus: "Bus";
	readonly Governor: "Governor";
};
/** The recipient of mail to all actors. */
export declare const broadcast = "broadcast";
/** Returns a time in the format of messages: UTC, RFC 3339, with milliseconds. */
export declare function timestamp(at?: Date): string;

export {
	Withdrawn$1 as Withdrawn,
};

export {};
