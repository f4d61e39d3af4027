"""The mail loop of a worker. It handles one message at a time, beside the tasks."""

from __future__ import annotations

import uuid
from typing import Any, Callable, Dict, Optional

from .._connection.stop import Stop, stopping
from .._connection.stream import Stream
from .._wire.documents import Mail
from .._wire.errors import AgentError, Fatal
from .crew import Role, gave_up, shown, spoken

__all__ = ["Mailroom"]

#: Bounds the error text in a report to GO, in bytes.
LONGEST = 8 << 10


class Mailroom:
    """Handles the mail of a worker and sends its heartbeats."""

    def __init__(
        self, role: Role, conn: Stream, reader: Callable[[Mail, Stop], None], beat: Optional[float]
    ) -> None:
        self._role = role
        self._conn = conn
        self._reader = reader
        self._beat = beat

    def receive(self) -> None:
        """Passes the agent's mail to the reader, one message at a time, until the agent has to shut
        down."""
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
        """Acknowledges a message. If the reader failed, first reports that to GO. If the report
        fails, raises an error and leaves the message unacknowledged."""
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
        """Sends a heartbeat at once and then at each interval. A refused heartbeat does not stop
        it."""
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
    """Returns the report to GO about a failed message. Its key is the same each time, so that a
    message that fails again is reported once.

    Returns None for a task.failed and for mail of the bus: reporting their failures could go on for
    ever.
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
