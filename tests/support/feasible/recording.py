"""An extender that records which nodes kube-scheduler's filters left, and then rejects all nodes.

So every pod stays pending, and the result for one pod does not depend on where another one went.
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
        """Nodes left for a pod that kube-scheduler has decided on; none if it never called the extender."""
        with self._lock:
            return self._left.get(uid, frozenset())

    def write_down(self, asked: Mapping[str, Any]) -> None:
        """Record one call; for several calls about one pod the last one counts."""
        with self._lock:
            self._left[asked["Pod"]["metadata"]["uid"]] = frozenset(asked["NodeNames"] or ())

    @property
    def configuration(self) -> dict[str, Any]:
        """Kube-scheduler's configuration: call the extender for all nodes, and disable preemption."""
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
    """HTTP/1.0: one connection for each request, so that no thread waits for a next one."""

    recorder: Recorder

    def do_POST(self) -> None:
        self.recorder.write_down(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_ANSWER)))
        self.end_headers()
        self.wfile.write(_ANSWER)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log no requests."""
