"""A container runtime with one running container, in its own process: `cri_peer.py SOCKET ID PID ANNOTATION`.

Prints a line when it listens.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]

from partage_base.cri.schema import ContainerStatusResponse, ListContainersResponse
from partage_plugins.api.keys import CONTAINER

RUNNING = 1


@contextmanager
def runtime_with(socket: Path, container_id: str, pid: int, annotation: str) -> Generator[None]:
    command = [sys.executable, __file__, str(socket), container_id, str(pid), annotation]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        try:
            yield
        finally:
            process.kill()


def answers(container_id: str, pid: str, annotation: str) -> dict[str, bytes]:
    listed: Any = ListContainersResponse()
    one = listed.containers.add(id=container_id.encode(), state=RUNNING)
    one.annotations.add(key=CONTAINER.encode(), value=annotation.encode())
    status: Any = ContainerStatusResponse()
    status.info.add(key=b"info", value=json.dumps({"pid": int(pid)}).encode())
    return {"ListContainers": listed.SerializeToString(), "ContainerStatus": status.SerializeToString()}


class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    def __init__(self, known: dict[str, bytes]) -> None:
        self._known = known

    def service(self, handler_call_details: Any) -> Any:
        answer = self._known.get(handler_call_details.method.rpartition("/")[2])
        return None if answer is None else grpc.unary_unary_rpc_method_handler(lambda _request, _context: answer)


def main() -> None:
    socket, *words = sys.argv[1:]
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Handler(answers(*words))])
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    print("listening", flush=True)  # noqa: T201  whoever started it waits for this
    server.wait_for_termination()


if __name__ == "__main__":
    main()
