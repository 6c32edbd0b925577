"""The scheduler daemon on a real API server: pods are bound with allocations that nodes accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from partage_base.keyring import KeyFolders, load_public_keys
from partage_plugins.api import GPU, ContainerName
from partage_plugins.api.keys import ALLOCATION, GPU_MILLI, SIGNATURE
from partage_plugins.codecs import decode_allocation, verify
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import LEASES
from rig.client.wait import until
from rig.identity.people import OUR_NAMESPACE, TEAM
from support.scheduler_process import SchedulerProcess

OURS = "partage-scheduler"


def shared(cluster: Cluster, name: str, milli: int) -> Pod:
    return cluster.pods.create(TEAM, a_pod(name, scheduler=OURS, limits={GPU_MILLI: str(milli)}))


def wait_bound(pods: Sequence[Pod]) -> None:
    def why_not() -> str | None:
        waiting = [pod for pod in pods if not pod.refresh()["spec"].get("nodeName")]
        return ", ".join(f"{pod.name}: {pod.object['status']}" for pod in waiting) or None

    until("all pods are bound", why_not, 30)


def require_good(pods: Sequence[Pod], root: Path) -> None:
    """Every allocation verifies and no card is overcommitted."""
    keys, shares = load_public_keys(KeyFolders.at_root(root).public).keys, dict[str, int]()
    for pod in pods:
        verify(pod.annotations[ALLOCATION], pod.annotations[SIGNATURE], keys)
        allocation = decode_allocation(pod.annotations[ALLOCATION], [GPU])
        assert (allocation.pod, allocation.node) == (pod.uid, pod.node)
        for grant in allocation.of(GPU)[ContainerName("main")]:
            shares[grant.card] = shares.get(grant.card, 0) + grant.share_milli
    assert max(shares.values()) <= 1000


def test_pods_are_bound_with_signed_allocations(
    bare: Cluster, node: Callable[[str], None], scheduler: SchedulerProcess, tmp_path: Path
) -> None:
    node("n1")
    node("n2")
    early = [shared(bare, f"early-{number}", 500) for number in range(4)]
    scheduler.start()
    wait_bound(early)
    late = [shared(bare, f"late-{number}", 500) for number in range(4)]
    wait_bound(late)
    require_good([*early, *late], tmp_path)
    assert all(pod.condition("PodScheduled")["status"] == "True" for pod in late)
    until("a pod has its event", lambda: None if "Scheduled" in reasons(late[0]) else "it has none", 20)
    assert scheduler.stop() == 0


def test_a_scheduler_that_is_killed_is_followed_by_one_that_believes_what_it_signed(
    bare: Cluster, node: Callable[[str], None], scheduler: SchedulerProcess, tmp_path: Path
) -> None:
    node("n1")
    scheduler.start()
    first = [shared(bare, f"first-{number}", 700) for number in range(2)]
    wait_bound(first)
    scheduler.kill()
    second = [shared(bare, f"second-{number}", 300) for number in range(2)]
    scheduler.start()
    wait_bound(second)
    require_good([*first, *second], tmp_path)
    assert scheduler.stop() == 0
    lease = bare.api.get(LEASES.at(OUR_NAMESPACE, OURS))
    assert not lease["spec"].get("holderIdentity")


def test_a_dry_run_says_where_pods_would_go_and_changes_nothing(
    bare: Cluster, node: Callable[[str], None], scheduler: SchedulerProcess
) -> None:
    node("n1")
    fits, too_much = shared(bare, "fits", 500), shared(bare, "too-much", 5000)
    done = scheduler.once("--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"{TEAM}/fits  to n1\n" in done.stdout
    assert f"{TEAM}/too-much  nowhere: 0/1 nodes are available: " in done.stdout
    assert not fits.refresh()["spec"].get("nodeName")
    assert not too_much.refresh()["spec"].get("nodeName")


def reasons(pod: Pod) -> set[str]:
    return {event.reason for event in pod.events()}
