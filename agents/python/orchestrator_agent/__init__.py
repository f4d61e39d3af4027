"""What an agent written in Python needs: it asks the orchestrator, tells it things, hears its notices
and works at its tasks.

An agent speaks on its stdout and listens on its stdin, in lines that are JSON objects. A Connection
takes both; from then on anything may be said at any time, from any thread:

    conn = Connection()
    conn.work(lambda job: {"success": True})

Connection.ask is for questions, tell for events, which have no answer, news for notices, and work is the
loop of an agent that does tasks. delegate asks another agent for work, and serve is the loop of an agent
that does what others ask it for. open_session is an agent's place in a session, with the roles of a
developer, a reviewer and an architect.

Documents are dictionaries, as they stand on the line, with types for those who check types. Whole
numbers are exact however large they are; others are floats.

It gives an agent no more rights than any program has that prints lines. It handles no signals, asks
again for nothing that a caller did not ask to be asked again, sets no time limits of its own, and runs
nothing that a message asks it to run.
"""

from . import _documents, _errors, _sessiondocuments, _taskdocuments
from ._architect import Architect, Delivery
from ._connection import Connection
from ._delegated import Delegated
from ._delegation import Delegation
from ._developer import Assigned
from ._documents import *  # noqa: F403
from ._errors import *  # noqa: F403
from ._inbox import Notice
from ._job import Job
from ._response import Response
from ._result import fulfilled, partial, result, skipped
from ._said import Said, Sent
from ._session import Identity, Session, architect_id, developer_id, reviewer_id
from ._sessiondocuments import *  # noqa: F403
from ._sessiontask import SessionTask
from ._stop import Stop
from ._taskdocuments import *  # noqa: F403

__all__ = [
    "Architect", "Assigned", "Connection", "Delegated", "Delegation", "Delivery", "Identity", "Job", "Notice", "Response",
    "Said", "Sent", "Session", "SessionTask", "Stop", "architect_id", "developer_id", "fulfilled", "partial", "result",
    "reviewer_id", "skipped",
]
__all__ += _documents.__all__
__all__ += _errors.__all__
__all__ += _sessiondocuments.__all__
__all__ += _taskdocuments.__all__
