"""Messages about a test that leaves something on a shared rig, or removes something from it."""

from __future__ import annotations

from collections import Counter

from rig.shared.state import State, files, marks, objects, process


def state(*there: str, stored: tuple[str, ...] = (), silent: str = "") -> State:
    return State(Counter(stored), Counter(there), silent)


def test_what_is_as_it_was_is_not_told() -> None:
    assert (
        state("n1: /run/partage/a", stored=("pods/a/b",)).what_changed(
            state("n1: /run/partage/a", stored=("pods/a/b",))
        )
        == []
    )


def test_what_was_left_and_what_was_taken_is_told_by_name() -> None:
    before = state("n1: process kubelet", "n1: cgroup kubepods", stored=("leases/partage-system/n1",))
    after = state("n1: process kubelet", "n1: process sleep 9", stored=("leases/partage-system/n2",))
    assert before.what_changed(after) == [
        "left leases/partage-system/n2; n1: process sleep 9",
        "took leases/partage-system/n1; n1: cgroup kubepods",
    ]


def test_of_two_equal_processes_one_more_is_left() -> None:
    one, two = state("n1: process sleep"), state("n1: process sleep", "n1: process sleep")
    assert one.what_changed(two) == ["left n1: process sleep"]
    assert two.what_changed(one) == ["took n1: process sleep"]


def test_a_daemon_that_listens_on_another_port_is_the_same() -> None:
    assert process("crishim --metrics-address 0.0.0.0:9401") == process("crishim --metrics-address 0.0.0.0:9402")


def test_a_pod_that_is_made_again_has_the_same_processes() -> None:
    assert process(f"shim -id {'0a' * 32} -x") == process(f"shim -id {'1b' * 32} -x") != process("shim -id 1b -x")


def test_a_control_plane_that_does_not_answer_is_told_and_not_all_that_it_kept() -> None:
    up, down = state("a", stored=("pods/a/b",)), state(silent="refused")
    assert up.what_changed(down) == ["the control plane no longer answers: refused", "took a"]
    assert down.what_changed(state(stored=("pods/a/b",))) == []


def test_what_the_cluster_makes_by_itself_is_no_tests() -> None:
    own = ("events/default/x", "leases/kube-node-lease/n1", "configmaps/team-a/kube-root-ca.crt")
    tests = ("leases/partage-system/n1", "configmaps/team-a/kube-root-ca.crt.mine", "configmaps/events/a")
    assert objects(f"/registry/{name}" for name in (*own, *tests)) == list(tests)


def test_what_a_daemon_keeps_beyond_its_pods_is_no_tests() -> None:
    assert files("n1", ["/run/partage/crishim/records/pods/a", "/run/partage/a"]) == ["n1: /run/partage/a"]
    assert process("/usr/bin/python3 -P -m partage_plugins.host.child 18 19") == []
    assert process("/usr/lib/cni/portmap") == []


def test_of_a_node_labels_count_with_their_values_and_annotations_by_their_keys() -> None:
    metadata = {"name": "n1", "labels": {"a": "1"}, "annotations": {"b": "2"}}
    taints = [{"key": "c", "value": "", "effect": "NoSchedule"}]
    node = {"metadata": metadata, "spec": {"taints": taints}}
    assert marks(node) == ["n1: label a=1", "n1: annotation b", "n1: taint c:NoSchedule"]


def test_long_lines_are_cut() -> None:
    (told,) = state().what_changed(state("x" * 1000))
    assert len(told) < 300
