"""Users get the same message for the same cause, and it contains nothing that not every reader of the pod may see."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partage_crishim.decisions import Code, Refuse
from partage_plugins.api import Device, Mount
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.errors import (
    AdjustmentConflict,
    PluginCrashed,
    PluginError,
    PluginFailed,
    PluginHung,
    PluginNonsense,
    Refused,
)
from unit.crishim.rules.allocations import allocation, card, grant, inventory, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage, enforced

SECRET = "s3cr3t-0123456789"  # noqa: S105  a value that stands for one
HERS = signed(allocation()) | {"team.example.com/token": SECRET, "other": f"{SECRET}-o"}
GOOD = Create(
    annotations=HERS,
    env=[("TOKEN", SECRET), ("NVIDIA_VISIBLE_DEVICES", f"{SECRET}-v")],
)
ContainerChange = dict[str, Any]
CAUSES: dict[str, ContainerChange] = {
    "changed text": {"annotations": {**HERS, ALLOCATION: HERS[ALLOCATION] + " "}},
    "secret for text": {"annotations": {**HERS, ALLOCATION: SECRET}},
    "secret in the text": {"annotations": HERS | signed(allocation(v=SECRET))},
    "secret card": {"annotations": HERS | signed(allocation(grant(card=f"{SECRET} /")))},
    "secret crit": {"annotations": HERS | signed(allocation(crit=[SECRET]))},
    "secret for a signature": {"annotations": {**HERS, SIGNATURE: SECRET}},
    "no signature": {"annotations": {k: v for k, v in HERS.items() if k != SIGNATURE}},
    "another pod": {"uid": "another"},
    "privileged": {"privileged": True},
    "volume": {"mounts": [("/run/partage", f"/{SECRET}")]},
    "guard": {"container": "side", "annotations": HERS | {"nvidia.cdi.k8s.io/x": SECRET}},
}


@pytest.mark.parametrize("cause", CAUSES)
def test_no_refusal_says_a_value_and_each_says_the_same_again(cause: str, crishim: Crishim) -> None:
    create = replace(GOOD, **CAUSES[cause])
    sentences = {crishim.refusal(replace(create, attempt=attempt, sandbox=f"s{attempt}")) for attempt in range(3)}
    assert len(sentences) == 1
    (sentence,) = sentences
    assert SECRET not in sentence
    assert HERS[SIGNATURE].partition(":")[2] not in sentence


FAULTS: list[tuple[PluginError | Refused, str]] = [
    (
        PluginFailed("gpu", "partage_adjust", "raised KeyError", f"'{SECRET}'"),
        "plugin gpu: partage_adjust: raised KeyError; crishim's log has more",
    ),
    (
        PluginNonsense("gpu", "partage_adjust", "returned an Adjustment with a wrong value", SECRET),
        "plugin gpu: partage_adjust: returned an Adjustment with a wrong value; crishim's log has more",
    ),
    (
        PluginHung("gpu", "partage_adjust", "took longer than 2 s and was killed"),
        "plugin gpu: partage_adjust: took longer than 2 s and was killed",
    ),
    (
        PluginCrashed("gpu", "partage_adjust", "its process was killed by SIGSEGV"),
        "plugin gpu: partage_adjust: its process was killed by SIGSEGV",
    ),
    (
        AdjustmentConflict("a and b", "partage_adjust", "both set env PATH, to different values; block one of them"),
        "plugin a and b: partage_adjust: both set env PATH, to different values; block one of them",
    ),
    (Refused("FPGA board fpga7 is gone"), "FPGA board fpga7 is gone"),
    (Refused("two\nlines\x1b[31m and " + "more" * 500), "two lines [31m and " + "more" * 245 + "…"),
]


@pytest.mark.parametrize(("fault", "sentence"), FAULTS)
def test_a_plugins_fault_names_plugin_and_hook(
    fault: PluginError | Refused, sentence: str, stage: Stage, crishim: Crishim
) -> None:
    stage.fake.answer = fault
    decision = crishim.decision(replace(GOOD, env=()))
    assert decision == Refuse(Code.FAILED_PRECONDITION, sentence)
    assert stage.told[-1].error is fault


ANSWERS = st.sampled_from(
    [
        enforced(),
        enforced(mounts=(Mount(container_path="/lib/x", host_path="/nowhere"),)),
        enforced(devices=(Device(container_path="/dev/x", host_path="/etc/passwd"),)),
        PluginFailed("gpu", "partage_adjust", "raised ValueError", SECRET),
    ]
)
VALUES = st.sampled_from([SECRET, f"{SECRET}{{", f'{{"v":"{SECRET}"}}', f"{SECRET}:{SECRET}"])
NAMES = st.sampled_from([ALLOCATION, SIGNATURE, "nvidia.cdi.k8s.io/x", "partage.dev/x", "alloc.partage.dev/other"])
CREATES = st.builds(
    Create,
    annotations=st.one_of(
        st.just(HERS),
        st.dictionaries(NAMES, VALUES),
        st.dictionaries(NAMES, VALUES).map(HERS.__or__),
    ),
    env=st.lists(st.tuples(st.sampled_from(["A", "NVIDIA_VISIBLE_DEVICES", "LD_PRELOAD"]), VALUES), max_size=3),
    mounts=st.lists(st.tuples(st.sampled_from(["/run", "/x"]), VALUES), max_size=2),
    container=st.sampled_from(["main", "side"]),
    uid=st.sampled_from([GOOD.uid, "other"]),
    privileged=st.booleans(),
)
CARDS = st.sampled_from([{}, {"health": "lost"}, {"pool": "kubelet"}, {"id": "GPU-else"}])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(CREATES, ANSWERS, CARDS)
def test_whatever_is_asked_no_value_is_ever_told(create: Create, answer: Any, changes: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(root=Path(folder))
        stage.fake.answer = answer
        stage.write_inventory(inventory(card(**({"id_": grant()["card"], "index": 0} | changes))))
        decisions = [crishim.decision(create) for crishim in (stage.crishim(), stage.crishim())]
    assert decisions[0] == decisions[1] or not isinstance(decisions[0], Refuse)
    if isinstance(decisions[0], Refuse):
        assert SECRET not in decisions[0].sentence
        assert decisions[0].sentence.isprintable()
