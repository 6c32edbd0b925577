"""Policies of a pod: one value for all of its containers, or one per container name."""

from __future__ import annotations

import pytest

from partage_plugins.api import ContainerName, GpuRequest, keys
from partage_plugins.codecs.native_annotations import Policies, read_policies
from partage_plugins.errors import DecodeError

TRAIN, SIDE = NAMES = (ContainerName("train"), ContainerName("side"))


def read(key: str, text: str) -> dict[ContainerName, Policies]:
    return read_policies({f"partage.dev/{key}": text}, names=NAMES, asking=NAMES)


@pytest.mark.parametrize(
    ("text", "train", "side"),
    [
        ("500", 500, 500),
        ("  500\n", 500, 500),
        ("train: 1000; side: 200", 1000, 200),
        ("side:200;train:1000", 1000, 200),
        ("train: 1000; side: 200;", 1000, 200),
        (" train : 1000 ;\n side : 200 ; ", 1000, 200),
        ("side: 200", None, 200),
    ],
)
def test_a_value_holds_for_all_containers_or_for_those_named(text: str, train: int | None, side: int | None) -> None:
    found = read("limit-milli", text)
    assert (found[TRAIN].limit_milli, found[SIDE].limit_milli) == (train, side)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (";", "''"),
        (";;", "''"),
        (":", "':'"),
        ("train: 1;; side: 2", "''"),
        ("train: 1;;", "''"),
        ("train: 1; 2", "'2'"),
        ("1; train: 2", "'1'"),
        ("train: 1; train: 1", "'train: 1'"),
        ("other: 1", "'other: 1'"),
        ("Train: 1", "'Train: 1'"),
        ("train side: 1", "'train side: 1'"),
    ],
)
def test_an_entry_must_name_a_container_of_the_pod_once(text: str, value: str) -> None:
    with pytest.raises(DecodeError) as refused:
        read("limit-milli", text)
    assert refused.value.path == "partage.dev/limit-milli"
    assert refused.value.value == value
    assert refused.value.allowed == "'<container>: <value>' once for each of train, side"


@pytest.mark.parametrize("empty", ["", " ", "\t\n", "train:", "train: ;", "train:;side:"])
@pytest.mark.parametrize("key", sorted(key.removeprefix(keys.PREFIX) for key in keys.POLICIES))
def test_an_empty_value_is_refused_for_every_policy(key: str, empty: str) -> None:
    with pytest.raises(DecodeError) as refused:
        read(key, empty)
    assert (refused.value.path, refused.value.value) == (f"partage.dev/{key}", "''")


@pytest.mark.parametrize("value", ["A", "a.b", "a/b", "-a", "a" * 64, "a,b", "\ud800"])
def test_a_budget_is_named_as_containers_are(value: str) -> None:
    with pytest.raises(DecodeError, match="allowed: a DNS label"):
        read("budget", value)


@pytest.mark.parametrize("key", ["affinity", "anti-affinity", "exclusion"])
@pytest.mark.parametrize("value", ["-a", "a-", "a b", "a,b", "a/b", "é", "a" * 64, "a\0", "\ud800"])
def test_a_tag_is_a_label_value(key: str, value: str) -> None:
    with pytest.raises(DecodeError, match="allowed: a label value") as refused:
        read(key, value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("key", "text", "items"),
    [
        ("models", "NVIDIA L4", ("NVIDIA L4",)),
        ("models", " NVIDIA L4 ,NVIDIA T4", ("NVIDIA L4", "NVIDIA T4")),
        ("models_not", "train: a:b", ("a:b",)),
        ("cards", "MIG-GPU-1/1/0,GPU-2", ("MIG-GPU-1/1/0", "GPU-2")),
        ("cards_not", "train: 0000:18:00.0", ("0000:18:00.0",)),
    ],
)
def test_lists_are_separated_by_commas(key: str, text: str, items: tuple[str, ...]) -> None:
    assert getattr(read(key.replace("_", "-"), text)[TRAIN].wishes, key) == items


@pytest.mark.parametrize(
    ("text", "train"), [("yes", True), ("no", False), ("train: yes; side: no", True), ("side: yes", False)]
)
def test_cards_repeat_only_where_that_is_asked_for(text: str, train: bool) -> None:  # noqa: FBT001
    assert read("repeat-cards", text)[TRAIN].wishes.repeats_cards is train


@pytest.mark.parametrize("text", ["true", "1", "Yes", "y", "yes,no"])
def test_whether_cards_repeat_is_yes_or_no(text: str) -> None:
    with pytest.raises(DecodeError, match="allowed: yes or no"):
        read("repeat-cards", text)


@pytest.mark.parametrize("key", ["models", "models-not", "cards", "cards-not"])
@pytest.mark.parametrize("text", [",", "a,", ",a", "a,,b", "a,\x01", "a,\ud800", "a," + "b" * 129])
def test_an_item_that_cannot_be_is_refused(key: str, text: str) -> None:
    with pytest.raises(DecodeError) as refused:
        read(key, text)
    assert refused.value.path == f"partage.dev/{key}"
    assert "at most 128" in refused.value.allowed or "1 to 128" in refused.value.allowed


def test_a_list_has_at_most_256_items() -> None:
    assert len(read("cards", ",".join(["a"] * 256))[TRAIN].wishes.cards) == 256
    with pytest.raises(DecodeError, match="is a list of 257; allowed: at most 256 items"):
        read("cards", ",".join(["a"] * 257))


def test_a_value_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(DecodeError, match="is 262145 characters long; allowed: at most 262144"):
        read("cards", "," * 262145)


@pytest.mark.parametrize("key", ["afinity", "", "Affinity", "inventory", "gpu-milli", "exclusion.v2"])
def test_an_unknown_policy_is_refused_by_name(key: str) -> None:
    with pytest.raises(DecodeError, match=r"allowed: partage.dev/ with affinity, .*repeat-cards") as refused:
        read(key, "a")
    value, _, meant = refused.value.value.partition(" ")
    assert (refused.value.path, value) == ("annotations", repr(f"partage.dev/{key}"))
    near = {"afinity": "affinity", "Affinity": "affinity", "exclusion.v2": "exclusion"}.get(key)
    assert meant == ("" if near is None else f"(did you mean partage.dev/{near}?)")


def test_annotations_of_others_and_our_own_outputs_are_not_read() -> None:
    others = {"alloc.partage.dev/allocation": "x", "partage.devices/x": "x", "example.com/partage.dev/x": "x"}
    nothing = Policies(limit_milli=None, wishes=GpuRequest())
    assert read_policies(others, names=NAMES, asking=(TRAIN,)) == {TRAIN: nothing}


def test_an_error_stays_short_whatever_the_pod_is_like() -> None:
    names = tuple(ContainerName(f"{i:063}") for i in range(512))
    with pytest.raises(DecodeError) as refused:
        read_policies({"partage.dev/cards": ";" + "x" * 200_000}, names=names, asking=names)
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("value", ["fgd+", "binpack", "fgd+=2,topology=1", "fgd+=2, topology=1"])
def test_a_policy_is_a_name_or_several_with_weights(value: str) -> None:
    assert read("policy", value)[TRAIN].wishes.policy == value
    assert read("policy", f"train: {value}; side: spread")[TRAIN].wishes.policy == value


@pytest.mark.parametrize("value", ["-a", "a/b", "é", "a" * 161, "a\0", "\ud800"])
def test_what_cannot_be_a_policy_is_refused_in_words(value: str) -> None:
    with pytest.raises(DecodeError, match="allowed: a policy, such as fgd") as refused:
        read("policy", value)
    assert str(refused.value).isprintable()
