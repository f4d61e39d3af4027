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
    agent_id: str
    agent_type: str  # architect, developer or reviewer


class AgentID(_AgentID, total=False):
    """An agent in a session."""

    instance_id: str


class TaskInput(TypedDict, total=False):
    """The work to do for a task."""

    task_id: str
    task_description: str
    context: Dict[str, Any]
    constraints: Dict[str, Any]
    acceptance_criteria: List[str]


class Assignment(TypedDict, total=False):
    """A task as an architect assigns it to a developer."""

    task: TaskInput
    priority: str  # high, medium or low
    deadline: str
    max_iterations: int
    dependencies: List[Dict[str, Any]]


class Progress(TypedDict, total=False):
    """A developer's progress on a task."""

    task_id: str
    progress_percent: float  # from 0 to 100
    current_step: str
    files_modified_so_far: List[str]
    estimated_remaining: str
    blockers: List[str]


class _FileChange(TypedDict):
    path: str


class FileChange(_FileChange, total=False):
    """A file that a developer has changed."""

    change_type: str
    lines_added: int
    lines_removed: int
    description: str


class FileChanges(TypedDict, total=False):
    """All files that a developer has changed."""

    files_created: List[FileChange]
    files_modified: List[FileChange]
    files_deleted: List[str]


class SelfReview(TypedDict, total=False):
    """The developer's own checks of the work."""

    tests_run: bool
    tests_passed: bool
    type_check_passed: bool
    known_issues: List[str]


class Completion(TypedDict, total=False):
    """The outcome of a task. Missing members are filled in."""

    task_id: str
    status: str  # completed, partial or failed
    changes: FileChanges
    summary: str
    implementation_notes: str
    self_review: SelfReview
    blockers: List[str]
    suggestions: List[str]
    error: Dict[str, Any]


class ReviewScope(TypedDict, total=False):
    """What to review."""

    files: List[str]
    focus_areas: List[str]  # security, performance, style, logic, error_handling, test_coverage
    ignore_patterns: List[str]


class ReviewCriteria(TypedDict, total=False):
    """The checks that the work has to pass. The package never runs the custom checks: they are text
    of the architect."""

    must_pass_tests: bool
    must_pass_type_check: bool
    must_pass_lint: bool
    custom_checks: List[Dict[str, Any]]


class ReviewContext(TypedDict, total=False):
    """The task that was to be done."""

    task_description: str
    acceptance_criteria: List[str]
    previous_reviews: List[Dict[str, Any]]


class ReviewRequest(TypedDict, total=False):
    """An architect's request to review a task."""

    review_id: str
    task_id: str
    scope: ReviewScope
    criteria: ReviewCriteria
    context: ReviewContext


class _Location(TypedDict):
    file: str


class Location(_Location, total=False):
    """The place of a finding."""

    line_start: int
    line_end: int
    code_snippet: str


class _Finding(TypedDict):
    finding_id: str
    severity: str  # critical, major, minor or suggestion
    category: str  # bug, security, performance, style, logic or test
    location: Location
    description: str


class Finding(_Finding, total=False):
    """One finding of a review."""

    rationale: str
    suggestion: str
    fixed_in_iteration: int  # 0 or missing: still open


class _CheckResult(TypedDict):
    passed: bool


class CheckResult(_CheckResult, total=False):
    """The result of one check."""

    output: str
    error: str


class ReviewResult(TypedDict, total=False):
    """The outcome of a review. Missing members are filled in."""

    review_id: str
    task_id: str
    verdict: str  # approved, changes_requested or rejected
    findings: List[Finding]
    verification: Dict[str, Any]
    summary: str
    required_changes: List[Dict[str, Any]]
    commendations: List[str]


class _Feedback(TypedDict):
    feedback_type: str  # clarification, correction, guidance or question
    subject: str
    content: str


class Feedback(_Feedback, total=False):
    """A message that any agent may send to any other."""

    action_required: bool
    related_task_id: str


class _Abort(TypedDict):
    scope: str  # task or session


class Abort(_Abort, total=False):
    """Aborts a task or a session."""

    target_id: str
    reason: str
    cleanup_required: bool
