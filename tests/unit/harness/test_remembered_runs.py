"""A run of critest is remembered whole, for exactly what decided it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.critest import Outcome, Result, Run, key_of_straight, recalled, remember
from rig.images import Image
from rig.programs import Programs

NAMES = ("bridge", "containerd", "containerd-shim-runc-v2", "critest", "docker-registry", "iptables", "runc")
PLUGINS = ("host-local", "loopback", "portmap")
RUN = Run(
    seed=1,
    known=frozenset({"a", "b", "c"}),
    selected=frozenset({"a", "b"}),
    results={"a": Result("a", Outcome.PASSED, "", 0.5), "b": Result("b", Outcome.SKIPPED, "why", 1.5)},
    seconds=2.0,
)
STOCK = {"busybox": Image.of([])}
CONDITIONS = {"no AppArmor": True}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    monkeypatch.setenv("PARTAGE_RIG_CACHE", str(tmp_path / "cache"))
    for name in (*NAMES, *PLUGINS):
        (tmp_path / name).write_text(name)
    return Programs({name: tmp_path / name for name in NAMES})


def test_a_run_is_recalled_as_it_was_by_its_key_alone(programs: Programs) -> None:
    key = key_of_straight(programs, STOCK, CONDITIONS, 1)
    assert recalled(key) is None
    remember(key, RUN, ("a file",))
    found = recalled(key)
    assert found is not None
    assert (found.run, found.left) == (RUN, ("a file",))
    assert recalled("another") is None


def test_what_is_no_run_is_not_recalled(programs: Programs, tmp_path: Path) -> None:
    remember("key", RUN, ())
    (kept,) = (tmp_path / "cache/critest").iterdir()
    kept.write_bytes(kept.read_bytes()[:50])
    assert recalled("key") is None


def test_programs_images_conditions_and_order_decide_the_key(programs: Programs) -> None:
    stock = {"busybox": STOCK["busybox"].labelled(name="another")}
    keys = {
        key_of_straight(programs, STOCK, CONDITIONS, 1),
        key_of_straight(programs, stock, CONDITIONS, 1),
        key_of_straight(programs, STOCK, {"no AppArmor": False}, 1),
        key_of_straight(programs, STOCK, CONDITIONS, 2),
    }
    for name in (*NAMES, *PLUGINS):
        (programs["runc"].parent / name).write_text("a newer one")
        keys.add(key_of_straight(programs, STOCK, CONDITIONS, 1))
    assert len(keys) == 4 + len(NAMES) + len(PLUGINS)
    assert key_of_straight(programs, STOCK, CONDITIONS, 1) in keys
