"""Each hook of the node framework, called as its hosts call it."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from partage_plugins import DecodeError, Refused, hookimpl
from partage_plugins.api import Adjustment, ContainerKey, Device, Kind, Mount
from partage_plugins.api.node import Gauge, NodeContext
from partage_plugins.errors import AdjustmentConflict, PluginFailed, PluginNonsense
from support.sides import NODE, OWNER, THING, Thing, Things, container, granted, node_side, plugin

CONTEXT = NodeContext(node=NODE, role="crishim", root=PurePosixPath("/"), wake=lambda: None)
KEY = ContainerKey("0" * 32)


def test_partage_kind_and_partage_started_say_whose_kind_is_in_force() -> None:
    side = node_side(good=OWNER)
    assert side.owners == {"thing": "good"}
    assert side.started(CONTEXT) == []
    assert side.owners == {"thing": "good"}


def test_a_plugin_that_fails_in_partage_started_is_asked_no_more_and_its_kind_is_not_in_force() -> None:
    fails = plugin(kind=THING, started=OSError("no driver"), samples=[])
    side = node_side(fails=fails, fine=plugin(samples=[Gauge(name="x", value=1.0)]))
    (fault,) = side.started(CONTEXT)
    assert str(fault) == "plugin fails: partage_started: raised OSError: no driver"
    assert side.owners == {}
    assert [gauge.name for gauge in side.samples()] == ["x"]
    with pytest.raises(Refused, match="no plugin for thing is in force on this node"):
        side.adjust(container(), granted("t0"))


def test_partage_stopping_asks_everyone_and_returns_the_faults() -> None:
    side = node_side(a=plugin(stopping=ValueError("x")), b=plugin(kind=THING, stopping=None))
    assert [fault.plugin for fault in side.stopping()] == ["a"]


def test_partage_discover_gives_the_parts_by_kind() -> None:
    assert node_side(a=plugin(kind=THING, discover=Things(("t0",)))).discover(None) == {"thing": Things(("t0",))}
    assert node_side(a=plugin(kind=THING, discover=None)).discover(None) == {}


@pytest.mark.parametrize(
    ("part", "owned", "why"),
    [
        ({"ids": []}, {"kind": THING}, "returned dict; allowed: Things or None"),
        (Thing(), {"kind": THING}, "returned Thing; allowed: Things or None"),
        (Things(5), {"kind": THING}, "returned a wrong value"),  # type: ignore[arg-type]
        (Things(()), {}, "owns no kind"),
    ],
)
def test_nonsense_parts_are_the_plugins_fault(part: object, owned: dict[str, object], why: str) -> None:
    with pytest.raises(PluginNonsense) as caught:
        node_side(a=plugin(discover=part, **owned)).discover(())
    assert why in caught.value.why


@pytest.mark.parametrize("wrong", [5, [5], [Gauge(name="Bad name", value=1.0)], [Gauge(name="x", value="1")]])  # type: ignore[arg-type]
def test_partage_samples_are_gauges_or_the_plugins_fault(wrong: object) -> None:
    with pytest.raises(PluginNonsense, match="plugin a: partage_samples: returned a wrong value"):
        node_side(a=plugin(kind=THING, samples=wrong)).samples()


def test_partage_adjust_merges_what_all_plugins_want() -> None:
    mount = Mount(container_path="/x", host_path="/y")
    side = node_side(
        owner=OWNER,
        a=plugin(
            adjust=Adjustment(
                env={"A": "1"}, mounts=(mount,), cdi=("vendor.com/gpu=0",), enforces={Kind("thing"): ("memory",)}
            )
        ),
        b=plugin(adjust=Adjustment(env={"A": "1", "B": "2"}, annotations={"example.com/x": "y"})),
        c=plugin(adjust=None),
    )
    adjusted = side.adjust(container(), granted("part0"))
    assert adjusted.adjustment.env == {"A": "1", "B": "2"}
    assert adjusted.adjustment.mounts == (mount,)
    assert adjusted.owners["env A"] == ("a", "b")
    assert adjusted.owners["mounts /x"] == ("a",)
    assert adjusted.unenforced == {}


def test_what_nobody_enforces_is_said_by_kind() -> None:
    adjusted = node_side(owner=OWNER, a=plugin(adjust=Adjustment())).adjust(container(), granted("part0"))
    assert adjusted.unenforced == {"thing": ("memory",)}
    assert node_side(owner=OWNER).adjust(container(), granted("t0")).unenforced == {}


def test_a_grant_of_a_kind_without_an_owner_is_refused() -> None:
    with pytest.raises(Refused, match="no plugin for thing is in force"):
        node_side(a=plugin(adjust=None)).adjust(container(), granted("t0"))


def test_a_conflict_names_both_plugins_and_the_field_and_no_value() -> None:
    side = node_side(
        owner=OWNER,
        a=plugin(adjust=Adjustment(env={"A": "secret1"})),
        b=plugin(adjust=Adjustment(env={"A": "secret2"})),
    )
    with pytest.raises(AdjustmentConflict) as caught:
        side.adjust(container(), granted("t0"))
    assert str(caught.value) == "plugin a and b: partage_adjust: both set env A, to different values; block one of them"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"env": {}}, "returned dict; allowed: an Adjustment or None"),
        (Adjustment(env={"A": 1}), "wrong value"),  # type: ignore[dict-item]
        (Adjustment(env={"A=B": "1"}), "wrong value"),
        (Adjustment(env={"A": "nul\0"}), "wrong value"),
        (Adjustment(mounts=(Mount(container_path="relative", host_path="/y"),)), "wrong value"),
        (Adjustment(devices=(Device(container_path="/d", host_path="/d", permissions="x"),)), "wrong value"),  # type: ignore[arg-type]
        (Adjustment(cdi=("no-slash",)), "wrong value"),
        (Adjustment(enforces={Kind("thing"): ("speed",)}), "wrong value"),  # type: ignore[dict-item]
        (Adjustment(cdi=("v.com/c=a", "v.com/c=a")), "sets cdi v.com/c=a twice"),
        (Adjustment(annotations={"alloc.partage.dev/container": "x"}), "belongs to partage"),
    ],
)
def test_nonsense_adjustments_are_the_plugins_fault(wrong: object, why: str) -> None:
    with pytest.raises(PluginNonsense) as caught:
        node_side(owner=OWNER, a=plugin(adjust=wrong)).adjust(container(), granted("t0"))
    assert caught.value.plugin == "a"
    assert why in caught.value.why


def test_a_plugins_refusal_is_passed_on_and_its_exception_is_a_fault() -> None:
    with pytest.raises(Refused, match="not this one"):
        node_side(owner=OWNER, a=plugin(adjust=Refused("not this one"))).adjust(container(), granted("t0"))
    with pytest.raises(PluginFailed, match="plugin a: partage_adjust: raised ZeroDivisionError"):
        node_side(owner=OWNER, a=plugin(adjust=ZeroDivisionError())).adjust(container(), granted("t0"))


def test_partage_removed_asks_everyone_even_after_a_fault() -> None:
    asked: list[str] = []

    class Fine:
        @hookimpl
        def partage_removed(self, key: str) -> None:
            asked.append(key)

    side = node_side(a=plugin(removed=OSError("busy")), b=Fine)
    with pytest.raises(PluginFailed, match="plugin a: partage_removed: raised OSError: busy"):
        side.removed(KEY)
    assert asked == [KEY]


@pytest.mark.parametrize("no", [Refused("no"), DecodeError("x", path="$", value="y", allowed="z")])
def test_a_refusal_where_none_is_allowed_is_the_plugins_fault(no: Exception) -> None:
    (fault,) = node_side(a=plugin(kind=THING, started=no)).started(CONTEXT)
    assert "refused where it may not" in str(fault)


def test_a_plugin_that_cannot_clean_up_yet_says_so_and_the_others_are_asked() -> None:
    asked: list[str] = []

    class Fine:
        @hookimpl
        def partage_removed(self, key: str) -> None:
            asked.append(key)

    with pytest.raises(Refused, match="not yet"):
        node_side(a=plugin(removed=Refused("not yet")), b=Fine).removed(KEY)
    assert asked == [KEY]
    wrong = DecodeError("x", path="$", value="y", allowed="z")
    with pytest.raises(PluginNonsense, match="refused where it may not"):
        node_side(a=plugin(kind=THING, removed=wrong)).removed(KEY)
