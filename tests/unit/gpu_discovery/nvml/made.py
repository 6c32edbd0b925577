"""Facts for tests, generated or fixed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from partage_gpu.nvml import wire
from partage_gpu.nvml.facts import (
    CardFacts,
    InstanceFacts,
    NodeFacts,
    Sample,
    SilentCard,
    Trouble,
    Xid,
)


def card(uuid: str, index: int = 0, **changed: Any) -> CardFacts:
    return CardFacts(
        uuid=uuid,
        index=index,
        model="H100",
        memory_bytes=1 << 36,
        compute_capability="9.0",
        pci=f"0000:{index:02x}:00.0",
        **changed,
    )


def node(*cards: CardFacts, silent: tuple[SilentCard, ...] = ()) -> NodeFacts:
    return NodeFacts(driver="580.1", cuda="13.0", cards=cards, silent=silent)


_SMALL = st.text(max_size=20)
_BYTES = st.integers(0, 1 << 45)
SILENT = st.builds(SilentCard, index=st.integers(0, 31), uuid=st.none() | _SMALL, fault=_SMALL)
INSTANCES = st.builds(InstanceFacts, uuid=_SMALL, profile=_SMALL, memory_bytes=_BYTES, used_bytes=st.none() | _BYTES)
CARDS = st.builds(
    CardFacts,
    uuid=_SMALL,
    index=st.integers(0, 31),
    minor=st.none() | st.integers(0, 31),
    model=_SMALL,
    memory_bytes=_BYTES,
    reserved_bytes=_BYTES,
    compute_capability=_SMALL,
    pci=_SMALL,
    figures=st.dictionaries(_SMALL, st.integers(0, 7), max_size=3),
    is_mig=st.booleans(),
    instances=st.lists(INSTANCES, max_size=2).map(tuple),
    links=st.dictionaries(_SMALL, st.integers(0, 36), max_size=3),
    ecc_uncorrected=st.none() | st.integers(0, (1 << 64) - 1),
    row_remap_failed=st.booleans(),
    needs_reset=st.booleans(),
    fault=st.none() | _SMALL,
)
NODES = st.builds(
    NodeFacts,
    driver=_SMALL,
    cuda=_SMALL,
    cards=st.lists(CARDS, max_size=4, unique_by=lambda one: one.uuid).map(tuple),
    silent=st.lists(SILENT, max_size=3).map(tuple),
)
_KINDS = st.sampled_from(["no-library", "no-driver", "mismatch", "starts", "slow", "hangs", "failed"])
_FIGURE = st.none() | st.floats(0, 1e9)
SAMPLES = st.builds(
    Sample,
    uuid=_SMALL,
    model=_SMALL,
    used_bytes=st.none() | _BYTES,
    total_bytes=st.none() | _BYTES,
    utilisation=_FIGURE,
    temperature_celsius=_FIGURE,
    power_watts=_FIGURE,
)
TOLD = st.one_of(
    st.just(wire.Opened()),
    st.just(wire.Working()),
    st.just(wire.Changed()),
    st.builds(wire.SnapshotTaken, NODES),
    st.builds(wire.Sampled, st.lists(SAMPLES, max_size=3).map(tuple)),
    st.builds(wire.Reported, st.builds(Xid, uuid=_SMALL, number=st.integers(0, 200))),
    st.builds(wire.Ended, st.builds(Trouble, kind=_KINDS, sentence=_SMALL)),
)
