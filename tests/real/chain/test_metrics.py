"""A real Prometheus scrapes all daemons: every query of rules and dashboards returns data."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from partage_base.daemon.metrics import LABELS
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from rig.client.wait import until
from rig.patience import patience_s
from rig.programs import ensure
from support.chain_stage import FOUND_WRONG, PORTS, Chain
from support.isolation_stage import ask
from support.metrics import asked
from support.observing import Query, alerts, commands, queries
from support.prometheus import Prometheus, prometheus, served

pytestmark = pytest.mark.extended("a Prometheus beside the whole chain; names, rules and alerts have quicker tests")

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
"""Metrics that are absent while all is well, and why."""
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
"""In the format of the DCGM exporter, which exists only for real cards."""


@contextmanager
def observed(chain: Chain, folder: Path) -> Generator[Prometheus]:
    """Prometheus, with two pods that share a card and one that fits nowhere."""
    pods = [chain.pod(f"p{share}", limits={GPU_MILLI: share, GPU_MEMORY: "2Gi"}) for share in ("300", "400")]
    for pod in pods:
        pod.wait_running()
        assert ask(pod, "take 100") == "took 100"
    card = chain.grant(pods[0]).card
    with served(DCGM.format(card=card)) as exporter, prometheus(folder, {**chain.targets(), exporter: {}}) as there:
        yield there


def pages(chain: Chain) -> Iterator[tuple[str, str]]:
    for name, node in chain.rig.nodes.items():
        for daemon, port in PORTS.items():
            yield f"{daemon} of {name}", asked(node.machine, port)[1]
    with urlopen(f"http://{chain.scheduler_address}/metrics", timeout=patience_s()) as page:
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
    """Queries that have data here: none of alerts, which return nothing while all is well, and none of `NEVER_HERE`."""
    for query in queries():
        if query.where not in {*alerts(), *ONLY_OF_FAULTS} and query.names.isdisjoint(NEVER_HERE):
            yield query


def test_what_runbooks_have_people_type_answers(chain: Chain) -> None:
    pod = chain.pod("train", limits={GPU_MILLI: "300", GPU_MEMORY: "2Gi"}).wait_running()
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
