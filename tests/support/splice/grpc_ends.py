"""A gRPC server or client of another make, as a process: grpcio's, on the core that C++, Ruby and others share.

grpc_ends.py runtime SOCKET     answers; prints one line of JSON for each request
grpc_ends.py client SOCKET      reads one line of JSON for each call to make, and prints what came of it
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import grpc  # type: ignore[import-untyped]

_OPTIONS: Final = [("grpc.max_receive_message_length", 32 << 20), ("grpc.default_authority", "localhost")]
_SERVICE: Final = "/runtime.v1.RuntimeService/"


def digest(data: bytes) -> str:
    return f"{len(data)} {sha256(data).hexdigest()[:16]}"


def say(said: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def plain(data: bytes) -> bytes:
    return data


class Answers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def service(self, handler_call_details: Any) -> Any:
        method: str = handler_call_details.method
        if method.endswith("GetContainerEvents"):
            return grpc.unary_stream_rpc_method_handler(self.events, plain, plain)
        handlers: dict[str, Callable[[bytes, Any], bytes]] = {"Status": self.fail, "ExecSync": self.hang}
        return grpc.unary_unary_rpc_method_handler(handlers.get(method.removeprefix(_SERVICE), self.echo), plain, plain)

    def echo(self, request: bytes, _: Any) -> bytes:
        say({"got": digest(request)})
        return request

    def fail(self, _: bytes, context: Any) -> bytes:
        """With details and metadata, beyond what one frame holds."""
        context.set_trailing_metadata((("x-more-bin", bytes(range(256))), ("x-long", "l" * 6000)))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not thís\n")
        return b""

    def hang(self, _: bytes, context: Any) -> bytes:
        cancelled = threading.Event()
        context.add_callback(cancelled.set)
        say({"hanging": True})
        cancelled.wait(20)
        say({"cancelled": not context.is_active()})
        return b""

    def events(self, request: bytes, _: Any) -> Iterator[bytes]:
        for number in range(5):
            yield request + b"%d" % number


def runtime(socket: str) -> None:
    server = grpc.server(ThreadPoolExecutor(8), handlers=[Answers()], options=_OPTIONS)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    say({"ready": True})
    sys.stdin.read()
    server.stop(0).wait()


def client(socket: str) -> None:
    """Makes the calls that are asked for, all on one connection."""
    with grpc.insecure_channel(f"unix:{socket}", options=_OPTIONS) as channel:
        for line in sys.stdin:
            say(result(channel, Asked(**json.loads(line))))


@dataclass(frozen=True)
class Asked:
    method: str
    size: int = 0
    timeout: float = 20
    cancel: float = 0
    gzip: bool = False


def result(channel: grpc.Channel, asked: Asked) -> dict[str, object]:
    method, body = asked.method, (b"0123456789" * (asked.size // 10 + 1))[: asked.size]
    how: dict[str, Any] = {"timeout": asked.timeout, "compression": grpc.Compression.Gzip if asked.gzip else None}
    try:
        if method == "GetContainerEvents":
            each = channel.unary_stream(_SERVICE + method, plain, plain)(body, **how)
            return {"code": "OK", "messages": [message.decode() for message in each]}
        call = channel.unary_unary(_SERVICE + method, plain, plain).future(body, **how)
        if asked.cancel:
            threading.Timer(asked.cancel, call.cancel).start()
        return {"code": "OK", "got": digest(call.result())}
    except grpc.RpcError as error:
        failed: Any = error
        told = {
            key: value if isinstance(value, bytes) else value.encode()
            for key, value in failed.trailing_metadata() or ()
        }
        trailing = {key: digest(value) for key, value in told.items()}
        return {"code": failed.code().name, "details": failed.details(), "trailing": trailing}
    except grpc.FutureCancelledError:
        return {"code": "CANCELLED"}


if __name__ == "__main__":
    {"runtime": runtime, "client": client}[sys.argv[1]](sys.argv[2])
