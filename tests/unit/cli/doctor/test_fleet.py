"""`partage doctor --fleet`: every node by what it publishes; a node that publishes nothing hides no other."""

from __future__ import annotations

import asyncio
import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import encode_public
from partage_base.kube import micro_time
from partage_cli.doctor.warnings import DaemonEvent, warnings
from partage_isolation.wire.messages import answer_line
from partage_plugins.api.inventory import Ready
from partage_plugins.api.keys import KEYS, VERSIONS
from partage_plugins.codecs import key_id
from partage_plugins.testing.examples import inventory as text_of
from support.broker import told
from support.fake_api import FakeApi, Refuse, Say
from support.objects import advertiser_body, lease_body, node_body, read
from support.scheduler_stage import LEASES, NODES, inventory_text
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

PODS: Final = "/api/v1/namespaces/partage-system/pods"
CONFIG_MAPS: Final = "/api/v1/namespaces/partage-system/configmaps"
PUBLIC: Final = Ed25519PrivateKey.generate().public_key()
KEY: Final = key_id(PUBLIC)


def add(api: FakeApi, name: str, text: str, *, version: str = "0.1.0", installed: str = "") -> None:
    """A node with a heartbeat, and an advertiser's pod."""
    notes = {"partage.dev/installed": installed} if installed else {}
    api.objects.create(NODES, node_body(name, text, {"partage.dev/install": "yes"}, annotations=notes))
    api.objects.create(LEASES, lease_body(name, {KEYS: "0f3a9c51d2e87b64", VERSIONS: f"crishim={version}"}))
    api.objects.create(PODS, advertiser_body(name))


def event(
    name: str, reason: str, *, kind: str = "Pod", age_s: float = 60, by: str = "partage-scheduler"
) -> dict[str, Any]:
    at = micro_time(datetime.now(UTC) - timedelta(seconds=age_s))
    about = {"kind": kind, "namespace": "team-a", "name": name}
    words = {"reason": reason, "message": f"why {name}", "type": "Warning", "eventTime": at}
    return {"metadata": {"name": f"{name}.1"}, "involvedObject": about, "reportingComponent": by, **words}


def asked(root: Path, *, refused: str = "", has_key: bool = False) -> subprocess.CompletedProcess[str]:
    """Run by a user with a kubeconfig, on a fleet with many problems."""

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            add(api, "n1", inventory_text("n1"))
            add(api, "n2", inventory_text("n2", health="lost"), version="0.2.0")
            failed = json.dumps({"v": 1, "version": "0.1.0", "label": "yes", "state": "failed", "why": "no room"})
            add(api, "n3", text_of(Ready(broker=True, why="kubelet is elsewhere")), installed=failed)
            api.expect(
                Say(answer_line(told(findings=("ProcessWithoutLibrary: pid 7",)))), under=f"{PODS}/advertiser-n1/proxy"
            )
            for name in ("n2", "n3"):
                api.expect(Refuse(503, body=b"no broker answers\n"), under=f"{PODS}/advertiser-{name}/proxy")
            api.objects.create("/api/v1/namespaces/team-a/events", event("train-0", "FailedScheduling"))
            if has_key:
                data = {f"{KEY}.pub": encode_public(PUBLIC).decode()}
                api.objects.create(CONFIG_MAPS, {"metadata": {"name": "partage-keys"}, "data": data})
            if refused:
                api.expect(Refuse(403), under=refused, times=9)
            argv = ("doctor", "--fleet", "-o", "json", "--kubeconfig", str(kubeconfig(root, api.url)))
            return await asyncio.to_thread(partage, root, *argv)

    return asyncio.run(whole())


def found(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str, str]]:
    return [(each["check"], each["status"], each["found"]) for each in json.loads(done.stdout)["findings"]]


@pytest.mark.slow  # it starts a process
def test_each_node_is_found_by_what_it_tells(tmp_path: Path) -> None:
    done = asked(tmp_path, has_key=True)
    rest = found(done)
    assert done.returncode == 3
    assert ("in-force", "wrong", "node n3 is not in force: kubelet is elsewhere") in rest
    assert ("rollout", "wrong", "node n3: the installation of 0.1.0 failed: no room") in rest
    assert ("broker", "wrong", "node n1: ProcessWithoutLibrary: pid 7") in rest
    words = {check: (status, words) for check, status, words in rest}
    assert words["inventory"][0] == "wrong"
    assert words["inventory"][1].startswith("node n2: card 0 (")
    assert words["versions"] == ("warning", "crishim: 0.1.0 on n1, n3; 0.2.0 on n2")
    assert words["keys-told"] == ("warning", f"node n3 does not trust {KEY}, which the cluster has")
    assert words["events"][1] == "FailedScheduling, last 1m ago, of pod team-a/train-0: why train-0"
    (silent,) = [words for check, status, words in rest if (check, status) == ("broker", "not checked")]
    assert silent.startswith("not answering on n2, n3: ")
    assert "no broker answers" in silent


@pytest.mark.slow  # as above
@pytest.mark.parametrize(
    ("refused", "check"),
    [("/api/v1/events", "events"), (PODS, "broker"), (CONFIG_MAPS, "keys-told")],
)
def test_what_may_not_be_read_is_said_and_hides_nothing_else(tmp_path: Path, refused: str, check: str) -> None:
    rest = found(asked(tmp_path, refused=refused))
    assert [words for each, status, words in rest if each == check and status == "not checked" and "403" in words]
    assert {"in-force", "inventory", "versions", "rollout"} <= {each for each, _, _ in rest}
    if check != "keys-told":
        assert ("keys-told", "not checked", "the cluster has no public keys in its ConfigMap partage-keys") in rest


@pytest.mark.slow  # as above
def test_a_cluster_that_does_not_answer_is_one_finding(tmp_path: Path) -> None:
    done = asked(tmp_path, refused="/api/v1/nodes")
    assert [each[:2] for each in found(done)] == [("api", "wrong")]


def test_warnings_of_others_and_old_ones_do_not_count_and_many_are_one_line() -> None:
    many = [event(f"p{at}", "FailedScheduling", age_s=at + 1) for at in range(9)]
    others = [event("x", "BackOff", by="kubelet"), event("y", "Old", age_s=7200)]
    node = event("n1", "CardLost\x1b[2J", kind="Node", by="partage-advertiser")
    events = [read(DaemonEvent, **each) for each in (*many, *others, node)]
    lost, failed = warnings(events, datetime.now(UTC))
    assert failed.found == (
        "FailedScheduling, last 1s ago, of pod team-a/p0, pod team-a/p1, pod team-a/p2, pod team-a/p3, "
        "pod team-a/p4 and 4 more: why p0"
    )
    assert (failed.advice, lost.advice) == ("`partage explain` on each", "`partage doctor` on each")
    (none,) = warnings(events[9:11], datetime.now(UTC))
    assert none.status.value == "ok"
