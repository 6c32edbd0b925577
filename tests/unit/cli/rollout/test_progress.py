"""How far a roll-out is, in one table and one line."""

from __future__ import annotations

import json

import pytest

from partage_base.kube import ApiServer, leases_path, nodes_path
from partage_cli.rollout.command import followed, image_version
from partage_cli.rollout.order import Stoppage
from partage_cli.rollout.progress import as_json, as_line, as_table, progress
from partage_cli.rollout.told import INSTALLED, Member, State, Wish, telling
from support.fake_api import FakeApi
from support.rollout_stage import V1, V2, a_made_up_node

DAEMON_SETS = "/apis/apps/v1/namespaces/partage-system/daemonsets"


def a_member(name: str, state: State | None = None, *, version: str = V1, off: bool = False, why: str = "") -> Member:
    wish = Wish.OFF if off else Wish.ON
    return Member(name=name, wish=wish, told=None if state is None else telling(version, wish, state, why))


def test_a_row_for_each_node_says_how_far_it_is_and_why() -> None:
    found = progress([a_member("n1", "failed", why="no room\x1b[2J"), a_member("n2")], {}, V1)
    rows = [line.split() for line in as_table(found).splitlines()]
    assert rows[0] == ["NODE", "VERSION", "STATE", "WHY"]
    assert rows[1:] == [["n1", V1, "failed", "no", "room", "[2J"], ["n2", "-", "-"]]


@pytest.mark.parametrize(
    ("members", "line"),
    [
        ([], "no node is labelled: kubectl label node NODE partage.dev/install=yes"),
        ([a_member("n1")], "1 nodes are labelled, and no installer has spoken yet"),
        (
            [a_member("n1", "working"), a_member("n2", "waiting"), a_member("n3")],
            (
                f"0 of 3 nodes are as asked at {V1}; 1 waiting; 1 working; 1 not heard of at this version; "
                "the canary is n1"
            ),
        ),
        (
            [a_member("n1", "in-force"), a_member("n2", "off", off=True)],
            f"2 of 2 nodes are as asked at {V1}",
        ),
        (
            [a_member("n1", "in-force"), a_member("n2", "failed", why="no"), a_member("n3", "waiting")],
            f"1 of 3 nodes are as asked at {V1}; 1 failed; 1 waiting; stopped: n2 failed: no",
        ),
    ],
)
def test_one_line_says_it_all(members: list[Member], line: str) -> None:
    assert as_line(progress(members, {0: "n1"}, None)) == line


def test_it_is_done_when_each_node_is_as_asked_at_the_version_that_is_meant() -> None:
    members = [a_member("n1", "in-force"), a_member("n2", "off", off=True)]
    assert progress(members, {}, V1).is_done
    assert not progress(members, {}, V2).is_done
    assert not progress([*members, a_member("n3", "in-force", off=False, version=V2)], {}, V1).is_done


def test_without_a_version_it_is_the_one_that_the_most_nodes_speak_of() -> None:
    members = [a_member("n1", "in-force"), a_member("n2", "waiting", version=V2), a_member("n3", "waiting", version=V2)]
    assert progress(members, {}, None).version == V2


def test_programs_are_told_the_same() -> None:
    found = json.loads(as_json(progress([a_member("n1", "failed", why="no")], {}, V1)))
    assert found == {
        "version": V1,
        "nodes": [{"node": "n1", "version": V1, "state": "failed", "why": "no"}],
        "stopped": {"node": "n1", "why": "failed: no"},
        "canary": None,
    }


@pytest.mark.parametrize(
    ("image", "version"),
    [
        (f"registry.example:5000/partage-node:{V1}", V1),
        (f"partage-node:{V1}", V1),
        (f"registry.example:5000/partage-node@sha256:{'0' * 64}", None),
        (f"registry.example/partage-node:{V1}@sha256:{'0' * 64}", V1),
        ("registry.example:5000/partage-node", None),
    ],
)
async def test_the_tag_of_the_installers_image_is_the_version_that_is_meant(
    api: FakeApi, server: ApiServer, image: str, version: str | None
) -> None:
    assert await image_version(server, "partage-system") is None
    spec = {"template": {"spec": {"containers": [{"name": "installer", "image": image}]}}}
    api.objects.create(DAEMON_SETS, {"metadata": {"name": "partage-installer"}, "spec": spec})
    assert await image_version(server, "partage-system") == version


async def test_waiting_ends_where_it_stopped(api: FakeApi, server: ApiServer) -> None:
    node = a_made_up_node("n1")
    node["metadata"]["annotations"] = {INSTALLED: telling(V1, Wish.ON, "failed", "no").text()}
    api.objects.create(nodes_path(), node)
    found, is_over = await followed(server, "partage-system", None, within_s=60)
    assert is_over
    assert found.stopped == Stoppage("n1", "failed: no")


async def test_one_at_work_with_a_slot_stops_nothing(api: FakeApi, server: ApiServer) -> None:
    node = a_made_up_node("n1")
    node["metadata"]["annotations"] = {INSTALLED: telling(V1, Wish.ON, "working").text()}
    api.objects.create(nodes_path(), node)
    labels = {"app.kubernetes.io/name": "partage-installer", "app.kubernetes.io/component": "rollout"}
    metadata = {"name": "partage-rollout-0", "labels": {**labels, "app.kubernetes.io/part-of": "partage"}}
    lease = {"metadata": metadata, "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 60}}
    api.objects.create(leases_path("partage-system"), lease)
    found, is_over = await followed(server, "partage-system", None, within_s=0)
    assert (found.stopped, is_over) == (None, False)
