"""A rewritten request has the decided changes, and is otherwise as kubelet wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.cri import Changes, MessageWrong, RequestDevice, RequestMount, read_create, rewritten
from partage_base.cri.create_request import resources_of
from partage_plugins.api import Adjustment, Container, Device, Gang, Mount, Namespace
from partage_plugins.api.keys import ALLOCATION, GANG, GANG_SIZE, SIGNATURE
from support import wire
from unit.crishim.rules.allocations import allocation, signed
from unit.crishim.rules.requests import NODE_PIDS, POD_PIDS, TARGET_PIDS, Create, Seen
from unit.crishim.rules.stage import Stage

UNKNOWN = wire.message((77, "from a later kubelet"), (1234, 5))
NAMES = st.text(st.characters(exclude_characters="=\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
FEW_NAMES = st.sampled_from(["PATH", "A", "B", "LD_PRELOAD", "NVIDIA_VISIBLE_DEVICES"])
VALUES = st.binary(max_size=12)
ENV = st.lists(st.tuples(FEW_NAMES | NAMES, VALUES), max_size=8)
CHANGED = st.dictionaries(FEW_NAMES | NAMES, VALUES, max_size=5)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def set_env(create: Create, values: dict[str, bytes]) -> list[tuple[bytes, bytes]]:
    return Seen(rewritten(create.bytes(), Changes(env=values))).env


@given(st.binary(max_size=200))
def test_without_changes_the_bytes_are_the_same_whatever_they_are(message: bytes) -> None:
    assert rewritten(message, Changes()) is message


@given(ENV, CHANGED)
def test_a_changed_variable_stands_once_where_it_first_stood(env: list[tuple[str, bytes]], values: Any) -> None:
    raw = [(name.encode(), value) for name, value in env]
    changed = {name.encode(): value for name, value in values.items()}
    result = set_env(Create(env=env), values)
    expected: list[tuple[bytes, bytes]] = []
    for name, value in raw:
        if name not in changed:
            expected.append((name, value))
        elif name not in dict(expected):
            expected.append((name, changed[name]))
    expected += [(name, value) for name, value in changed.items() if name not in dict(raw)]
    assert result == expected


@given(ENV, CHANGED)
def test_doing_it_again_changes_nothing(env: list[tuple[str, bytes]], values: Any) -> None:
    changes = Changes(env=values, cdi=("a/b=c",), annotations={"x": "y"}, mounts=(mount("/lib/a"),))
    once = rewritten(Create(env=env).bytes(), changes)
    assert rewritten(once, changes) == once


Shape = Mapping[int, Any]
"""The shapes of embedded messages, by field number."""
SECURITY: Shape = {1: {}, 3: {}}
CONFIG: Shape = {1: {}, 2: {}, 6: {}, 7: {}, 8: {}, 9: {}, 10: {}, 15: {1: {}, 2: SECURITY}, 17: {}}
REQUEST: Shape = {2: CONFIG, 3: {1: {}, 7: {}, 8: {2: {1: {}}}}}


def tree(raw: bytes, shape: Shape) -> list[str]:
    """The content of a message, independent of the order of its fields."""
    return sorted(
        f"{number}: {tree(value, shape[number]) if number in shape and isinstance(value, bytes) else value!r}"
        for number, value in wire.fields(raw)
    )


@given(ENV, st.dictionaries(TEXT.filter(bool), TEXT, max_size=4), st.binary(max_size=5))
def test_what_no_schema_of_ours_knows_is_kept_at_every_depth(env: Any, annotations: Any, more: bytes) -> None:
    unknown = UNKNOWN + wire.field(500, more)
    before = Create(env=env, annotations=annotations, unknown=unknown, capabilities=("A",), cdi=("v/c=d",)).bytes()
    changes = Changes(annotations={"new": "x"}, cdi=("v/c=e",), devices=(device("/dev/x"),), mounts=(mount("/lib/a"),))
    after = rewritten(before, changes)
    added = wire.message(
        (7, wire.message((1, "/lib/a"), (2, "/opt/a"), (3, 1))),
        (8, wire.message((1, "/dev/x"), (2, "/dev/null"), (3, "rw"))),
        (10, wire.pair("new", "x")),
        (17, wire.message((1, "v/c=e"))),
    )
    assert tree(Seen(after).config, CONFIG) == tree(Seen(before).config + added, CONFIG)
    assert tree(wire.all_of(after, 3)[0], REQUEST[3]) == tree(wire.all_of(before, 3)[0], REQUEST[3])
    assert [each for each in tree(after, {}) if each[0] not in "23"] == [
        each for each in tree(before, {}) if each[0] not in "23"
    ]


def mount(path: str, source: str = "/opt/a") -> Mount:
    return Mount(container_path=path, host_path=source)


def device(path: str, source: str = "/dev/null") -> Device:
    return Device(container_path=path, host_path=source)


def test_mounts_devices_names_and_annotations_are_added_once() -> None:
    create = Create(
        mounts=[("/data", "/d"), ("/lib/a", "/old")],
        devices=[("/dev/x", "/dev/old")],
        cdi=["v/c=d"],
        own_annotations={"k": "old", "other": "o"},
    )
    changes = Changes(
        mounts=(mount("/lib/a"), mount("/lib/b")),
        devices=(device("/dev/x"), device("/dev/y")),
        cdi=("v/c=d", "v/c=e", "v/c=e"),
        annotations={"k": "v", "n": "w"},
    )
    seen = Seen(rewritten(create.bytes(), changes))
    assert seen.mounts == [(b"/data", b"/d"), (b"/lib/a", b"/opt/a"), (b"/lib/b", b"/opt/a")]
    assert seen.devices == [(b"/dev/x", b"/dev/null"), (b"/dev/y", b"/dev/null")]
    assert seen.cdi == [b"v/c=d", b"v/c=e"]
    assert seen.annotations == {b"k": b"v", b"other": b"o", b"n": b"w"}
    assert dict(wire.fields(wire.all_of(seen.config, 7)[2]))[3] == 1, "read only"
    assert wire.all_of(wire.all_of(seen.config, 8)[1], 3) == [b"rw"]


def test_a_resource_is_set_and_the_others_stay() -> None:
    changes = Changes(resources=resources_of(Adjustment(memory_swap_limit_in_bytes=1 << 40)))
    linux = wire.all_of(Seen(rewritten(Create().bytes(), changes)).config, 15)[0]
    assert dict(wire.fields(wire.all_of(linux, 1)[0])) == {3: 512, 10: 1 << 40}


def test_a_view_says_what_was_asked_for() -> None:
    request = read_create(
        Create(
            annotations={"a": "1"},
            env=[("A", b"\xff"), ("A", "2")],
            mounts=[("/m", "")],
            devices=[("/dev/a", "/dev/b")],
            cdi=["v/c=d"],
            privileged=True,
            capabilities=["SYS_ADMIN"],
            ambient=["NET_ADMIN"],
            pids=2,
            attempt=3,
        ).bytes()
    )
    assert (request.namespace, request.pod, request.container, request.attempt) == ("default", "trainer", "main", 3)
    assert request.annotations == {"a": "1"}
    assert request.env == (("A", b"\xff"), ("A", b"2"))
    assert request.image == "trainer:1"
    assert request.mounts == (RequestMount(container_path="/m", host_path="", readonly=False),)
    assert request.devices == (RequestDevice(container_path="/dev/a", host_path="/dev/b", permissions="rwm"),)
    assert (request.cdi, request.capabilities) == (("v/c=d",), ("SYS_ADMIN", "NET_ADMIN"))
    assert request.privileged
    assert (request.host_pid, request.pod_pid, request.target) == (True, False, "")


def test_a_view_says_whose_processes_a_container_sees() -> None:
    def sees(pids: int, target: str = "") -> tuple[bool, str]:
        request = read_create(Create(pids=pids, target=target).bytes())
        return request.pod_pid, request.target

    assert sees(POD_PIDS) == (True, "")
    assert sees(1, "c-1") == (False, "")
    assert sees(TARGET_PIDS, "c-1") == (False, "c-1")
    assert read_create(b"").pod_pid, "where nothing is said it is the pod's"


@pytest.mark.parametrize("above", [1 << 32, (1 << 64) - (1 << 32)])
def test_a_namespace_is_what_a_runtime_reads_of_a_number_that_is_too_large_for_it(above: int) -> None:
    """Go keeps 32 bits of an enum."""
    assert read_create(Create(pids=above + NODE_PIDS).bytes()).host_pid
    assert read_create(Create(sandbox_pids=above + NODE_PIDS).bytes()).host_pid
    assert read_create(Create(pids=above + POD_PIDS).bytes()).pod_pid
    assert read_create(Create(pids=above + TARGET_PIDS, target="c-1").bytes()).target == "c-1"


class TestWhatPluginsSee:
    """Mounts and devices as the runtime will read them; plugins can't be given what can't be shown to them."""

    def seen(self, stage: Stage, more: Mapping[str, bytes] = {}, **asked: Any) -> Container:
        stage.crishim().rewrite(Create(annotations={**signed(allocation()), **more}, **asked))
        ((container, _),) = stage.fake.asked
        return container

    def test_paths_in_the_container_are_cleaned_before_anything_is_looked_at(self, stage: Stage) -> None:
        long = "/data/" + "./" * 2100 + "x/..//y"
        container = self.seen(stage, mounts=[(long, "/d/./e"), ("relative", "/r")], devices=[("/dev//a", "/dev/b")])
        assert [(each.container_path, each.host_path) for each in container.mounts] == [
            ("/data/y", "/d/./e"),
            ("/relative", "/r"),
        ]
        assert [(each.container_path, each.host_path) for each in container.devices] == [("/dev/a", "/dev/b")]

    def test_a_volume_that_is_an_image_has_no_path_on_the_node_and_is_left_out(self, stage: Stage) -> None:
        assert self.seen(stage, mounts=[("/image", ""), ("/data", "/d")]).mounts == (
            Mount(container_path="/data", host_path="/d", readonly=False),
        )

    def test_text_that_is_not_utf_8_has_marks_in_it(self, stage: Stage) -> None:
        container = self.seen(stage, {"x": b"a\xff"}, labels={"y": b"\xfe"})
        assert (container.annotations["x"], container.labels) == (
            "a\N{REPLACEMENT CHARACTER}",
            {"y": "\N{REPLACEMENT CHARACTER}"},
        )

    def test_of_which_gang_it_is_says_the_signed_allocation_and_nothing_that_users_edit(self, stage: Stage) -> None:
        train = {"namespace": "team", "name": "train", "size": 2}
        stage.crishim().rewrite(Create(annotations=signed(allocation(gang=train))))
        stage.crishim().rewrite(
            Create(uid="u2", annotations=signed(allocation(pod="u2")) | {GANG: "train", GANG_SIZE: "2"})
        )
        assert [asked.gang for asked, _ in stage.fake.asked] == [Gang(Namespace("team"), "train", 2), None]

    @pytest.mark.parametrize("mount", [("/x" * 2049, "/d"), ("/data", "/d" * 2049), ("/data", "d"), ("/a\0b", "/d")])
    def test_paths_that_they_cannot_be_shown_are_refused(self, mount: tuple[str, str], stage: Stage) -> None:
        refusal = stage.crishim().refusal(Create(annotations=signed(allocation()), mounts=[mount]))
        assert refusal.startswith("partage: the mount or device at '/")
        assert refusal.endswith(
            "has a path that plugins cannot be shown; allowed: an absolute path of at most 4096 characters, on the "
            "node and in the container"
        )
        assert stage.fake.asked == []
        stage.crishim().passes(Create(mounts=[mount]))


@pytest.mark.parametrize(("field", "name"), [(6, "labels"), (7, "annotations")])
def test_of_a_label_or_an_annotation_that_is_there_twice_the_last_counts(field: int, name: str) -> None:
    twice = wire.message((field, wire.pair("a", "first")), (field, wire.pair("a", "last")))
    assert getattr(read_create(wire.message((3, twice))), name) == {"a": "last"}


def test_a_message_in_two_pieces_is_read_as_one() -> None:
    """A second field of one number is merged into the first: a decoder that took only one would miss the other."""
    pieces = wire.message(
        (2, wire.message((1, wire.message((1, "main"))))), (2, wire.message((6, wire.pair("A", "1")))), (3, b"")
    )
    request = read_create(pieces)
    assert (request.container, request.env) == ("main", (("A", b"1"),))


@pytest.mark.parametrize(
    "message",
    [
        b"\xff",
        b"\x12\x05ab",
        wire.message((1, b"\xff")),
        *(wire.message((3, wire.message((7, wire.pair(key, b"\xff"))))) for key in (ALLOCATION, SIGNATURE)),
    ],
)
def test_what_is_no_request_is_said_to_be_none(message: bytes) -> None:
    with pytest.raises(MessageWrong):
        read_create(message)


@pytest.mark.parametrize(("field", "name"), [(6, "labels"), (7, "annotations")])
def test_what_is_not_ours_to_read_may_be_any_bytes(field: int, name: str) -> None:
    request = read_create(wire.message((3, wire.message((field, wire.pair(b"a\xff", b"\xfe"))))))
    assert getattr(request, name) == {"a\udcff": "\udcfe"}
