"""What one decode, one verification and one request cost on the paths that every pod and every node update takes."""

from __future__ import annotations

import json
from functools import partial
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.harness import Bench
from partage_plugins.codecs import decode_allocation, decode_inventory, decode_signature, key_id, sign, verify
from partage_plugins.codecs.signature import DOMAIN
from partage_plugins.errors import SignatureRefused
from partage_plugins.sides.scheduler import SchedulerSide
from partage_plugins.vocabulary import GPU, ContainerName, GpuGrant, GpuPart
from partage_scheduler.decision import Ledger
from support.dialect_rows import FILES, all_plugins_where, rows_of
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
    """8 cards with the links between all of them, as one string from an annotation."""
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
    """Of that allocation, by the one key that the node knows."""
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
    """The first row of each, which is what its users write most, read with all dialects on."""
    for file in FILES:
        row = rows_of(file)[0]
        side, pod = SchedulerSide(all_plugins_where(row.nvidia_gpu), Ledger()), row.read()
        bench.engaged(f"a pod of {file.stem} asks for cards", GPU.name in side.requests(pod).kinds)
        taken = bench.time(f"dialects: a pod of {file.stem}", partial(side.requests, pod))
        bench.bar(f"a pod of {file.stem} is read", taken.median_us, at_most=REQUEST_US, unit="us")


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
