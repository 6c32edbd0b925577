"""What a real Prometheus makes of all daemons' pages: every question of rules and dashboards is answered."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from partage_base.daemon.metrics import LABELS
from partage_plugins.vocabulary.keys import GPU_MEMORY, GPU_MILLI
from rig.client.wait import until
from rig.machine.components import Component
from rig.patience import patience_s
from rig.programs import ensure
from support import crishim
from support.advertiser_stage import PORT as ADVERTISER_PORT
from support.chain_stage import FOUND_WRONG, Chain
from support.isolation_stage import BROKER_PORT, ask
from support.metrics import asked
from support.observing import Query, alerts, commands, queries
from support.prometheus import Prometheus, prometheus, served

pytestmark = pytest.mark.extended("a Prometheus beside the whole chain; names, rules and alerts have quicker tests")

PORTS: Final = {"advertiser": ADVERTISER_PORT, "broker": BROKER_PORT, "crishim": crishim.PORT}
NEVER_HERE: Final = {
    "partage_scheduler_binding_errors_total": "no binding fails",
    "partage_scheduler_cache_age_seconds": "all is followed",
    "partage_scheduler_removed_pods_total": "no pod has to leave",
    "partage_scheduler_resizes_total": "nobody resizes",
    "partage_scheduler_extender_seconds_bucket": "no kube-scheduler asks",
    "partage_container_memory_moved_bytes": "no memory moves",
    "partage_broker_findings_standing": "no limit is broken",
    "partage_crishim_refused_total": "nothing is refused",
    "DCGM_FI_DEV_POWER_USAGE": "these pods launch nothing, so the card's power is nobody's",
    "pod:dcgm_power:watts": "the same",
}
"""Metrics that stay away while all is well, and why."""
ONLY_OF_FAULTS: Final = ("partage-fleet: Nodes that are not in force, by reason", "partage-fleet: Which nodes, and why")
DCGM: Final = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{card}",pci_bus_id="00000000:01:00.0",device="nvidia0",\
modelName="NVIDIA H100 80GB HBM3",Hostname="n1",DCGM_FI_DRIVER_VERSION="580.95.05"}} 40
# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="{card}",pci_bus_id="00000000:01:00.0",device="nvidia0",\
modelName="NVIDIA H100 80GB HBM3",Hostname="n1",DCGM_FI_DRIVER_VERSION="580.95.05"}} 250
"""
"""As the DCGM exporter writes it, which there is only for real cards."""


def scheduler_address(chain: Chain) -> str:
    """Where the scheduler that runs now serves its page; it was told to take any port."""
    found: list[str] = re.findall(r"metrics are served.*?(127\.0\.0\.1:\d+)", chain.scheduler.said)
    return found[-1]


def targets(chain: Chain) -> Mapping[str, Mapping[str, str]]:
    """By address, with the node of each, as PodMonitors add it."""
    found = {scheduler_address(chain): {"node": "control"}}
    for name, node in chain.rig.nodes.items():
        found |= {f"{node.machine.addresses.ip}:{port}": {"node": name} for port in PORTS.values()}
    return found


@contextmanager
def observed(chain: Chain, folder: Path) -> Generator[Prometheus]:
    """With two pods that share a card, and one that has no place."""
    pods = [chain.pod(f"p{share}", limits={GPU_MILLI: share, GPU_MEMORY: "2Gi"}) for share in ("300", "400")]
    for pod in pods:
        pod.wait_running()
        assert ask(pod, "take 100") == "took 100"
    card = chain.grant(pods[0]).card
    with served(DCGM.format(card=card)) as exporter, prometheus(folder, {**targets(chain), exporter: {}}) as there:
        yield there


def pages(chain: Chain) -> Iterator[tuple[str, str]]:
    for name, node in chain.rig.nodes.items():
        for daemon, port in PORTS.items():
            yield f"{daemon} of {name}", asked(node.machine, port)[1]
    with urlopen(f"http://{scheduler_address(chain)}/metrics", timeout=patience_s()) as page:
        yield "scheduler", page.read().decode()


def test_every_question_is_answered_and_every_page_is_by_convention(chain: Chain, tmp_path: Path) -> None:
    promtool = ensure("prometheus")["prometheus"].with_name("promtool")
    with observed(chain, tmp_path / "prometheus") as there:
        chain.pod("large", limits={GPU_MILLI: "1000", GPU_MEMORY: "900Gi"}).wait_why("GPU memory")
        for whose, page in pages(chain):
            done = subprocess.run(
                [promtool, "check", "metrics"], input=page, capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stdout + done.stderr) == (0, ""), whose
            families = text_string_to_metric_families(page)
            labels = {label for family in families for sample in family.samples for label in sample.labels}
            assert labels - LABELS.keys() <= {"le"}, whose

        def why_unanswered() -> str | None:
            empty = {query.where: query.expr for query in asked_of_all_that_is_here() if not there.query(query.expr)}
            return str(empty) if empty else None

        until("every question has an answer", why_unanswered)
        assert there.query("pod:dcgm_gpu_utilization:ratio")[0].keys() >= {"node", "device_uuid", "namespace", "pod"}


def asked_of_all_that_is_here() -> Iterator[Query]:
    """Without alerts, which have no answer while all is well, and what is never here."""
    for query in queries():
        if query.where not in {*alerts(), *ONLY_OF_FAULTS} and query.names.isdisjoint(NEVER_HERE):
            yield query


def component(chain: Chain, node: str, daemon: str) -> Component:
    """The last one of that name on the node."""
    return [each for each in chain.rig.nodes[node].others if each.name == f"{node}-{daemon}"][-1]


def wait_firing(there: Prometheus, alert: str | None, **labels: str) -> None:
    """Until that alert fires, with these labels, and no other does."""

    def why_not() -> str | None:
        firing = there.firing
        if firing.keys() != ({alert} if alert else set()):
            return f"firing: {firing}"
        wrong = [each for of in firing.values() for each in of if not labels.items() <= each.items()]
        return f"firing: {wrong}" if wrong else None

    until(f"{alert or 'nothing'} fires", why_not)


def test_an_alert_fires_on_the_fault_of_a_real_daemon_and_ends_with_it(chain: Chain, tmp_path: Path) -> None:
    with observed(chain, tmp_path / "prometheus") as there:
        for query in queries():
            there.query(query.expr)
        wait_firing(there, None)
        broker = component(chain, "n2", "broker")
        broker.kill()
        wait_firing(there, "PartageNodeNotInForce", node="n2", reason="no-broker")
        broker.start()
        broker.wait_ready()
        wait_firing(there, None)
        chain.advertisers["n2"].tell_driver("lose 0")
        wait_firing(there, "PartageCardLost", node="n2")
        chain.advertisers["n2"].tell_driver("restore 0")
        wait_firing(there, None)
        chain.scheduler.kill()
        wait_firing(there, "PartageNoSchedulerLeads")
        chain.scheduler.start()


def test_what_runbooks_have_people_type_answers(chain: Chain) -> None:
    pod = chain.pod("train", limits={GPU_MILLI: "300", GPU_MEMORY: "2Gi"})
    pod.wait_running()
    for typed in commands():
        words = [{"NODE": "n1", "NAMESPACE/POD": f"{pod.namespace}/{pod.name}"}.get(word, word) for word in typed.words]
        match words, typed.on_node:
            case ("kubectl", *rest), _:
                chain.rig.cluster.kubectl.run(*rest)
            case ("partage", *rest), True:
                argv = [*chain.machine_of(pod).way_in, sys.executable, "-P", "-m", "partage_cli", *rest]
                done = subprocess.run(argv, capture_output=True, text=True, timeout=patience_s(), check=False)
                assert done.returncode in {0, FOUND_WRONG}, (words, done.stderr)
                assert done.stdout, words
            case ("partage", *rest), _:
                chain.partage(*rest)
            case _:
                pytest.fail(str(words))
