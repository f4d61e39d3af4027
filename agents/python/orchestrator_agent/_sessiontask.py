"""A task that an architect has given out."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, cast

from ._errors import AgentError, Ended, Refused, Undelivered, Unreviewed
from ._fill import touched
from ._inbox import Notice
from ._lines import new_id
from ._said import Sent
from ._session import Session, developer_id
from ._sessiondocuments import Assignment, Completion, Finding, ReviewRequest, ReviewResult

if TYPE_CHECKING:
    from ._architect import Architect

__all__ = ["SessionTask", "Tiding"]

#: How long one waits for what must be on its way.
LAST_WORD = 10.0

#: How many tidings of a kind wait for a caller to look.
MOST_TIDINGS = 64


@dataclass(frozen=True, eq=False)
class Tiding:
    """Something new about a task: one of these."""

    completion: Optional[Completion] = None
    result: Optional[ReviewResult] = None
    feedback: Optional[Dict[str, Any]] = None
    answers: str = ""  # the message that the feedback answers
    notice: Optional[Notice] = None

    @property
    def kind(self) -> str:
        """Tells those apart of which one does not stand for another."""
        if self.notice is not None:
            return self.notice.name
        return "completion" if self.completion else "result" if self.result else "feedback"


class SessionTask:
    """A task that an architect has given out. One thread at a time waits for what becomes of it."""

    def __init__(self, architect: "Architect", task_id: str) -> None:
        self.id = task_id
        self._architect = architect
        self._changed = threading.Condition()
        self._tidings: List[Tiding] = []  # not looked for yet
        self._fresh = False  # there is one not seen yet
        self._first = ""  # what is to be done, as it was said first
        self._developer = ""
        self._assignment: Assignment = {}  # as it was assigned last
        self._chain = ""  # its correlation_id
        self._sent: Optional[Sent] = None  # the last assignment
        self._done: Completion = {}
        self._reviews: List[Dict[str, Any]] = []

    # What an architect does with it.

    def completion(self) -> Completion:
        """Waits for what comes of the task. It raises Undelivered when the developer is not given it,
        and Ended when it has come to its end without."""
        tiding = self._wait(self._sent, lambda t: t.completion is not None, True)
        self._done = tiding.completion or {}
        return self._done

    def review(self, reviewer: str, request: Optional[ReviewRequest] = None) -> ReviewResult:
        """Has the task reviewed, and waits for the result. What the request does not say is as the task
        has it. It raises what completion does, and Unreviewed when the reviewer says so."""
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
        """Gives the task to its developer again, with what a review has found: in the description, and
        as a previous attempt. It may get another id, which is the task's from then on."""
        with self._architect._lock:
            self.id = task_id or self.id
            self._architect._tasks[self.id] = self
        said = _request_of(result)
        task: Dict[str, Any] = {**self._assignment.get("task", {})}
        context = dict(cast(Dict[str, Any], task.get("context") or {}))
        attempts = list(context.get("previous_attempts") or [])
        attempts.append({"attempt_number": len(attempts) + 1, "outcome": result.get("verdict", ""), "feedback": said})
        context["previous_attempts"] = attempts
        task.update(task_id=self.id, context=context, task_description=f"{self._first}\n\n{said}".lstrip("\n"))
        self._assign(self._developer, cast(Assignment, {**self._assignment, "task": task}))

    def abort(self, reason: str, cleanup: bool = False) -> None:
        """Ends the task. A caller that waits for it is told, too."""
        self._session().abort(developer_id(self._developer), {
            "scope": "task", "target_id": self.id, "reason": reason, "cleanup_required": cleanup,
        })
        self._put(Tiding(notice=Notice("task-cancelled", payload={"taskId": self.id, "reason": reason})))

    # How it is done.

    def _session(self) -> Session:
        """The session for messages about the task."""
        session = self._architect.session
        return session.chain(self._chain or session._chain)

    def _assign(self, developer: str, assignment: Assignment) -> None:
        """Says an assignment, in the chain of the first one."""
        self._developer, self._assignment = developer, assignment
        self._sent = self._session().assign(developer, assignment)
        self._chain = self._sent.correlation_id

    def _asking(self, request: ReviewRequest) -> Dict[str, Any]:
        """A request for a review in which what is not said is as the task has it."""
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
        """Keeps a tiding for the caller that looks for it. What is not looked for makes room only for what is like
        it, so that a completion is not lost to what is said about it."""
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
        """Takes the first tiding that a caller looks for."""
        with self._changed:
            for at, tiding in enumerate(self._tidings):
                if wanted(tiding):
                    return self._tidings.pop(at)
        return None

    def _wait(self, sent: Optional[Sent], wanted: Callable[[Tiding], bool], done: bool) -> Tiding:
        """Waits for a tiding. The message that it answers may be refused, and a notice may say that
        there will be none."""
        stop = self._architect.stop
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
                        ended, late = why, time.monotonic() + (LAST_WORD if said else 0)  # unless it has come meanwhile
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
        """Waits until there may be something to look at."""
        stop = self._architect.stop
        with self._changed:
            if not (self._fresh or stop.is_set() or sent and sent.undelivered):
                self._changed.wait(seconds)
            self._fresh = False

    def _heed(self, notice: Notice) -> Optional[AgentError]:
        """What a notice means for a task: Ended when it goes on no more. What is new about it is told in
        words alone, so the task is looked at; one that cannot be looked at has ended."""
        task, message = str(notice.payload["taskId"]), str(notice.payload.get("message") or "")
        if notice.name == "task-cancelled":
            return Ended(task, "cancelled", str(notice.payload.get("reason") or ""))
        try:
            return self._architect.ended(task, message)
        except Refused:
            return Ended(task, "", message)
        except AgentError as error:
            return error


def _request_of(result: ReviewResult) -> str:
    """What a result asks for, in words."""
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
