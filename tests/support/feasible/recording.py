"""An extender of kube-scheduler that writes down which nodes its filters left over, and then says that none will do.

So every pod stays where it is, and what one pod is told does not depend on where another one went.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final

_ANSWER: Final = json.dumps({"NodeNames": [], "FailedNodes": {}, "Error": ""}).encode()


class Recorder:
    def __init__(self, port: int) -> None:
        self.port = port
        self._lock = Lock()
        self._left: dict[str, frozenset[str]] = {}

    def left(self, uid: str) -> frozenset[str]:
        """The nodes that were left over for a pod that kube-scheduler has decided on: none where it never asked."""
        with self._lock:
            return self._left.get(uid, frozenset())

    def write_down(self, asked: Mapping[str, Any]) -> None:
        """One question; of several about one pod the last counts."""
        with self._lock:
            self._left[asked["Pod"]["metadata"]["uid"]] = frozenset(asked["NodeNames"] or ())

    @property
    def configuration(self) -> dict[str, Any]:
        """What kube-scheduler is to be told: ask about all nodes, and take no pod another one's place."""
        extender = {
            "urlPrefix": f"http://127.0.0.1:{self.port}",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "httpTimeout": "30s",
        }
        profile = {
            "schedulerName": "default-scheduler",
            "percentageOfNodesToScore": 100,
            "plugins": {"postFilter": {"disabled": [{"name": "*"}]}},
        }
        return {"extenders": [extender], "profiles": [profile]}


@contextmanager
def recording() -> Generator[Recorder]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = False
    recorder = _Handler.recorder = Recorder(server.server_address[1])
    thread = Thread(target=server.serve_forever, name="extender")
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """HTTP/1.0: a connection for each question, and no thread that waits for the next one."""

    recorder: Recorder

    def do_POST(self) -> None:
        self.recorder.write_down(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_ANSWER)))
        self.end_headers()
        self.wfile.write(_ANSWER)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing: a line for each question is no use."""
