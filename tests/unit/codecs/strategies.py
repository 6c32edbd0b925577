"""Generated values of every wire type, for hypothesis."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from partage_plugins.api import (
    GPU,
    Allocation,
    BudgetName,
    BudgetUse,
    Card,
    CardId,
    ContainerAllocation,
    ContainerKey,
    ContainerName,
    Gang,
    GpuGrant,
    GpuPart,
    HealthCause,
    Inventory,
    Kind,
    Namespace,
    NodeName,
    PodUid,
    Reads,
    Ready,
    Tags,
    grantee_of,
)

_SMALL = st.integers(0, 65535)
_BYTES = st.integers(0, 2**62)
_GENERATION = st.integers(1, 2**53)

node_names = st.from_regex(r"\A[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z").map(NodeName)
pod_uids = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,127}\Z").map(PodUid)
container_names = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z").map(ContainerName)
container_keys = st.text("0123456789abcdef", min_size=32, max_size=32).map(ContainerKey)
card_ids = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z").map(CardId)
tag_values = st.from_regex(r"\A[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z")
short_texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=128)
printable_texts = st.text(min_size=1, max_size=128).filter(str.isprintable)
unknown_kinds = st.sampled_from(["npu", "nic-2", "x"]).map(Kind)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
raw_json = json_values.map(lambda value: msgspec.Raw(json.dumps(value).encode()))

tags = st.builds(
    Tags,
    affinity=st.none() | tag_values,
    anti_affinity=st.none() | tag_values,
    exclusion=st.none() | tag_values,
)
health = st.sampled_from(["ok", "lost"]) | short_texts.map(lambda why: f"degraded: {why}")


@st.composite
def gpu_grants(draw: st.DrawFn) -> GpuGrant:
    share = draw(st.integers(0, 1000))
    limit = draw(st.integers(share, 1000))
    return GpuGrant(
        card=draw(card_ids),
        share_milli=share,
        limit_milli=limit,
        memory_bytes=draw(_BYTES),
        movable=draw(st.booleans()),
        tags=draw(tags),
    )


@st.composite
def cards(draw: st.DrawFn, id_: CardId) -> Card:
    return Card(
        id=id_,
        index=draw(_SMALL),
        model=draw(printable_texts),
        memory_bytes=draw(_BYTES),
        beyond_bytes=draw(_BYTES),
        compute_capability=draw(st.from_regex(r"\A[0-9]{1,3}\.[0-9]{1,3}\Z")),
        pci=draw(printable_texts),
        numa_node=draw(st.none() | _SMALL),
        health=draw(health),
        cause=draw(st.none() | st.sampled_from(HealthCause)),
        pool=draw(st.sampled_from(["shared", "kubelet"])),
        mig_profile=draw(st.none() | short_texts),
        parent=draw(st.none() | card_ids),
    )


@st.composite
def gpu_parts(draw: st.DrawFn) -> GpuPart:
    ids = draw(st.lists(card_ids, max_size=4, unique=True))
    row = st.tuples(*[_SMALL for _ in ids])
    links: Any = draw(st.just(()) | st.tuples(*[row for _ in ids]))
    found = tuple(draw(cards(id_)) for id_ in ids)
    return GpuPart(driver=draw(short_texts), cuda=draw(short_texts), cards=found, links=links)


_grants = st.fixed_dictionaries({}, optional={GPU.name: st.lists(gpu_grants(), max_size=3).map(tuple)})
grants: st.SearchStrategy[dict[Kind, object]] = st.tuples(
    _grants, st.dictionaries(unknown_kinds, raw_json, max_size=2)
).map(lambda both: {**both[0], **both[1]})
gangs = st.builds(Gang, namespace=container_names.map(Namespace), name=tag_values, size=st.integers(1, 1000))
_plain_allocations = st.builds(
    Allocation,
    gen=_GENERATION,
    crit=st.lists(st.sampled_from(["gen", "containers", "gpu.memory", "movable"]), max_size=3).map(tuple),
    pod=pod_uids,
    node=node_names,
    containers=st.dictionaries(container_names, grants, max_size=4),
    gang=st.none() | gangs,
)
budget_names = container_names.map(BudgetName)
_lists = st.lists(gpu_grants(), min_size=1, max_size=3).map(tuple)


@st.composite
def _allocations_with_budgets(draw: st.DrawFn) -> Allocation:
    """Containers with their own grants, with a budget, or with both."""
    budgets = draw(st.dictionaries(budget_names, st.fixed_dictionaries({GPU.name: _lists}), min_size=1, max_size=3))
    using = draw(st.dictionaries(container_names, st.sampled_from(sorted(budgets)), max_size=4))
    own = draw(st.dictionaries(container_names, st.fixed_dictionaries({GPU.name: _lists}), max_size=3))
    counted: dict[ContainerName, Any] = {name: each for name, each in own.items() if name not in using}
    both = draw(st.lists(st.sampled_from(sorted(using)), unique=True)) if using else []
    counted |= {name: {Kind("npu"): msgspec.Raw(b"[1]")} for name in both}
    counted |= {grantee_of(name): each for name, each in budgets.items()}
    uses = tuple(sorted(BudgetUse(name, GPU.name, budget) for name, budget in using.items()))
    return msgspec.structs.replace(draw(_plain_allocations), containers=counted, uses=uses)


allocations = _plain_allocations | _allocations_with_budgets()
container_allocations = st.builds(
    ContainerAllocation,
    key=container_keys,
    gen=_GENERATION,
    grants=grants,
    budgets=st.dictionaries(st.just(GPU.name) | unknown_kinds, budget_names, max_size=2),
)
inventories = st.builds(
    Inventory,
    reads=st.builds(Reads, allocation=st.lists(_SMALL, max_size=64).map(tuple)),
    ready=st.builds(Ready, crishim=st.booleans(), broker=st.booleans()),
    kinds=st.fixed_dictionaries({}, optional={GPU.name: gpu_parts()}).flatmap(
        lambda known: st.dictionaries(unknown_kinds, raw_json, max_size=2).map(lambda more: {**known, **more})
    ),
)
