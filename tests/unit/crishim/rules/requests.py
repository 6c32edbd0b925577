"""CreateContainer requests as kubelet writes them, and what a runtime reads from rewritten ones, without our schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from support import wire

UID: Final = "8f6b1a52-6f1e-4c3e-9b39-8a1a1f0c2d11"
POD_PIDS, NODE_PIDS, TARGET_PIDS = 0, 2, 3
Text = str | bytes
Mounts = Iterable[tuple[Text, Text]]
Raw = bytes  # a request has a method of this name


@dataclass(frozen=True, kw_only=True)
class Create:
    """One request, with the fields that tests change."""

    container: str = "main"
    attempt: int = 0
    uid: str = UID
    namespace: str = "default"
    pod: str = "trainer"
    sandbox: str = "sandbox-1"
    annotations: Mapping[str, Text] = field(default_factory=dict[str, Text])
    env: Iterable[tuple[Text, Text]] = (("PATH", "/bin"), ("HOME", "/root"))
    mounts: Mounts = (("/etc/hosts", "/var/lib/kubelet/pods/x/etc-hosts"),)
    devices: Mounts = ()
    labels: Mapping[str, Text] = field(default_factory=lambda: {"app": "x"})
    own_annotations: Mapping[str, Text] = field(default_factory=lambda: {"io.kubernetes.container.hash": "1f"})
    cdi: Iterable[str] = ()
    privileged: bool = False
    capabilities: Iterable[str] = ()
    ambient: Iterable[str] = ()
    pids: int = 1
    target: str = ""
    sandbox_pids: int = 0
    unknown: Raw = b""
    """Unknown fields, appended to every message."""

    def bytes(self) -> bytes:
        return wire.message((1, self.sandbox), (2, self._config()), (3, self._sandbox_config())) + self.unknown

    def _config(self) -> Raw:
        metadata = wire.message((1, self.container), (2, self.attempt)) + self.unknown
        image = wire.message((1, "sha256:0123"), (18, "trainer:1")) + self.unknown
        return (
            wire.message((1, metadata), (2, image), (3, "sh"), (4, "-c"), (4, "true"))
            + b"".join(wire.field(6, wire.pair(name, value) + self.unknown) for name, value in self.env)
            + b"".join(
                wire.field(7, wire.message((1, inside), (2, outside)) + self.unknown) for inside, outside in self.mounts
            )
            + b"".join(wire.field(8, wire.message((1, a), (2, b), (3, "rwm"))) for a, b in self.devices)
            + wire.field(9, wire.pair("io.kubernetes.pod.uid", self.uid))
            + b"".join(wire.field(10, wire.pair(*each)) for each in self.own_annotations.items())
            + wire.field(11, "main/0.log")
            + wire.field(15, self._linux())
            + b"".join(wire.field(17, wire.message((1, name))) for name in self.cdi)
            + self.unknown
        )

    def _linux(self) -> Raw:
        added = wire.message(
            *((1, each) for each in self.capabilities), (2, "NET_RAW"), *((3, each) for each in self.ambient)
        )
        namespaces = wire.message((2, self.pids), (4, self.target))
        security = wire.message((1, added), (2, int(self.privileged)), (3, namespaces), (5, b"\x08\x01"))
        return wire.message((1, wire.message((3, 512))), (2, security + self.unknown))

    def _sandbox_config(self) -> Raw:
        metadata = wire.message((1, self.pod), (2, self.uid), (3, self.namespace), (4, 1)) + self.unknown
        linux = wire.message((2, wire.message((1, wire.message((2, self.sandbox_pids))))))
        return (
            wire.message((1, metadata), (2, "host"))
            + b"".join(wire.field(6, wire.pair(*each)) for each in self.labels.items())
            + b"".join(wire.field(7, wire.pair(*each)) for each in self.annotations.items())
            + wire.field(8, linux)
            + self.unknown
        )


@dataclass(frozen=True)
class Seen:
    """What a runtime would read from a request."""

    raw: bytes

    @property
    def config(self) -> bytes:
        return wire.all_of(self.raw, 2)[0]

    @property
    def env(self) -> list[tuple[bytes, bytes]]:
        return wire.pairs(self.config, 6)

    @property
    def mounts(self) -> list[tuple[bytes, bytes]]:
        return wire.pairs(self.config, 7)

    @property
    def devices(self) -> list[tuple[bytes, bytes]]:
        return wire.pairs(self.config, 8)

    @property
    def annotations(self) -> dict[bytes, bytes]:
        found = wire.pairs(self.config, 10)
        assert len(dict(found)) == len(found), "an annotation twice"
        return dict(found)

    @property
    def cdi(self) -> list[bytes]:
        return [wire.all_of(each, 1)[0] for each in wire.all_of(self.config, 17)]

    def variable(self, name: str) -> bytes:
        values = [value for key, value in self.env if key == name.encode()]
        assert len(values) == 1, f"{name} stands {len(values)} times"
        return values[0]
