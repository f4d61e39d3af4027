"""What the agent has said of its jobs, and is refused.

A response has no answer, unless it is refused. What is refused because there is too much just now is
said again later, as it is then: a question and a final response must not get lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, Optional, Set

from ._again import LONG_PAUSE, PAUSE
from ._delegated import Delegated
from ._errors import AgentError, Fault, Refused
from ._finals import Final
from ._lines import said_line
from ._response import response_of_fault

if TYPE_CHECKING:
    from ._serve import Server

__all__ = ["Protests"]

#: After how many refusals the pauses grow no longer.
TRIES = 10


class Protests:
    """Deals with refusals, for a server."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._repeats: Set[str] = set()  # the tasks of which something is said again

    def heed(self, task: str, job: Optional[Delegated], why: Refused) -> None:
        """Deals with one that is about what was said last of a job, or of one that is over. One that is
        about something else does not count."""
        final = self._server.finals.get(task)
        limited, wrong = why.reason == "rate_limited", why.code == "INVALID_REQUEST" and not why.reason
        if job is not None:
            if limited:  # words other than a question need not be said again
                self._question_later(job)
            elif not (wrong or why.reason == "too_many_questions") or not self._refuse(job, why):
                raise AgentError(f"task {task}: {why}")
        elif final is not None:
            if limited:
                self._later(task, final.tries, lambda: self._last_word(task))
                final.tries += 1
            elif wrong and not final.instead:
                self._say_instead(task, final, why)
            else:
                raise AgentError(f"task {task}: {why}")

    def _question_later(self, job: Delegated) -> None:
        with self._server.changed:
            question = job._question
            if question is None:
                return
            tries, question.tries = question.tries, question.tries + 1
        self._later(job.id, tries, lambda: self._server.say_of(job, lambda: job._standing() if job._question else {}))

    def _refuse(self, job: Delegated, why: Refused) -> bool:
        """Tells a job that its question was refused; False when it asks nothing."""
        with self._server.changed:
            self._server.changed.notify_all()
            return job._refuse(why)

    def _say_instead(self, task: str, final: Final, why: Refused) -> None:
        """Says that a job has failed, because what came of it was refused."""
        fault = Fault("INTERNAL_ERROR", "what came of it was refused: " + why.message)
        response: Dict[str, object] = {"id": task, "status": "failed", **response_of_fault(fault), "metadata": final.metadata}
        line = said_line(response)
        self._server.finals.add(task, Final(line, final.metadata, instead=True))
        self._server.write(lambda: line)

    def _later(self, task: str, tries: int, say: Callable[[], None]) -> None:
        """Says something again after a while."""
        if task in self._repeats:
            return
        self._repeats.add(task)
        self._server.go(lambda: self._again(task, min(PAUSE * 2 ** min(tries, TRIES), LONG_PAUSE), say), "again " + task)

    def _again(self, task: str, wait: float, say: Callable[[], None]) -> None:
        self._server.rest(wait)
        self._repeats.discard(task)
        say()

    def _last_word(self, task: str) -> None:
        """Says the final response of a job once more, unless it is done again by now."""

        def spell() -> bytes:
            final = self._server.finals.get(task)
            return final.line if final and self._server.job(task) is None else b""

        self._server.write(spell)
