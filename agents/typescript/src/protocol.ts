// The words of sessions, in which an architect, developers and reviewers work
// together. They are closed lists: a word that is not here is a mistake.

export const messageTypes = [
  "task_assignment", "task_progress", "task_completion", "review_request", "review_result",
  "feedback", "status_query", "status_response", "abort", "acknowledgment",
] as const;
export type MessageType = (typeof messageTypes)[number];

export const agentTypes = ["architect", "developer", "reviewer"] as const;
export type AgentType = (typeof agentTypes)[number];

/** How urgent an assignment is. */
export const priorities = ["high", "medium", "low"] as const;
export type SessionPriority = (typeof priorities)[number];

/** Hard is waited for; soft holds nothing up. */
export const dependencyTypes = ["hard", "soft"] as const;
export type SessionDependencyType = (typeof dependencyTypes)[number];

/** What a completion says became of the task. */
export const outcomes = ["completed", "partial", "failed"] as const;
export type Outcome = (typeof outcomes)[number];

/** What was done to a file. */
export const changeTypes = ["created", "modified", "deleted"] as const;
export type ChangeType = (typeof changeTypes)[number];

/** What a reviewer is asked to look at. */
export const focusAreas = ["security", "performance", "style", "logic", "error_handling", "test_coverage"] as const;
export type FocusArea = (typeof focusAreas)[number];

/** What a review comes to: with changes requested it can be mended, rejected it has to be planned anew. */
export const verdicts = ["approved", "changes_requested", "rejected"] as const;
export type Verdict = (typeof verdicts)[number];

/** How bad a finding is. */
export const severities = ["critical", "major", "minor", "suggestion"] as const;
export type Severity = (typeof severities)[number];

/** What kind of thing a finding is. */
export const categories = ["bug", "security", "performance", "style", "logic", "test"] as const;
export type Category = (typeof categories)[number];

/** How much a reviewer insists on a change. */
export const fixes = ["must_fix", "should_fix", "consider"] as const;
export type Fix = (typeof fixes)[number];

export const feedbackTypes = ["clarification", "correction", "guidance", "question"] as const;
export type FeedbackType = (typeof feedbackTypes)[number];

/** What an abort ends. */
export const abortScopes = ["task", "session"] as const;
export type AbortScope = (typeof abortScopes)[number];
