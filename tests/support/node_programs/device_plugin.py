"""A typical device plugin for kubelet: serves one card under a resource name.

Run on the node as `python device_plugin.py RESOURCE CARD`; serves until it is killed. Its messages are few and small,
so they are encoded by hand.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc  # type: ignore[import-untyped]

FOLDER = "/var/lib/kubelet/device-plugins"
SERVICE = "v1beta1.DevicePlugin"
FOREVER = threading.Event()


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field: bytes, text or a message; all of ours are short."""
    return bytes((number << 3 | 2, len(content))) + content


class Plugin(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, card: bytes) -> None:
        self._card = card

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method.rpartition("/")[2]
        if method == "ListAndWatch":
            return grpc.unary_stream_rpc_method_handler(self._listed)
        answers = {"GetDevicePluginOptions": b"", "Allocate": self._allocated()}
        return grpc.unary_unary_rpc_method_handler(lambda _, __: answers[method])

    def _listed(self, _: bytes, __: Any) -> Iterator[bytes]:
        yield field(1, field(1, self._card) + field(2, b"Healthy"))
        FOREVER.wait()

    def _allocated(self) -> bytes:
        return field(1, field(1, field(1, b"NVIDIA_VISIBLE_DEVICES") + field(2, self._card)))


def main(resource: str, card: str) -> None:
    endpoint = resource.replace("/", "-") + ".sock"
    server = grpc.server(ThreadPoolExecutor(max_workers=8), handlers=[Plugin(card.encode())])
    server.add_insecure_port(f"unix://{FOLDER}/{endpoint}")
    server.start()
    with grpc.insecure_channel(
        f"unix://{FOLDER}/kubelet.sock", options=(("grpc.default_authority", "localhost"),)
    ) as channel:
        said = field(1, b"v1beta1") + field(2, endpoint.encode()) + field(3, resource.encode())
        channel.unary_unary("/v1beta1.Registration/Register")(said, timeout=10)
    FOREVER.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
