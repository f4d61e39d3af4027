"""The reviewer of a session: answers each request once."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, cast

from .._connection.said import Said
from .._connection.stop import Stop, stopping
from .._wire.errors import AgentError, Undelivered, Unsaid
from .._wire.sessiondocuments import ReviewRequest, ReviewResult
from .._work.crew import GivenUp, gave_up, off, shown, spoken
from .._work.session import Member
from .desk import CORRECTIONS, Desk, Errand

__all__ = ["Correct", "Review", "Reviewer"]

Review = Callable[[ReviewRequest, Stop], ReviewResult]
Correct = Callable[[ReviewRequest, ReviewResult, Undelivered, Stop], ReviewResult]


class Reviewer(Desk):
    """Answers the review requests of a session."""

    def __init__(
        self, session: Member, do: Review, correct: Optional[Correct], capacity: int, hear: Optional[Callable[[Said], None]]
    ) -> None:
        super().__init__(session, self._asked, capacity, hear)
        self.judge = do
        self.correct = correct

    def _asked(self, said: Said) -> Optional[Errand]:
        """Returns the errand for a review request, or None for any other message."""
        return _Judging(self, said) if said.message_type == "review_request" else None


class _Judging(Errand):
    def __init__(self, desk: Reviewer, said: Said) -> None:
        super().__init__(said, said.payload["review_id"], said.payload["task_id"])
        self._desk = desk
        self._request = cast(ReviewRequest, said.payload)
        self._result: ReviewResult = {}  # as sent

    def status(self) -> Dict[str, Any]:
        return {"task_id": self.task, "progress_percent": 0, "current_step": "review " + self.key}

    def do(self) -> None:
        try:
            self._desk.turn(self)
        except AgentError as stopped:
            self._tell(stopped)
            return
        self._judge(lambda: self._desk.judge(self._request, self.stop))

    def _judge(self, judge: Callable[[], ReviewResult]) -> None:
        """Calls a function of the reviewer and sends the result."""
        error: Optional[BaseException] = None
        try:
            with stopping(self.stop):
                self._result = judge()
        except BaseException as failure:  # sys.exit ends only the review
            error = failure
            shown(error)
        self._tell(error)

    def correct(self, why: Undelivered) -> None:
        """Makes a new review after the result was refused."""
        correct = self._desk.correct
        if correct is None or self.corrected >= CORRECTIONS:
            self._tell(why)
            raise why
        self._judge(lambda: correct(self._request, self._result, why, self.stop))

    def _tell(self, failed: Optional[BaseException]) -> None:
        """Sends a result, or feedback if there is none, unless the review was cancelled or
        replaced."""
        if off(self.stop):
            return
        if gave_up(self.stop, failed):
            raise GivenUp()
        why = spoken(failed) if failed else ""
        if failed is None:
            try:
                self._desk.expects(self, self._desk.session.judge(self.said, self._result))
                return
            except Unsaid as error:
                why = f"its result cannot be told: {error}"
        self._desk.session.answer(self.said, {
            "feedback_type": "clarification", "subject": f"the review {self.key} cannot be made", "content": why,
            "action_required": True, "related_task_id": self.task,
        })
