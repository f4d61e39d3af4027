"""The mail of a worker: one message after the other, beside the tasks."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from ._crew import Role, gave_up, shown, spoken
from ._documents import Mail
from ._errors import AgentError, Fatal
from ._stop import Stop, stopping

if TYPE_CHECKING:
    from ._connection import Connection

__all__ = ["Mailroom"]

#: How much of an error is told, in bytes.
LONGEST = 8 << 10


class Mailroom:
    """Deals with mail, and says that the agent is there."""

    def __init__(
        self, role: Role, conn: "Connection", reader: Callable[[Mail, Stop], None], beat: Optional[float]
    ) -> None:
        self._role = role
        self._conn = conn
        self._reader = reader
        self._beat = beat

    def receive(self) -> None:
        """Deals with message after message until the agent has to go."""
        stop = self._role._stop
        for mail in self._conn._inbox.letters(stop):
            failed: Optional[BaseException] = None
            try:
                with stopping(stop):
                    self._reader(mail, stop)
            except BaseException as error:
                failed = error
                shown(error)
            if gave_up(stop, failed):
                return
            self._conn._inbox.dealt_with(mail["seq"])
            try:
                self._close(mail, failed)
            except Exception as error:
                self._role._troubled(error)

    def _close(self, mail: Mail, failed: Optional[BaseException]) -> None:
        """Acknowledges a message, when GO has been told if it failed. One of which GO cannot be told
        is not acknowledged, and the log says so."""
        where = f"message {mail['seq']} on {mail.get('topic', '')}"
        if failed is not None:
            letter = _letter(mail, failed)
            if letter is None:
                self._role._troubled(AgentError(f"{where} is given up: {spoken(failed)} ({_code(failed)})"))
            else:
                try:
                    self._conn._settle("send-message", letter)
                except AgentError as error:
                    raise AgentError(f"{where} failed: {spoken(failed)}; and GO cannot be told: {error}") from error
        try:
            self._conn._settle("ack-messages", {"seq": mail["seq"]})
        except AgentError as error:
            raise AgentError(f"{where} is dealt with: {error}") from error

    def beat(self) -> None:
        """Sends a heartbeat now and then one each time it is due. One that is refused says nothing
        about the next."""
        stop, every = self._role._stop, self._beat or 60.0
        while not stop.is_set():
            try:
                answer = self._conn._ask_patiently("heartbeat", {}, stop)
                said = answer.get("heartbeat_ms")
                if not self._beat and isinstance(said, int) and said > 0:
                    every = said / 1000
            except Exception as error:
                if gave_up(stop, error):
                    return
                self._role._troubled(error)
            stop.wait(every)


def _code(error: BaseException) -> str:
    return error.code if isinstance(error, Fatal) else "FAILED"


def _letter(mail: Mail, failed: BaseException) -> Optional[Dict[str, Any]]:
    """How the one who runs it all is told that a message has failed. The key is the same each time, so
    that a message which fails again is told of once.

    None for what would be the next to fail, for ever: a task.failed, and what the bus has to say.
    """
    if mail.get("topic") == "task.failed" or mail.get("from_actor") == "Bus":
        return None
    text = spoken(failed).encode("utf-8", "replace")[:LONGEST].decode("utf-8", "ignore")
    return {
        "to_actor": "GO", "topic": "task.failed",
        "payload": {"error_code": _code(failed), "error": text, "topic": mail.get("topic", "")},
        "reply_to": mail["seq"],
        "idempotency_key": str(uuid.uuid5(uuid.NAMESPACE_URL, f"failed at {mail['seq']} of {mail.get('created_at', '')}")),
    }
