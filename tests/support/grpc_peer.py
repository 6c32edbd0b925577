"""A gRPC server of another implementation on a unix socket, in its own process: `grpc_peer.py SOCKET`.

Methods are Echo, Large (as many bytes as requested), Headers, Refuse, Slow. Prints a line when it listens.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc  # type: ignore[import-untyped]

Answer = Callable[[bytes, Any], bytes]


def _refuse(request: bytes, context: Any) -> bytes:
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, request.decode())
    raise AssertionError


def _slow(request: bytes, context: Any) -> bytes:
    time.sleep(float(request))
    return request


ANSWERS: dict[str, Answer] = {
    "Echo": lambda request, _: request,
    "Large": lambda request, _: b"x" * int(request),
    "Headers": lambda request, context: repr(sorted(context.invocation_metadata())).encode() + request,
    "Refuse": _refuse,
    "Slow": _slow,
}


class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    def service(self, handler_call_details: Any) -> Any:
        answer = ANSWERS.get(handler_call_details.method.rpartition("/")[2])
        return None if answer is None else grpc.unary_unary_rpc_method_handler(answer)


def main() -> None:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    server = grpc.server(ThreadPoolExecutor(8), handlers=[Handler()], options=options)
    server.add_insecure_port(f"unix:{sys.argv[1]}")
    server.start()
    print("listening", flush=True)  # noqa: T201  whoever started it waits for this
    server.wait_for_termination()


if __name__ == "__main__":
    main()
