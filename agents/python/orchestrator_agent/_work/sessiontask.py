"""The tasks of a session, as an architect holds them."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, List, Optional, cast
from weakref import WeakValueDictionary

from .._connection.inbox import REMEMBERED, Notice
from .._connection.said import Sent
from .._connection.stop import Stop
from .._wire.errors import AgentError, Ended, Refused, Undelivered, Unreviewed
from .._wire.fill import touched
from .._wire.lines import new_id
from .._wire.sessiondocuments import Assignment, Completion, Finding, ReviewRequest, ReviewResult
from .session import Member, developer_id

__all__ = ["SessionTask", "SessionTasks", "Tiding"]

#: How long to wait for a message that must be on its way, in seconds.
LAST_WORD = 10.0

#: Bounds the queued updates of each kind.
MOST_TIDINGS = 64


@dataclass(frozen=True, eq=False)
class Tiding:
    """An update about a task: one of these."""

    completion: Optional[Completion] = None
    result: Optional[ReviewResult] = None
    feedback: Optional[Dict[str, Any]] = None
    answers: str = ""  # the message that the feedback answers
    notice: Optional[Notice] = None

    @property
    def kind(self) -> str:
        """The kind of the update. An update is dropped only for another of its kind."""
        if self.notice is not None:
            return self.notice.name
        return "completion" if self.completion else "result" if self.result else "feedback"


class SessionTask:
    """A task that an architect has assigned. Only one thread at a time may wait for it."""

    def __init__(self, tasks: "SessionTasks", task_id: str) -> None:
        self.id = task_id
        self._tasks = tasks
        self._changed = threading.Condition()
        self._tidings: List[Tiding] = []  # updates not taken yet
        self._fresh = False  # an update has arrived since the last look
        self._first = ""  # the first description of the task
        self._developer = ""
        self._assignment: Assignment = {}  # as it was assigned last
        self._chain = ""  # its correlation_id
        self._sent: Optional[Sent] = None  # the last assignment
        self._done: Completion = {}
        self._reviews: List[Dict[str, Any]] = []

    # Called by the architect's author.

    def completion(self) -> Completion:
        """Waits for the completion of the task. Raises Undelivered if the assignment is refused,
        and Ended if the task has ended without a completion."""
        tiding = self._wait(self._sent, lambda t: t.completion is not None, True)
        self._done = tiding.completion or {}
        return self._done

    def review(self, reviewer: str, request: Optional[ReviewRequest] = None) -> ReviewResult:
        """Has the task reviewed and waits for the result. Missing members of the request are filled
        in from the task. Raises the errors of completion, and Unreviewed if the reviewer cannot
        review it."""
        asked = self._asking(request or {})
        sent = self._session().request_review(reviewer, cast(ReviewRequest, asked))
        tiding = self._wait(sent, lambda t: (
            t.result is not None and t.result.get("review_id") == asked["review_id"]
            or t.feedback is not None and t.answers == sent.message_id
        ), False)
        if tiding.feedback is not None:
            raise Unreviewed(f"the reviewer cannot review it: {tiding.feedback['subject']}: {tiding.feedback['content']}")
        result = tiding.result or {}
        open_ones = [f for f in result.get("findings", []) if not f.get("fixed_in_iteration") and f["severity"] != "suggestion"]
        self._reviews = [*self._reviews, {
            "review_number": len(self._reviews) + 1, "verdict": result.get("verdict", ""),
            "key_findings": [_in_a_line(finding) for finding in open_ones],
        }]
        return result

    def revise(self, result: ReviewResult, task_id: Optional[str] = None) -> None:
        """Assigns the task to its developer again. The findings of the review are in the
        description and in a previous attempt. task_id is a new id for the task."""
        self.id = task_id or self.id
        self._tasks.rename(self)
        said = _request_of(result)
        task: Dict[str, Any] = {**self._assignment.get("task", {})}
        context = dict(cast(Dict[str, Any], task.get("context") or {}))
        attempts = list(context.get("previous_attempts") or [])
        attempts.append({"attempt_number": len(attempts) + 1, "outcome": result.get("verdict", ""), "feedback": said})
        context["previous_attempts"] = attempts
        task.update(task_id=self.id, context=context, task_description=f"{self._first}\n\n{said}".lstrip("\n"))
        self._assign(self._developer, cast(Assignment, {**self._assignment, "task": task}))

    def abort(self, reason: str, cleanup: bool = False) -> None:
        """Aborts the task and wakes the caller that waits for it."""
        self._session().abort(developer_id(self._developer), {
            "scope": "task", "target_id": self.id, "reason": reason, "cleanup_required": cleanup,
        })
        self._put(Tiding(notice=Notice("task-cancelled", payload={"taskId": self.id, "reason": reason})))

    # Internals.

    def _session(self) -> Member:
        """Returns the session with the task's correlation_id."""
        session = self._tasks.session
        return session.chain(self._chain or session._chain)

    def _assign(self, developer: str, assignment: Assignment) -> None:
        """Sends an assignment with the correlation_id of the first one."""
        self._developer, self._assignment = developer, assignment
        self._sent = self._session().assign(developer, assignment)
        self._chain = self._sent.correlation_id

    def _asking(self, request: ReviewRequest) -> Dict[str, Any]:
        """Returns a review request with missing members filled in from the task."""
        asked = cast(Dict[str, Any], dict(request))
        task = cast(Dict[str, Any], self._assignment.get("task") or {})
        scope, context = dict(asked.get("scope") or {}), dict(asked.get("context") or {})
        asked["review_id"], asked["task_id"] = asked.get("review_id") or "review-" + new_id(), self.id
        scope.setdefault("files", touched(self._done.get("changes") or {}))
        scope.setdefault("focus_areas", ["logic"])
        context.setdefault("task_description", self._first)
        context.setdefault("acceptance_criteria", task.get("acceptance_criteria") or [])
        if self._reviews:
            context.setdefault("previous_reviews", self._reviews)
        asked["scope"], asked["context"] = scope, context
        return asked

    def _put(self, tiding: Tiding) -> None:
        """Queues an update. A full queue drops the oldest update of the same kind, so that other
        messages cannot displace a completion."""
        with self._changed:
            alike = [each for each in self._tidings if each.kind == tiding.kind]
            if len(alike) == MOST_TIDINGS:
                self._tidings.remove(alike[0])
            self._tidings.append(tiding)
            self._fresh = True
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _find(self, wanted: Callable[[Tiding], bool]) -> Optional[Tiding]:
        """Takes the first update that is wanted."""
        with self._changed:
            for at, tiding in enumerate(self._tidings):
                if wanted(tiding):
                    return self._tidings.pop(at)
        return None

    def _wait(self, sent: Optional[Sent], wanted: Callable[[Tiding], bool], done: bool) -> Tiding:
        """Waits for an update. Raises an error if the message sent is refused, or if a notice
        reports the end of the task."""
        stop = self._tasks.stop
        ended: Optional[AgentError] = None
        late: Optional[float] = None
        leave = [stop.on_end(self._wake), sent.on_refused(self._wake) if sent else lambda: None]
        try:
            while True:
                found = self._find(wanted)
                if found:
                    return found
                news = self._find(lambda tiding: tiding.notice is not None)
                if news and news.notice:
                    why = self._heed(news.notice)
                    if why:
                        said = done and isinstance(why, Ended) and why.state in ("done", "failed")
                        ended, late = why, time.monotonic() + (LAST_WORD if said else 0)  # it may have come meanwhile
                    continue
                if ended and late is not None and time.monotonic() >= late:
                    raise ended
                refused: Optional[Undelivered] = sent.undelivered if sent else None
                if refused:
                    raise refused
                stop.check()
                self._rest(sent, None if late is None else late - time.monotonic())
        finally:
            for each in leave:
                each()

    def _rest(self, sent: Optional[Sent], seconds: Optional[float]) -> None:
        """Waits until there may be something new."""
        stop = self._tasks.stop
        with self._changed:
            if not (self._fresh or stop.is_set() or sent and sent.undelivered):
                self._changed.wait(seconds)
            self._fresh = False

    def _heed(self, notice: Notice) -> Optional[AgentError]:
        """Returns an error, usually Ended, if a notice means that the task does not go on. Notices
        describe changes only in words, so this asks for the state of the task. A task that the
        orchestrator does not show counts as ended."""
        task, message = str(notice.payload["taskId"]), str(notice.payload.get("message") or "")
        if notice.name == "task-cancelled":
            return Ended(task, "cancelled", str(notice.payload.get("reason") or ""))
        try:
            return self._tasks.ended(task, message)
        except Refused:
            return Ended(task, "", message)
        except AgentError as error:
            return error


class SessionTasks:
    """The tasks of a session, by id. A task that the caller no longer refers to is forgotten after a
    few thousand others."""

    def __init__(self, session: Member, stop: Stop) -> None:
        self.session = session
        self.stop = stop
        self._lock = threading.Lock()
        self._by_id: "WeakValueDictionary[str, SessionTask]" = WeakValueDictionary()
        self._lately: Deque[SessionTask] = deque(maxlen=REMEMBERED)

    def get(self, task_id: str) -> SessionTask:
        """Returns the task with this id, no matter which agent assigned it."""
        with self._lock:
            task = self._by_id.get(task_id)
            if task is None:
                task = self._by_id[task_id] = SessionTask(self, task_id)
                self._lately.append(task)
            return task

    def rename(self, task: SessionTask) -> None:
        """Registers a task under its present id. A task may have several ids."""
        with self._lock:
            self._by_id[task.id] = task

    def ended(self, task: str, why: str) -> Optional[Ended]:
        """Asks for the state of a task. Returns None if the task goes on."""
        payload: Dict[str, Any] = {"task_id": task, "limit": 1}
        if self.session.identity.session:
            payload["session_id"] = self.session.identity.session
        answer = self.session.conn._ask_patiently("get-session", payload, self.stop)
        found: List[Dict[str, Any]] = [t for t in answer.get("tasks") or [] if t.get("task_id") == task]
        for each in found:
            said = why or f"changes are requested after {each.get('iteration', 0)} of {each.get('max_iterations', 0)} reviews"
            phase, state = each.get("phase"), str(each.get("state") or "")
            if phase == "human":
                return Ended(task, "needs_human", said)
            if phase == "over" and each.get("escalated") == "abort":  # it may have been done before
                return Ended(task, "cancelled", said)
            if phase == "over" or state in ("failed", "cancelled"):
                return Ended(task, state, said)
        return None


def _request_of(result: ReviewResult) -> str:
    """Returns the changes that a result asks for, as text."""
    lines = [f"The review says {result.get('verdict', '')}: {result.get('summary', '')}"]
    lines += [f"- {change['priority']}: {change['description']}" for change in result.get("required_changes") or []]
    lines += [f"- {_in_a_line(f)}" for f in result.get("findings") or [] if not f.get("fixed_in_iteration")]
    return "\n".join(lines)


def _in_a_line(finding: Finding) -> str:
    where = finding["location"]
    line, suggestion = where.get("line_start"), finding.get("suggestion")
    place = f"{where['file']}:{line}" if line else where["file"]
    text = f"{finding['severity']} ({finding['category']}) in {place}: {finding['description']}"
    return f"{text} Suggestion: {suggestion}" if suggestion else text
