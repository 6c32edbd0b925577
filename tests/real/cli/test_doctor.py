"""`partage doctor` on real nodes: one whose kubelet speaks through crishim, and one whose kubelet does not."""

from __future__ import annotations

import pytest

from partage_plugins.api.keys import INVENTORY
from real.cli.asking import config_of, findings, partage, statuses
from rig.client.wait import until
from rig.identity.people import ADVERTISER
from rig.machine.components import stopped
from rig.nodes.kubelet import CONFIG
from rig.programs.catalogue import CONTAINERD
from rig.rig import Rig
from support.crishim_stage import NODE, inventory

SPOKE = "/run/partage/crishim/kubelet-spoke"


@pytest.fixture
def kubelet_spoke(rig: Rig) -> None:
    """Wait until kubelet speaks, which it does every few seconds."""
    until("kubelet spoke", lambda: None if rig.nodes[NODE].machine.path(SPOKE).exists() else "it has not yet")


@pytest.mark.usefixtures("kubelet_spoke")
def test_a_node_that_speaks_through_crishim_is_found_to(rig: Rig) -> None:
    found = findings(rig.nodes[NODE].machine)
    checks = (
        "kubelet-endpoint",
        "crishim",
        "kubelet-speaks",
        "keys",
        "runtime-default",
        "runtime-cdi",
        "runtime-restore",
        "device-plugin",
    )
    assert statuses(found, *checks) == dict.fromkeys(checks, "ok")
    assert found["crishim"]["found"] == f"answers, for containerd v{CONTAINERD.version}"
    assert found["kubelet-endpoint"]["found"] == f"kubelet speaks to crishim, as {CONFIG} says"
    assert found["inventory"]["found"].startswith("1 of 4 cards take no new pods")
    assert found["advertiser"]["status"] == "wrong"  # none was started


def test_a_node_that_does_not_is_told_what_to_change_and_where(rig: Rig) -> None:
    found = findings(rig.nodes["n2"].machine)
    wrong = ("kubelet-endpoint", "crishim", "kubelet-speaks", "keys", "inventory")
    assert statuses(found, *wrong) == dict.fromkeys(wrong, "wrong")
    assert found["kubelet-endpoint"]["advice"] == (
        f"set containerRuntimeEndpoint: unix:///run/partage/crishim.sock in {CONFIG}, then systemctl restart kubelet"
    )


def test_a_crishim_that_hangs_is_found_and_holds_nobody_up(rig: Rig) -> None:
    crishim = rig.nodes[NODE].daemons["crishim"]
    with stopped(crishim):
        found = findings(rig.nodes[NODE].machine)
    assert found["crishim"]["found"] == "does not answer: no answer to Version within 2 s"
    assert found["kubelet-endpoint"]["status"] == "ok"


def test_kubelets_own_identity_sees_the_node_and_need_not_write_the_heartbeat(rig: Rig) -> None:
    config = config_of(rig.cluster.as_node(NODE))
    rig.cluster.nodes.annotate(NODE, {INVENTORY: inventory()})
    try:
        found = findings(rig.nodes[NODE].machine, "--kubeconfig", config)
    finally:
        rig.cluster.nodes.annotate(NODE, {INVENTORY: None})
    assert statuses(found, "api", "annotation", "clock") == {"api": "ok", "annotation": "ok", "clock": "ok"}
    assert found["api"]["found"] == f"system:node:{NODE} reads node {NODE}"
    assert statuses(found, "heartbeat", "heartbeat-write") == {
        "heartbeat": "not checked",
        "heartbeat-write": "not checked",
    }


def test_the_advertisers_identity_is_found_able_to_do_its_work_and_leaves_nothing(rig: Rig) -> None:
    node = rig.cluster.nodes.get(NODE) | {"kind": "Node"}
    found = findings(rig.nodes[NODE].machine, "--kubeconfig", config_of(rig.cluster.as_account(ADVERTISER, node)))
    assert statuses(found, "api", "heartbeat-write", "clock") == dict.fromkeys(
        ("api", "heartbeat-write", "clock"), "ok"
    )
    assert found["annotation"]["status"] == "wrong"
    assert found["heartbeat"]["found"].startswith("there is none")  # the attempts had no effect


def test_an_advertiser_that_is_another_nodes_is_found_unable(rig: Rig) -> None:
    node = rig.cluster.nodes.get("n2") | {"kind": "Node"}
    found = findings(rig.nodes[NODE].machine, "--kubeconfig", config_of(rig.cluster.as_account(ADVERTISER, node)))
    assert found["heartbeat-write"]["status"] == "wrong"


def test_an_api_server_that_is_away_is_found_in_time(rig: Rig) -> None:
    with stopped(rig.control.apiserver):
        found = findings(rig.nodes[NODE].machine, "--kubeconfig", config_of(rig.cluster))
    assert found["api"]["status"] == "wrong"
    assert found["crishim"]["status"] == "ok"


def test_people_see_a_line_for_each_finding_and_a_sum(rig: Rig) -> None:
    done = partage("doctor", inside=rig.nodes["n2"].machine)
    assert done.returncode == 3
    assert "wrong        kubelet-endpoint   kubelet speaks to unix:///run/containerd/containerd.sock" in done.stdout
    assert done.stderr.endswith(" ok\n")
