"""The chart's objects for Prometheus and Grafana, when enabled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from support.chart import Helm, by_name, helm_in
from support.observing import DASHBOARDS, RULES, alerts

_API: Final = "monitoring.coreos.com/v1"


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    return helm_in(tmp_path)


def monitoring(helm: Helm, *values: str) -> list[Any]:
    """The objects of that folder, in a cluster with the Prometheus operator."""
    words = [word for kind in ("PodMonitor", "PrometheusRule") for word in ("--api-versions", f"{_API}/{kind}")]
    folder = Path(__file__).parents[3] / "manifests/chart"
    text = helm.run("template", "partage", folder, "--kube-version", "1.36.0", *words, values=values)
    made = [each for each in text.split("\n---\n") if "# Source: partage/templates/monitoring/" in each]
    return [msgspec.yaml.decode(each) for each in made]


def test_nothing_is_made_unasked(helm: Helm) -> None:
    assert monitoring(helm) == []


def test_dashboards_are_the_files_as_they_are(helm: Helm) -> None:
    (made,) = monitoring(helm, "monitoring.dashboards.enabled=true", "monitoring.dashboards.label=show")
    assert made["metadata"]["labels"]["show"] == "1"
    assert {name: json.loads(text) for name, text in made["data"].items()} == {
        path.name: json.loads(path.read_text()) for path in DASHBOARDS
    }


def test_rules_are_the_file_with_runbooks_where_the_operator_has_them(helm: Helm) -> None:
    (made,) = monitoring(helm, "monitoring.rules.enabled=true", "monitoring.rules.labels.release=prometheus")
    assert made["spec"] == msgspec.yaml.decode(RULES.read_bytes())
    assert made["metadata"]["labels"]["release"] == "prometheus"
    (made,) = monitoring(helm, "monitoring.rules.enabled=true", "monitoring.rules.runbooks=https://wiki.example/gpu")
    rules = [rule for group in made["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    links = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules}
    assert links == {name: f"https://wiki.example/gpu#{name.lower()}" for name in alerts()}


def test_figures_keep_the_pod_that_they_are_about(helm: Helm) -> None:
    made = monitoring(helm, "monitoring.podMonitor=true", "mode=dra")
    ports = {
        each["metadata"]["name"]: {port["port"]: port["honorLabels"] for port in each["spec"]["podMetricsEndpoints"]}
        for each in made
    }
    assert ports == {
        "partage-scheduler": {"metrics": True},
        "partage-advertiser": {"metrics": True},
        "partage-dra": {"metrics": True, "broker-metrics": True},
    }


def test_a_broker_in_a_pod_serves_where_its_monitor_asks_whatever_is_said_of_units(helm: Helm) -> None:
    found = by_name(helm.rendered("mode=dra", "nodes.broker.metrics_address=127.0.0.1:1"))
    spec = found["DaemonSet", "partage-system", "partage-dra"]["spec"]["template"]["spec"]
    (broker,) = [each for each in spec["containers"] if each["name"] == "broker"]
    said = [each["value"] for each in broker["env"] if each["name"] == "PARTAGE_BROKER_METRICS_ADDRESS"]
    assert said == ["0.0.0.0:9402"]


def test_rules_are_refused_where_nobody_reads_them(helm: Helm) -> None:
    assert "or give your Prometheus files/partage.rules.yaml" in helm.refusal("monitoring.rules.enabled=true")
