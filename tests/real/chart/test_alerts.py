"""Each alert fires on its own fault and on no other; names, runbooks and dashboards agree with each other."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from rig.programs import ensure
from support.fences import documents
from support.observing import RULES, alerts

CONTAINER: Final = 'node="n1",device_uuid="GPU-1",namespace="team",pod="train",container="main"'
WELL: Final = {
    'partage_scheduler_leads{instance="s1"}': "1x1600",
    'partage_scheduler_leads{instance="s2"}': "0x1600",
    'partage_scheduler_cache_age_seconds{instance="s1",kind="pods"}': "1x1600",
    'partage_scheduler_attempts_total{instance="s1",result="bound"}': "0+60x1600",
    'partage_scheduler_binding_errors_total{instance="s1",error="409"}': "0+1x1600",
    'partage_scheduler_queue_pods{instance="s1",place="waiting"}': "0x30 1x30 0x1600",
    'partage_scheduler_queue_pods{instance="s1",place="gated"}': "5x1600",
    'partage_node_in_force{node="n1",reason=""}': "1x1600",
    'partage_node_in_force{node="plain",reason="says-nothing"}': "0x1600",
    'partage_scheduler_signing_key_info{instance="s1",key="a"}': "1x1600",
    'partage_node_keys{node="n1"}': "1x1600",
    'partage_node_key_info{node="n1",key="a"}': "1x1600",
    'partage_crishim_refused_total{node="n1",instance="n1",reason="NotOurs"}': "5x1600",
    'partage_broker_findings_standing{node="n1",instance="n1",kind="CoveredMounts"}': "0x1600",
    f"partage_container_compute_share_ratio{{{CONTAINER}}}": "0.3x1600",
    f'partage_container_compute_wanted_ratio{{{CONTAINER},window="60s"}}': "1x1600",
    f'partage_container_compute_got_ratio{{{CONTAINER},window="60s"}}': "0.29x1600",
    'partage_broker_refused_rows_total{node="n1",instance="n1"}': "3x1600",
    'partage_gpu_health{node="n1",device_uuid="GPU-1",model="H100",health="ok"}': "1x1600",
    'partage_gpu_health{node="n1",device_uuid="GPU-1",model="H100",health="lost"}': "0x1600",
    'partage_gpu_health{node="n1",device_uuid="GPU-1",model="H100",health="degraded"}': "0x20 1x10 0x1600",
    'partage_build_info{instance="n1",daemon="broker",version="1"}': "1x1600",
    'partage_build_info{instance="n2",daemon="broker",version="1"}': "1x1600",
    'partage_scheduler_unshown_pods{instance="s1"}': "0x1600",
    'partage_broker_unshown_containers{instance="n1"}': "0x1600",
}
"""Series of a healthy cluster: pods are gated, have waited for a while, and a driver was upgraded."""


class Fault(NamedTuple):
    """Differences from the healthy cluster; None removes a series."""

    alert: str
    series: Mapping[str, str | None]
    labels: Mapping[str, str]
    minutes: int = 100


_OF_GPU: Final = 'device_uuid="GPU-1",namespace="team",node="n1"'
_CARD: Final = 'node="n1",device_uuid="GPU-1",model="H100"'
_OF_CARD: Final = {"node": "n1", "device_uuid": "GPU-1", "model": "H100"}
_OF_CONTAINER: Final = {
    "node": "n1",
    "device_uuid": "GPU-1",
    "namespace": "team",
    "pod": "train",
    "container": "main",
}
_AT_N1: Final = {"node": "n1", "instance": "n1"}
FAULTS: Final = (
    Fault("PartageNoSchedulerLeads", {'partage_scheduler_leads{instance="s1"}': "1x80 0x20"}, {}),
    Fault(
        "PartageSchedulerOutOfDate",
        {'partage_scheduler_cache_age_seconds{instance="s1",kind="pods"}': "1x80 60+60x20"},
        {"kind": "pods"},
    ),
    Fault(
        "PartageBindingsFail", {'partage_scheduler_binding_errors_total{instance="s1",error="409"}': "0+30x1600"}, {}
    ),
    Fault("PartagePodsWait", {'partage_scheduler_queue_pods{instance="s1",place="waiting"}': "0x10 3x100"}, {}),
    Fault(
        "PartageNodeNotInForce",
        {
            'partage_node_in_force{node="n1",reason=""}': "1x80 stale",
            'partage_node_in_force{node="n1",reason="no-broker"}': "_x80 0x20",
        },
        {"node": "n1", "reason": "no-broker"},
    ),
    Fault(
        "PartageNodeLacksKey",
        {'partage_node_key_info{node="n1",key="a"}': None, 'partage_node_key_info{node="n1",key="b"}': "1x1600"},
        {"node": "n1"},
    ),
    Fault(
        "PartageNodeLacksKey",
        {'partage_node_key_info{node="n1",key="a"}': None, 'partage_node_keys{node="n1"}': "0x1600"},
        {"node": "n1"},
    ),
    Fault(
        "PartageContainersRefused",
        {'partage_crishim_refused_total{node="n1",instance="n1",reason="NotOurs"}': "5x80 6+1x20"},
        {**_AT_N1, "reason": "NotOurs"},
    ),
    Fault(
        "PartageLimitNotHeld",
        {'partage_broker_findings_standing{node="n1",instance="n1",kind="CoveredMounts"}': "0x80 1x20"},
        {**_AT_N1, "kind": "CoveredMounts"},
    ),
    Fault(
        "PartageGuaranteeMissed",
        {f'partage_container_compute_got_ratio{{{CONTAINER},window="60s"}}': "0.3x60 0.2x40"},
        _OF_CONTAINER,
    ),
    Fault(
        "PartageBrokerAtLimit", {'partage_broker_refused_rows_total{node="n1",instance="n1"}': "3x80 4+1x20"}, _AT_N1
    ),
    Fault("PartageCardLost", {f'partage_gpu_health{{{_CARD},health="lost"}}': "0x80 1x20"}, _OF_CARD),
    Fault("PartageCardDegraded", {f'partage_gpu_health{{{_CARD},health="degraded"}}': "0x50 1x50"}, _OF_CARD),
    Fault(
        "PartageVersionsDiffer",
        {
            'partage_build_info{instance="n2",daemon="broker",version="1"}': None,
            'partage_build_info{instance="n2",daemon="broker",version="2"}': "1x1600",
        },
        {},
        1500,
    ),
    Fault("PartageMetricsCut", {'partage_scheduler_unshown_pods{instance="s1"}': "0x50 10x50"}, {"instance": "s1"}),
    Fault("PartageMetricsCut", {'partage_broker_unshown_containers{instance="n1"}': "0x50 10x50"}, {"instance": "n1"}),
)


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    program = ensure("prometheus")["prometheus"].with_name("promtool")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def plain_rules() -> dict[str, Any]:
    """The rules without annotations, which promtool would want repeated word for word."""
    found: dict[str, Any] = msgspec.yaml.decode(RULES.read_bytes())
    for group in found["groups"]:
        for rule in group["rules"]:
            rule.pop("annotations", None)
    return found


def asked(fault: Fault | None) -> dict[str, Any]:
    """One promtool test: with the fault its alert fires and no other does; without a fault none does."""
    series = {**WELL, **(fault.series if fault else {})}
    minutes = fault.minutes if fault else 100
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items() if values is not None],
        "alert_rule_test": [
            {"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": list(expected(name, rule, fault))}
            for name, rule in alerts().items()
        ],
    }


def expected(name: str, rule: Mapping[str, Any], fault: Fault | None) -> Iterator[dict[str, Any]]:
    if fault is not None and fault.alert == name:
        yield {"exp_labels": {**fault.labels, **rule["labels"]}}


def records() -> dict[str, Any]:
    """Two pods of a card, which DCGM knows by its UUID, and one of a MIG instance, for which DCGM has no figures."""
    series = {
        **{f'partage_pod_promised_share_ratio{{{_OF_GPU},pod="{pod}"}}': "0.5x10" for pod in ("a", "b")},
        f'partage_pod_promised_share_ratio{{{_OF_GPU.replace("GPU-1", "MIG-1")},pod="c"}}': "0.5x10",
        f'partage_container_compute_got_ratio{{{_OF_GPU},pod="a",container="x",window="60s"}}': "0.2x10",
        f'partage_container_compute_got_ratio{{{_OF_GPU},pod="a",container="y",window="60s"}}': "0.1x10",
        f'partage_container_compute_got_ratio{{{_OF_GPU},pod="b",container="x",window="60s"}}': "0.1x10",
        f'partage_container_compute_wanted_seconds_total{{{_OF_GPU},pod="b",container="x"}}': "0+60x10",
        f'partage_container_compute_got_seconds_total{{{_OF_GPU},pod="b",container="x"}}': "0+15x10",
        'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",Hostname="n1",gpu="0"}': "40x10",
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",Hostname="n1",gpu="0"}': "200x10",
    }
    wanted = {
        "pod:dcgm_gpu_utilization:ratio": {'pod="a"': 0.4, 'pod="b"': 0.4},
        "pod:dcgm_power:watts": {'pod="a"': 150.0, 'pod="b"': 50.0},
        "container:partage_throttled_seconds:rate5m": {'pod="b",container="x"': 0.75},
    }
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f"round({name}, 0.001)",
                "eval_time": "10m",
                "exp_samples": [{"labels": f"{{{_OF_GPU},{of}}}", "value": value} for of, value in found.items()],
            }
            for name, found in wanted.items()
        ],
    }


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    done = promtool("check", "rules", "--lint-fatal", RULES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_on_its_fault_alone_and_records_join_what_belongs_together(tmp_path: Path) -> None:
    assert {fault.alert for fault in FAULTS} == alerts().keys()
    (tmp_path / "rules.yaml").write_bytes(msgspec.yaml.encode(plain_rules()))
    tests = [*(asked(fault) for fault in (None, *FAULTS)), records()]
    whole = {"rule_files": ["rules.yaml"], "evaluation_interval": "5m", "tests": tests}
    (tmp_path / "tests.yaml").write_bytes(msgspec.yaml.encode(whole))
    done = promtool("test", "rules", tmp_path / "tests.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.alert)
def test_what_people_are_told_names_labels_that_the_alert_has(fault: Fault) -> None:
    said = str(alerts()[fault.alert]["annotations"]["summary"])
    assert set(re.findall(r"\$labels\.(\w+)", said)) <= fault.labels.keys()


def test_prometheus_takes_the_job_by_which_the_runbooks_have_it_find_crishim(tmp_path: Path) -> None:
    ((job,),) = (each for block, each in documents() if block.page == "docs/runbooks.md")
    assert job.pop("kubernetes_sd_configs") == [{"role": "node"}], "Debian's promtool knows no discovery"
    (tmp_path / "prometheus.yml").write_bytes(msgspec.yaml.encode({"scrape_configs": [job]}))
    checked = promtool("check", "config", tmp_path / "prometheus.yml")
    assert checked.returncode == 0, checked.stderr
