"""Cost of a decode, a verification and a request on the paths of every pod and every node update."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from statistics import mean, median
from typing import Final, Protocol, runtime_checkable

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.harness import Bench
from partage_plugins.api import GPU, ContainerName, GpuGrant, GpuPart, Kind
from partage_plugins.codecs import decode_allocation, decode_inventory, decode_signature, key_id, sign, verify
from partage_plugins.codecs.signature import DOMAIN
from partage_plugins.errors import PartageError, SignatureRefused
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.decision import Ledger
from support.dialect_rows import FILES, Row, all_plugins_where, rows_of
from unit.codecs import documents

INVENTORY_US: Final = 20
ALLOCATION_US: Final = 10
SIGNATURE_US: Final = 200
REQUEST_US: Final = 20
KINDS: Final = (GPU,)
PRIVATE: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC: Final = PRIVATE.public_key()
KEYS: Final = {key_id(PUBLIC): PUBLIC}


def measure_inventory(bench: Bench) -> None:
    """8 cards with links between all of them, as one annotation string."""
    text = documents.text_of(documents.inventory(8))
    part = decode_inventory(text, KINDS).part(GPU)
    engaged = isinstance(part, GpuPart) and len(part.cards) == 8 and [len(row) for row in part.links] == [8] * 8
    bench.engaged("the inventory has 8 typed cards and 8x8 links", engaged)
    bench.figure("inventory_bytes", len(text.encode()))
    bench.time("inventory: json.loads, no types", lambda: json.loads(text))
    bench.time("inventory: msgspec, no types", lambda: msgspec.json.decode(text))
    ours = bench.time("inventory: decode_inventory", lambda: decode_inventory(text, KINDS))
    bench.bar("an inventory of 8 cards decodes", ours.median_us, at_most=INVENTORY_US, unit="us")


def measure_allocation(bench: Bench) -> None:
    text = documents.text_of(documents.allocation())
    grants = decode_allocation(text, KINDS).of(GPU)[ContainerName("main")]
    bench.engaged(
        "the grant is typed and right", [type(grant) for grant in grants] == [GpuGrant] and grants[0].share_milli == 500
    )
    bench.figure("allocation_bytes", len(text.encode()))
    bench.time("allocation: json.loads, no types", lambda: json.loads(text))
    bench.time("allocation: msgspec, no types", lambda: msgspec.json.decode(text))
    ours = bench.time("allocation: decode_allocation", lambda: decode_allocation(text, KINDS))
    bench.bar("an allocation decodes", ours.median_us, at_most=ALLOCATION_US, unit="us")


def measure_signature(bench: Bench) -> None:
    """The signature of that allocation, by the only key that the node knows."""
    text = documents.text_of(documents.allocation())
    signature = sign(text, PRIVATE)
    raw, signed = decode_signature(signature)[1], DOMAIN + text.encode()
    bench.engaged("a good signature is believed", believed(text, signature))
    bench.engaged("a forged signature is refused", not believed(text.replace("500", "900"), signature))
    bench.engaged("the reference refuses a forged one too", not verified(raw, signed + b" "))
    bench.time("signature: bare public.verify", lambda: PUBLIC.verify(raw, signed))
    ours = bench.time("signature: verify", lambda: verify(text, signature, KEYS))
    bench.bar("a signature verifies", ours.median_us, at_most=SIGNATURE_US, unit="us")


def measure_dialects(bench: Bench) -> None:
    """All rows of each dialect, with all dialects enabled; caches are cleared before each pod."""
    rounds = 3 if bench.smoke else 200
    for file in FILES:
        asking = [row for row in rows_of(file) if row.request]
        refused = [row for row in rows_of(file) if row.refused]
        bench.engaged(f"rows of {file.stem} ask for cards", all(GPU.name in asked(row) for row in asking))
        bench.engaged(f"rows of {file.stem} are refused", not any(asked(row) for row in refused))
        forgotten = any(each.__module__.startswith("partage_dialects") for each in caches())
        bench.engaged("what dialects remember is forgotten", forgotten)
        taken_ns = [reading_ns(row, rounds) for row in asking]
        bench.samples(f"dialects: {len(asking)} pods of {file.stem}", taken_ns)
        bench.figure(f"{file.stem}_slowest_us", max(taken_ns) / 1e3)
        bench.figure(f"{file.stem}_slowest_refusal_us", max(reading_ns(row, rounds) for row in refused) / 1e3)
        bench.bar(f"a pod of {file.stem} is read, on average", mean(taken_ns) / 1e3, at_most=REQUEST_US, unit="us")


def reading_ns(row: Row, rounds: int) -> float:
    """The median of single reads."""
    framework, pod, remembering = side_where(row.nvidia_gpu), row.read(), caches()
    taken: list[int] = []
    for _ in range(rounds):
        for each in remembering:
            each.cache_clear()
        started = time.perf_counter_ns()
        with suppress(PartageError):
            framework.requests(pod)
        taken.append(time.perf_counter_ns() - started)
    return median(taken)


def asked(row: Row) -> frozenset[Kind]:
    try:
        return side_where(row.nvidia_gpu).requests(row.read()).kinds
    except PartageError:
        return frozenset()


@cache
def side_where(nvidia_gpu: str) -> SchedulerFramework:
    return SchedulerFramework(all_plugins_where(nvidia_gpu), Ledger())


@runtime_checkable
class Remembering(Protocol):
    def cache_clear(self) -> None: ...


@cache
def caches() -> Sequence[Remembering]:
    """The caching functions of our modules; call once all plugins are loaded."""
    ours = [module for name, module in sys.modules.items() if name.startswith("partage_")]
    return [each for module in ours for each in vars(module).values() if isinstance(each, Remembering)]


def believed(text: str, signature: str) -> bool:
    try:
        verify(text, signature, KEYS)
    except SignatureRefused:
        return False
    return True


def verified(raw: bytes, signed: bytes) -> bool:
    try:
        PUBLIC.verify(raw, signed)
    except InvalidSignature:
        return False
    return True


def main() -> int:
    bench = Bench.from_argv("codecs", libraries=["msgspec", "cryptography"])
    measure_inventory(bench)
    measure_allocation(bench)
    measure_signature(bench)
    measure_dialects(bench)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
