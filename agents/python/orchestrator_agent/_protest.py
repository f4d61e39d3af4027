"""Refusals of responses.

Only refused responses get an answer. A question or final response must not be lost: if it is
refused for the rate limit, it is sent again later, provided that it still holds.
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

#: The number of refusals after which the pauses no longer grow.
TRIES = 10


class Protests:
    """Handles refusals of responses, for a server."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._repeats: Set[str] = set()  # tasks with a response to repeat

    def heed(self, task: str, job: Optional[Delegated], why: Refused) -> None:
        """Handles the refusal of a response, and raises AgentError if nothing can be done about it.
        Ignores a refusal that concerns something else."""
        final = self._server.finals.get(task)
        limited, wrong = why.reason == "rate_limited", why.code == "INVALID_REQUEST" and not why.reason
        if job is not None:
            if limited:  # only questions are repeated
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
        """Fails a job's open question with a refusal. Returns False if none is open."""
        with self._server.changed:
            self._server.changed.notify_all()
            return job._refuse(why)

    def _say_instead(self, task: str, final: Final, why: Refused) -> None:
        """Reports a job as failed, because its final response was refused."""
        fault = Fault("INTERNAL_ERROR", "what came of it was refused: " + why.message)
        response: Dict[str, object] = {"id": task, "status": "failed", **response_of_fault(fault), "metadata": final.metadata}
        line = said_line(response)
        self._server.finals.add(task, Final(line, final.metadata, instead=True))
        self._server.write(lambda: line)

    def _later(self, task: str, tries: int, say: Callable[[], None]) -> None:
        """Repeats a response after a pause."""
        if task in self._repeats:
            return
        self._repeats.add(task)
        self._server.go(lambda: self._again(task, min(PAUSE * 2 ** min(tries, TRIES), LONG_PAUSE), say), "again " + task)

    def _again(self, task: str, wait: float, say: Callable[[], None]) -> None:
        self._server.rest(wait)
        self._repeats.discard(task)
        say()

    def _last_word(self, task: str) -> None:
        """Repeats the final response of a task, unless the task is being done again."""

        def spell() -> bytes:
            final = self._server.finals.get(task)
            return final.line if final and self._server.job(task) is None else b""

        self._server.write(spell)
