"""Reads a rig's state: the data of its control plane, and the files and processes on its nodes.

Everything is found by the slot's folder, so it works alike for a whole rig, a bare control plane and a single machine.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from rig.control.readiness import trusting
from rig.control.settings import APISERVER_PORT, ETCD_PORT
from rig.identity.people import ADMIN, Certified
from rig.machine import cgroups
from rig.machine.addresses import Addresses
from rig.machine.cleanup import processes_of
from rig.machine.slots import Slot
from rig.nodes.machine import PID
from rig.shared.state import REGISTRY, State, files, marks, objects, process

_ANSWERS_WITHIN_S: Final = 3.0
_IDENTITY: Final = "identity"
_RUN: Final = "run/partage"


def look(slot: Slot) -> State:
    there = Counter([*_on_host(slot), *_cgroups(slot), *_on_nodes(slot)])
    try:
        return State(Counter(_stored(slot)), there)
    except (OSError, http.client.HTTPException) as error:
        return State(there=there, silent=str(error))


def _stored(slot: Slot) -> list[str]:
    if not (slot.folder / _IDENTITY).exists():
        return []
    host = str(Addresses(slot.number).host)
    etcd = _context(slot, "etcd-ca", "etcd-client-readiness")
    found = _asked((host, ETCD_PORT), etcd, "POST", "/v3/kv/range", _EVERY_KEY)
    keys = [base64.b64decode(each["key"]).decode() for each in found["kvs"]]
    api = _context(slot, "ca", ADMIN.user)
    nodes = _asked((host, APISERVER_PORT), api, "GET", "/api/v1/nodes")["items"]
    return [*objects(keys), *(mark for node in nodes for mark in marks(node))]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_EVERY_KEY: Final = json.dumps(
    {"key": _base64(REGISTRY), "range_end": _base64(REGISTRY[:-1] + chr(ord(REGISTRY[-1]) + 1)), "keys_only": True}
)


@cache
def _context(slot: Slot, authority: str, client: str) -> ssl.SSLContext:
    folder = slot.folder / _IDENTITY
    return trusting(folder / f"{authority}.crt", Certified(folder / f"{client}.crt", folder / f"{client}.key"))


def _asked(address: tuple[str, int], context: ssl.SSLContext, method: str, path: str, body: str | None = None) -> Any:
    connection = http.client.HTTPSConnection(*address, timeout=_ANSWERS_WITHIN_S, context=context)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        content = response.read()
        if response.status != http.client.OK:
            raise http.client.HTTPException(f"https://{address[0]}:{address[1]}{path} answered {response.status}")
        return json.loads(content)
    finally:
        connection.close()


def _on_host(slot: Slot) -> Iterator[str]:
    """Processes of the rig outside its nodes."""
    here = Path("/proc/self/ns/pid").readlink()
    for pid in processes_of(slot.folder):
        yield from _process(Path("/proc", str(pid)), here)


def _process(entry: Path, namespace: Path | None = None) -> Iterator[str]:
    """A process's line; none if it has ended, or is in another PID namespace."""
    try:
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        if command and namespace in (None, (entry / "ns/pid").readlink()):
            yield from process(command)
    except OSError:
        return


def _cgroups(slot: Slot) -> set[str]:
    """Paths of cgroups below the rig's, of all hierarchies."""
    tops = [hierarchy / cgroups.OURS / str(slot.number) for hierarchy in cgroups.hierarchies()]
    return {f"cgroup {Path(path).relative_to(top)}" for top in tops for path, _, _ in os.walk(top)}


def _on_nodes(slot: Slot) -> Iterator[str]:
    """Processes, also those in containers, and files below /run/partage."""
    for file in (slot.folder / "nodes").glob(f"*/{PID}"):
        node, root = file.parent.name, Path(f"/proc/{file.read_text()}/root")
        lines = (line for entry in (root / "proc").glob("[0-9]*") for line in _process(entry))
        yield from (f"{node}: {line}" for line in lines)
        for folder, folders, names in os.walk(root / _RUN):
            inside = Path("/", Path(folder).relative_to(root))
            yield from files(node, (str(inside / name) for name in (*folders, *names)))
