"""The image of a sandbox, which holds a pod's namespaces: a program that only waits. Pure.

Registries have one, but a machine may reach none, and one more download is one more thing that fails. The program is
so small that it is written here as the processor reads it: no compiler and no package is needed to have it. As process
1 of its own namespace it gets no signal that it has no handler for, but SIGKILL, by which the runtime ends a sandbox.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
from collections.abc import Mapping
from typing import Final

from partage_cli.machine.setup.containerd import PAUSE_IMAGE
from partage_cli.machine.setup.errors import Unfit

_X86_64: Final = bytes.fromhex(
    "b822000000"  # again: mov eax, 34 (pause)
    "0f05"  #              syscall
    "ebf7"  #              jmp again
)
_AARCH64: Final = b"".join(
    word.to_bytes(4, "little")
    for word in (
        0xD2800000,  # again: mov x0, 0: no descriptors,
        0xD2800001,  #        mov x1, 0
        0xD2800002,  #        mov x2, 0: no end,
        0xD2800003,  #        mov x3, 0: no other mask of signals
        0xD2800928,  #        mov x8, 73 (ppoll)
        0xD4000001,  #        svc 0
        0x17FFFFFA,  #        b again
    )
)
_MACHINES: Final[Mapping[str, tuple[int, str, bytes]]] = {
    "x86_64": (62, "amd64", _X86_64),
    "aarch64": (183, "arm64", _AARCH64),
}
"""By uname's word: ELF's number, the registries' word, and the code."""
_AT: Final = 0x400000
_ELF: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_READ_AND_RUN: Final = 5
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"


def program(machine: str) -> bytes:
    """An ELF file of one segment: its headers, and the code behind them."""
    if machine not in _MACHINES:
        raise Unfit(f"partage runs containers on {' and '.join(_MACHINES)}, and this machine is {machine}")
    number, _, code = _MACHINES[machine]
    headers = _ELF.size + _SEGMENT.size
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = _ELF.pack(ident, 2, number, 1, _AT + headers, _ELF.size, 0, 0, _ELF.size, _SEGMENT.size, 1, 0, 0, 0)
    size = headers + len(code)
    return head + _SEGMENT.pack(1, _READ_AND_RUN, 0, _AT, _AT, size, size, 0x1000) + code


def archive(machine: str) -> bytes:
    """The image as `ctr images import` takes it: an OCI layout in a tar file."""
    layer = _tar({"pause": program(machine)}, mode=0o755)
    config = {
        "architecture": _MACHINES[machine][1],
        "os": "linux",
        "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    blobs = [(_LAYER, layer), (_CONFIG, _json(config))]
    described = [_described(kind, content) for kind, content in blobs]
    manifest = _json({"schemaVersion": 2, "mediaType": _MANIFEST, "config": described[1], "layers": described[:1]})
    named = _described(_MANIFEST, manifest) | {"annotations": {"io.containerd.image.name": PAUSE_IMAGE}}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [named]}),
    }
    contents = [*(content for _, content in blobs), manifest]
    return _tar(files | {f"blobs/{_digest(content).replace(':', '/')}": content for content in contents}, mode=0o644)


def _described(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _tar(files: Mapping[str, bytes], *, mode: int) -> bytes:
    """Without times, so that the same image has the same digest each time."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size, header.mode = len(content), mode
            tar.addfile(header, io.BytesIO(content))
    return whole.getvalue()
