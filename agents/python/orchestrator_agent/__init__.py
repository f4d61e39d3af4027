"""The library for agents written in Python. An agent sends requests and events to the orchestrator,
receives its notices, works on tasks, delegates work, does delegated work, and takes part in
sessions.

An agent writes JSON objects to stdout and reads them from stdin, one a line. A Connection takes
both streams. From then on, any thread may send at any time:

    conn = Connection()
    conn.work(lambda job: {"success": True})

Connection.ask sends a request, tell sends an event that has no answer, and news yields notices.
work is the loop of an agent that does tasks. delegate asks another agent for work, and serve is the
loop of an agent that does delegated work. open_session returns the agent's membership in a session,
with the roles of a developer, a reviewer and an architect.

Documents are dictionaries with the keys of the protocol, and TypedDicts describe them for type
checkers. Integers are exact; other numbers are floats.

The package gives an agent no more rights than a program that prints lines. It handles no signals
and sets no time limits. It repeats only session messages, requests of its roles, and responses of
serve, if they are refused for a limit. It runs no commands that a message contains.
"""

from ._agent import Connection, Session
from ._connection.inbox import Notice
from ._connection.said import Said, Sent
from ._connection.stop import Stop
from ._roles.architect import Architect, Delivery
from ._roles.developer import Assigned
from ._wire import documents as _documents, errors as _errors
from ._wire import sessiondocuments as _sessiondocuments, taskdocuments as _taskdocuments
from ._wire.documents import *  # noqa: F403
from ._wire.errors import *  # noqa: F403
from ._wire.response import Response
from ._wire.sessiondocuments import *  # noqa: F403
from ._wire.taskdocuments import *  # noqa: F403
from ._work.delegated import Delegated
from ._work.delegation import Delegation
from ._work.job import Job, fulfilled, partial, result, skipped
from ._work.session import Identity, architect_id, developer_id, reviewer_id
from ._work.sessiontask import SessionTask

__version__ = "0.1.0"  # that of the orchestrator

__all__ = [
    "Architect", "Assigned", "Connection", "Delegated", "Delegation", "Delivery", "Identity", "Job", "Notice", "Response",
    "Said", "Sent", "Session", "SessionTask", "Stop", "architect_id", "developer_id", "fulfilled", "partial", "result",
    "reviewer_id", "skipped",
]
__all__ += _documents.__all__
__all__ += _errors.__all__
__all__ += _sessiondocuments.__all__
__all__ += _taskdocuments.__all__
