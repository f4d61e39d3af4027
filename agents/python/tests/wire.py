"""A connection in memory, with the orchestrator's end of it."""

from __future__ import annotations

import json
import os
import queue
import threading
from typing import Any, Callable, Dict, Optional

import orchestrator_agent as sdk

PATIENCE = 10.0


class Wire:
    """The orchestrator's end. It is a context: at its end the stream ends, and all that was started is
    waited for."""

    def __init__(self) -> None:
        stdin, self._say = os.pipe()
        self._hear, stdout = os.pipe()
        self._stdin, self._stdout = os.fdopen(stdin, "rb", 0), os.fdopen(stdout, "wb", 0)
        self.conn = sdk.Connection(self._stdin, self._stdout)
        self._lines: "queue.Queue[Optional[Dict[str, Any]]]" = queue.Queue()
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self._threads[0].start()
        self._closed = False

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.conn.wait(PATIENCE)
        for thread in self._threads[1:]:
            thread.join(PATIENCE)
        self._stdout.close()
        self._threads[0].join(PATIENCE)
        self._stdin.close()

    def _listen(self) -> None:
        with os.fdopen(self._hear, "rb") as printed:
            for line in printed:
                self._lines.put(json.loads(line))
        self._lines.put(None)

    def close(self) -> None:
        """Ends the agent's stdin."""
        if not self._closed:
            self._closed = True
            os.close(self._say)

    def tear(self) -> None:
        """Has the agent's stdout take nothing more."""
        self._stdout.close()

    def say(self, **message: Any) -> None:
        """Writes a line of the agent's stdin."""
        text = (json.dumps(message) + "\n").encode()
        while text:
            text = text[os.write(self._say, text):]

    def act(self, task: str, kind: str, **payload: Any) -> None:
        self.say(id=task, type="task." + kind, payload=payload)

    def bake(self, task: str) -> None:
        self.say(id=task, type="bake", payload={})

    def shut_down(self) -> None:
        self.say(type="notify:shutdown", payload={})

    def hear(self) -> Dict[str, Any]:
        """The next line of the agent's stdout."""
        line = self._lines.get(timeout=PATIENCE)
        assert line is not None, "there are no more lines"
        return line

    def heard(self) -> bool:
        """Whether there is a line not taken yet."""
        return not self._lines.empty()

    def read(self) -> None:
        """Waits until the agent has read everything so far."""
        done = self.start(lambda: self.conn.ask("heartbeat"))
        self.say(type="response:success", correlationId=self.hear()["id"], payload={})
        done()

    def start(self, do: Callable[[], Any]) -> Callable[[], Any]:
        """Does something beside the test. What is returned waits for it, and returns or raises what came
        of it."""
        came: "queue.Queue[Any]" = queue.Queue()

        def run() -> None:
            try:
                came.put((do(), None))
            except BaseException as error:
                came.put((None, error))

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

        def wait() -> Any:
            value, error = came.get(timeout=PATIENCE)
            if error:
                raise error
            return value

        return wait

    def serve(self, do: Callable[[sdk.Delegated], Any], **options: Any) -> Callable[[], Any]:
        return self.start(lambda: self.conn.serve({"bake": do}, **options))
