# Code generated from wire/schema; DO NOT EDIT.
"""The documents of a session, as types for type checkers.

A sender may leave out members that have a default. A received document has all members that the
protocol requires.
"""

from __future__ import annotations

from typing import Any, Dict, List, TypedDict

__all__ = [
    "Abort", "AgentID", "Assignment", "CheckResult", "Completion", "Feedback", "FileChange", "FileChanges",
    "Finding", "Location", "Progress", "ReviewContext", "ReviewCriteria", "ReviewRequest", "ReviewResult",
    "ReviewScope", "SelfReview", "TaskInput",
]


class _AgentID(TypedDict):
    #: The name of the agent.
    agent_id: str
    #: The role of the agent: it plans and assigns, works, or reviews. One of architect, developer,
    #: reviewer.
    agent_type: str


class AgentID(_AgentID, total=False):
    """An agent of the session."""

    #: The instance of the agent, if it has several.
    instance_id: str


class TaskInput(TypedDict, total=False):
    """The work to do for a task."""

    #: The id of the task, unique among all tasks.
    task_id: str
    #: The work to do, for people.
    task_description: str
    #: The context of the task.
    context: Dict[str, Any]
    #: The constraints of the work.
    constraints: Dict[str, Any]
    #: The conditions under which the task counts as done.
    acceptance_criteria: List[str]


class Assignment(TypedDict, total=False):
    """An architect assigns a task to a developer."""

    #: The task.
    task: TaskInput
    #: The priority of the task. One of high, medium, low.
    priority: str
    #: When the task should be done: an ISO 8601 time. It is advisory: the work continues after it.
    deadline: str
    #: The maximum number of reviews of the task. The default is the maximum of the session.
    max_iterations: int
    #: The tasks that the task waits for. An extension of the published protocol.
    dependencies: List[Dict[str, Any]]


class Progress(TypedDict, total=False):
    """A developer reports the progress of a task."""

    #: The id of the task.
    task_id: str
    #: The progress, from 0 to 100; 1 is one percent.
    progress_percent: float
    #: The current step of the developer.
    current_step: str
    #: The files that were changed so far.
    files_modified_so_far: List[str]
    #: The estimated remaining time, in free words.
    estimated_remaining: str
    #: The obstacles to the work.
    blockers: List[str]


class _FileChange(TypedDict):
    #: The path of the file.
    path: str


class FileChange(_FileChange, total=False):
    """A changed file."""

    #: The kind of change. A kind that does not match its list causes a warning. One of created,
    #: modified, deleted.
    change_type: str
    #: The number of added lines.
    lines_added: int
    #: The number of removed lines.
    lines_removed: int
    #: The change in the file.
    description: str


class FileChanges(TypedDict, total=False):
    """The changed files."""

    #: The new files.
    files_created: List[FileChange]
    #: The modified files.
    files_modified: List[FileChange]
    #: The deleted files.
    files_deleted: List[str]


class SelfReview(TypedDict, total=False):
    """The developer's own checks."""

    #: Whether the tests ran.
    tests_run: bool
    #: Whether they passed.
    tests_passed: bool
    #: Whether the type check passed.
    type_check_passed: bool
    #: The known problems.
    known_issues: List[str]


class Completion(TypedDict, total=False):
    """A developer reports the end of the work on a task, even if it failed."""

    #: The id of the task.
    task_id: str
    #: Whether all of the work is done (completed), part of it (partial), or nothing useful
    #: (failed).
    status: str
    #: The changed files.
    changes: FileChanges
    #: A summary of the work.
    summary: str
    #: Notes on the implementation.
    implementation_notes: str
    #: The developer's own checks.
    self_review: SelfReview
    #: Why the task is not completed.
    blockers: List[str]
    #: Suggestions for improvements.
    suggestions: List[str]
    #: The failure of the work. An extension of the published protocol. An invalid error is ignored
    #: with a note.
    error: Dict[str, Any]


class ReviewScope(TypedDict, total=False):
    """The files and changes to review."""

    #: The files.
    files: List[str]
    #: The topics of the review.
    focus_areas: List[str]
    #: Patterns of files to ignore.
    ignore_patterns: List[str]


class ReviewCriteria(TypedDict, total=False):
    """The checks that the work has to pass. The package never runs the custom checks: they are text
    of the architect."""

    #: Whether the tests must pass.
    must_pass_tests: bool
    #: Whether the type check must pass.
    must_pass_type_check: bool
    #: Whether the linter must pass.
    must_pass_lint: bool
    #: Other checks that must pass.
    custom_checks: List[Dict[str, Any]]


class ReviewContext(TypedDict, total=False):
    """The context of the review."""

    #: The work to review.
    task_description: str
    #: The conditions under which the task counts as done.
    acceptance_criteria: List[str]
    #: The previous reviews.
    previous_reviews: List[Dict[str, Any]]


class ReviewRequest(TypedDict, total=False):
    """An architect asks a reviewer to review the work on a task."""

    #: The id of the review, unique among all reviews.
    review_id: str
    #: The id of the task.
    task_id: str
    #: The files and changes to review.
    scope: ReviewScope
    #: The criteria for an approval.
    criteria: ReviewCriteria
    #: The context of the review.
    context: ReviewContext


class _Location(TypedDict):
    #: The file.
    file: str


class Location(_Location, total=False):
    """The place of the finding."""

    #: The first line.
    line_start: int
    #: The last line; not less than line_start.
    line_end: int
    #: The code at that place.
    code_snippet: str


class _Finding(TypedDict):
    #: The id of the finding, unique in the result.
    finding_id: str
    #: The severity of the finding. One of critical, major, minor, suggestion.
    severity: str
    #: The category of the finding. One of bug, security, performance, style, logic, test.
    category: str
    #: The place of the finding.
    location: Location
    #: The description of the finding.
    description: str


class Finding(_Finding, total=False):
    """A defect that the reviewer found."""

    #: Why the finding matters. Unless the session is strict, it may be missing.
    rationale: str
    #: A suggestion for an improvement.
    suggestion: str
    #: The iteration that fixed the finding. A fixed finding does not prevent an approval.
    fixed_in_iteration: int


class _CheckResult(TypedDict):
    #: Whether the check passed.
    passed: bool


class CheckResult(_CheckResult, total=False):
    """The result of a check."""

    #: The output of the check.
    output: str
    #: The error of the check.
    error: str


class ReviewResult(TypedDict, total=False):
    """A reviewer reports the result of a review."""

    #: The id of the review.
    review_id: str
    #: The id of the task.
    task_id: str
    #: Whether the work is right (approved), needs changes (changes_requested), or must be planned
    #: again (rejected). It cannot be approved while a critical or major finding is open, or a check
    #: has not passed.
    verdict: str
    #: The findings.
    findings: List[Finding]
    #: The results of the checks.
    verification: Dict[str, Any]
    #: A summary in one line.
    summary: str
    #: The changes that the reviewer requires.
    required_changes: List[Dict[str, Any]]
    #: The strengths of the work.
    commendations: List[str]


class _Feedback(TypedDict):
    #: The kind of feedback. One of clarification, correction, guidance, question.
    feedback_type: str
    #: The subject.
    subject: str
    #: The text of the feedback.
    content: str


class Feedback(_Feedback, total=False):
    """An agent gives feedback to another agent."""

    #: Whether an action is required.
    action_required: bool
    #: The id of the task that the feedback is about.
    related_task_id: str


class _Abort(TypedDict):
    #: Whether it ends a task or the session.
    scope: str


class Abort(_Abort, total=False):
    """Ends a task or the session."""

    #: The id of the task, or of the session.
    target_id: str
    #: The reason.
    reason: str
    #: Whether the agent that did the work must clean up.
    cleanup_required: bool
