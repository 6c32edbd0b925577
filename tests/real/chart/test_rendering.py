"""Helm's rendering of the chart: it equals the static YAML beside it, and refusals say what to do."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from partage_base.daemon.resolution import TomlFile, resolve
from partage_base.daemon.settings import CommonSettings
from partage_crishim.settings import OF_GPU_OPERATOR, CrishimSettings
from partage_dialects.hami import HamiDialect
from partage_dialects.settings import NVIDIA_GPU, settings_from
from partage_dialects.volcano import VolcanoDialect
from partage_dialects.whole import WholeCards
from partage_dra.settings import DraSettings
from partage_isolation.settings import BrokerSettings
from partage_plugins.api.keys import GPU_RESOURCES
from partage_plugins.hooks import SCHEDULER_GROUP
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.sharepods.settings import SharePodSettings
from rig.identity.permissions import FOLDER, Manifest
from rig.programs import ensure
from support.chart import CHART, EVERYTHING, Helm, by_name, helm_in

ROOT = FOLDER.parent
S = TypeVar("S", bound=CommonSettings)


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    return helm_in(tmp_path)


def deployment(helm: Helm, name: str, *values: str) -> Any:
    """The pod spec of that Deployment."""
    found = by_name(helm.rendered(*values))
    return found["Deployment", "partage-system", name]["spec"]["template"]["spec"]


def read(daemon: str, kind: type[S], said: Mapping[str, str], tables: Mapping[str, Any] | None = None) -> S:
    """Settings that the daemon reads from these variables and from a file with these tables."""
    return resolve(kind, daemon, toml=TomlFile("", tables or {}), environment=said, flags={}).settings


def environment(helm: Helm, name: str, *values: str) -> Mapping[str, str]:
    (container,) = deployment(helm, name, *values)["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def test_the_yaml_beside_the_chart_is_what_it_renders() -> None:
    command = [sys.executable, str(ROOT / "tools/manifests.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("reader", ["kubelet", "whole", "hami"])
def test_a_pod_that_asks_in_the_words_of_any_dialect_can_not_name_its_node(
    helm: Helm, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setenv(NVIDIA_GPU, reader)
    dialects = (HamiDialect(), VolcanoDialect(), WholeCards())
    found = by_name(helm.rendered(f"nvidiaGpu={reader}"))
    policy = found["ValidatingAdmissionPolicy", "", "partage-shares"]["spec"]
    (asks,) = [each["expression"] for each in policy["matchConditions"] if each["name"] == "asks-for-shares"]
    prefixes = tuple(re.findall(r"startsWith\('([^']+)'\)", asks))
    words = set(re.findall(r"'([^']+)'", asks))
    for word in (*GPU_RESOURCES, *(word for dialect in dialects for word in dialect.partage_resources())):
        assert word.startswith(prefixes) or word in words
    assert ("nvidia.com/gpu" in words) == (reader != "kubelet"), "the device plugin's pods are nobody's concern"


def test_the_extenders_kustomization_makes_what_the_chart_makes(helm: Helm) -> None:
    made = subprocess.run(
        [ensure("kubernetes")["kubectl"], "kustomize", FOLDER / "extender"], capture_output=True, text=True, check=True
    )
    kustomized = by_name([msgspec.yaml.decode(each, type=Manifest) for each in made.stdout.split("\n---\n")])
    values = ("extender.enabled=true", "extender.callers={any}")
    rendered = by_name(helm.rendered(*values, folders=("scheduler", "extender")))
    assert kustomized.keys() == rendered.keys()
    # kustomize folds long expressions in its own way; those files do not depend on values.
    others = [key for key in rendered if key[0] != "ValidatingAdmissionPolicy"]
    assert {key: kustomized[key] for key in others} == {key: rendered[key] for key in others}


def test_helm_finds_nothing_to_complain_of(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", CHART, values=EVERYTHING)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("extender.enabled=true",), "for example --set extender.callers={192.0.2.0/28}"),
        (("kubeScheduler.enabled=true",), "add --set extender.enabled=true"),
        (
            ("extender.enabled=true", "kubeScheduler.enabled=true", "kubeScheduler.schedulerName=partage-scheduler"),
            "choose another name",
        ),
        (("reservations.enabled=true",), "for example --set reservations.image=registry.k8s.io/pause:3.10"),
        (("reservations.enabled=true", "reservations.image=p", "nvidiaGpu=hami"), "set nvidiaGpu=kubelet"),
        (("reservations.enabled=true", "reservations.image=p", "nvidiaGpu=whole"), "set nvidiaGpu=kubelet"),
        (("dra.enabled=true",), "for example --set dra.cards=all"),
        (("dra.cards=all",), "add --set dra.enabled=true"),
        (("dra.enabled=true", "dra.cards=all", "dra.broker=pod"), "set dra.broker=auto, or mode=dra"),
        (("monitoring.podMonitor=true",), "install the Prometheus operator first"),
    ],
)
def test_values_that_contradict_each_other_are_refused_with_what_to_do(
    helm: Helm, values: tuple[str, ...], words: str
) -> None:
    assert words in helm.refusal(*values)


def mirroring() -> list[str]:
    """Dialects whose annotations the scheduler can mirror for placed pods."""
    dialects = entry_points(group=SCHEDULER_GROUP)
    return sorted(dialect.name for dialect in dialects if hasattr(dialect.load(), "partage_mirror"))


def mirrored(nvidia_gpu: str, blocked: Iterable[str]) -> tuple[str, ...]:
    names = ",".join(blocked)
    return "scheduler.settings.mirror=true", f"scheduler.blockedPlugins={{{names}}}", f"nvidiaGpu={nvidia_gpu}"


@pytest.mark.parametrize("only", mirroring())
def test_one_dialect_is_enough_to_mirror(helm: Helm, only: str) -> None:
    others = (name for name in mirroring() if name != only)
    assert environment(helm, "partage-scheduler", *mirrored("hami", others))["PARTAGE_SCHEDULER_MIRROR"] == "true"


def test_a_mirror_with_nothing_to_write_is_refused_and_the_refusal_names_all_that_could(helm: Helm) -> None:
    assert f"unblock one of {', '.join(mirroring())}" in helm.refusal(*mirrored("hami", mirroring()))
    assert "unblock one of" in helm.refusal(*mirrored("kubelet", set(mirroring()) - {"hami-dialect"}))


@pytest.mark.parametrize("values", [("mutation.enabled=true",), ("dra.enabled=true", "dra.cards=all")])
def test_what_the_cluster_does_not_know_is_refused(helm: Helm, values: tuple[str, ...]) -> None:
    assert "this cluster is Kubernetes v1.35.4" in helm.refusal(*values, version="1.35.4")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("sheduler.replicas=3", "additional properties 'sheduler' not allowed"),
        ("scheduler.settings.in_flght=3", "additional properties 'in_flght' not allowed"),
        ("scheduler.settings.in_flight=0", "minimum: got 0, want 1"),
        ("scheduler.settings.mirror=yes", "got string, want boolean"),
        ("scheduler.settings.reserve_image=pause", "additional properties 'reserve_image' not allowed"),
        ("scheduler.environment.PARTAGE_SCHEDULER_ELECT=x", "PARTAGE_SCHEDULER_ELECT"),
        ("trustedNamespaces={it's}", "does not match pattern"),
        ("nvidiaGpu=volcano", "must be one of 'kubelet', 'whole', 'hami'"),
    ],
)
def test_values_that_do_not_exist_or_would_not_be_taken_are_refused(helm: Helm, value: str, words: str) -> None:
    assert words in helm.refusal(value)


def test_a_setting_is_what_the_daemon_runs_with(helm: Helm) -> None:
    values = (
        *(
            "scheduler.settings.in_flight=64",
            "scheduler.settings.evict_after_s=86400",
            "scheduler.settings.mirror=true",
        ),
        *("scheduler.settings.score_weights={gpu=2,board=0.5}", "scheduler.environment.PARTAGE_GPU_POLICY=spread"),
        *("scheduler.blockedPlugins={a,b}", "nvidiaGpu=hami"),
    )
    said = environment(helm, "partage-scheduler", *values)
    settings = read("scheduler", SchedulerSettings, said)
    assert (settings.in_flight, settings.evict_after_s, settings.mirror) == (64, 86400.0, True)
    assert settings.weights == {"gpu": 2.0, "board": 0.5}
    assert (said["PARTAGE_GPU_POLICY"], said["PARTAGE_PLUGINS_BLOCK"]) == ("spread", "a,b")
    assert settings_from(said).nvidia_gpu == "hami"


@pytest.mark.parametrize(
    ("values", "drains"),
    [
        ((), False),
        (("profile=gpu-operator",), True),
        (("profile=gpu-operator", "scheduler.settings.drain_paused=false"), False),
        (("scheduler.settings.drain_paused=true",), True),
    ],
)
def test_beside_the_gpu_operator_pods_leave_a_driver_that_it_upgrades_unless_told_otherwise(
    helm: Helm, values: tuple[str, ...], *, drains: bool
) -> None:
    said = environment(helm, "partage-scheduler", *values)
    assert read("scheduler", SchedulerSettings, said).drain_paused is drains


def test_the_controller_of_sharepods_reads_requests_as_the_scheduler_does(helm: Helm) -> None:
    values = ("sharepods.enabled=true", "sharepods.settings.lease_s=30", "nvidiaGpu=whole")
    said = environment(helm, "partage-sharepods", *values)
    assert read("sharepods", SharePodSettings, said).lease_s == 30.0
    assert settings_from(said) == settings_from(environment(helm, "partage-scheduler", *values))


def test_what_is_read_before_anything_changes_is_what_the_daemons_will_run_with(helm: Helm) -> None:
    values = (
        *("sharepods.enabled=true", "sharepods.settings.lease_s=30", "scheduler.settings.score_weights={gpu=2}"),
        *("scheduler.environment.PARTAGE_GPU_POLICY=spread", "scheduler.blockedPlugins={a}", "profile=gpu-operator"),
        *("reservations.enabled=true", "reservations.image=pause:3"),
    )
    (job,) = helm.rendered(*values, folders=("settings",))
    checked = {each["name"]: each for each in job["spec"]["template"]["spec"]["containers"]}
    assert checked.keys() == {"scheduler", "sharepods"}
    of_pod = {"PARTAGE_NODE_NAME", "PARTAGE_SCHEDULER_METRICS_ADDRESS", "PARTAGE_SHAREPODS_METRICS_ADDRESS"}
    for name, container in checked.items():
        (daemon,) = deployment(helm, f"partage-{name}", *values)["containers"]
        assert container["env"] == [each for each in daemon["env"] if each["name"] not in of_pod]
        assert container["envFrom"] == daemon["envFrom"]
        assert container["image"] == daemon["image"]
        assert container["command"] == [f"partage-{name}", "--check-settings"]
    assert helm.rendered("settingsCheck.enabled=false", folders=("settings",)) == []


def test_with_reservations_the_scheduler_has_their_image(helm: Helm) -> None:
    said = environment(helm, "partage-scheduler", "reservations.enabled=true", "reservations.image=pause:3")
    assert read("scheduler", SchedulerSettings, said).reserve_image == "pause:3"


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ((), "partage-scheduler:0.1.0"),
        (("image.registry=registry.example:5000/partage",), "registry.example:5000/partage/partage-scheduler:0.1.0"),
        (("image.scheduler=mine:7",), "mine:7"),
        (
            ("image.registry=registry.example/", f"image.scheduler=mine@sha256:{'a' * 64}"),
            f"registry.example/mine@sha256:{'a' * 64}",
        ),
    ],
)
def test_images_come_from_where_they_are_said_to_be(helm: Helm, values: tuple[str, ...], image: str) -> None:
    (container,) = deployment(helm, "partage-scheduler", *values)["containers"]
    assert container["image"] == image


def test_what_is_said_of_nodes_is_what_their_daemons_run_with(helm: Helm) -> None:
    values = (
        *("profile=gpu-operator", "trustedNamespaces={monitoring}", "driverRoot=/opt/driver"),
        *(
            "nodes.crishim.enforce=advisory",
            "nodes.crishim.plugin_memory_bytes=1073741824",
            "nodes.broker.quantum_ms=5",
            "nodes.broker.metrics_address=0.0.0.0:9402",
        ),
    )
    found = by_name(helm.rendered(*values))
    tables = tomllib.loads(found["ConfigMap", "partage-system", "partage-node"]["data"]["partage.toml"])
    crishim = read("crishim", CrishimSettings, {}, tables)
    assert crishim.trusted == {"monitoring", OF_GPU_OPERATOR}
    assert (crishim.enforce, crishim.plugin_memory_bytes) == ("advisory", 1 << 30)
    broker = read("broker", BrokerSettings, {}, tables)
    assert (broker.quantum_ms, str(broker.driver_root)) == (5.0, "/opt/driver")
    assert (broker.metrics_address, crishim.metrics_address) == ("0.0.0.0:9402", "")
    daemonset = found["DaemonSet", "partage-system", "partage-advertiser"]
    (container,) = daemonset["spec"]["template"]["spec"]["containers"]
    assert {"name": "PARTAGE_DRIVER_ROOT", "value": "/host/opt/driver"} in container["env"]


def test_the_driver_runs_with_what_is_said_of_it_and_brings_the_broker_where_nodes_have_none(helm: Helm) -> None:
    values = ("dra.enabled=true", "dra.cards=all", "dra.settings.parts={all=4}", "dra.allocator=partage-scheduler")
    for more, containers in ((("installer.enabled=false",), ["dra", "broker"]), ((), ["dra"])):
        found = by_name(helm.rendered(*values, *more))
        spec = found["DaemonSet", "partage-system", "partage-dra"]["spec"]["template"]["spec"]
        assert [each["name"] for each in spec["containers"]] == containers
        said = {each["name"]: each["value"] for each in spec["containers"][0]["env"] if "value" in each}
        settings = read("dra", DraSettings, said)
        assert (settings.parts, settings.publish, str(settings.host)) == (("all=4",), False, "/host")


@pytest.mark.parametrize("cards", ["all", "GPU-6f0c"])
def test_one_word_shares_cards_by_claims_on_nodes_that_are_not_changed(helm: Helm, cards: str) -> None:
    found = by_name(helm.rendered("mode=dra", *(() if cards == "all" else (f"dra.cards={cards}",))))
    assert found == by_name(helm.rendered("installer.enabled=false", "dra.enabled=true", f"dra.cards={cards}"))
    assert not [name for _, _, name in found if "installer" in name]
    (advertiser,) = found["DaemonSet", "partage-system", "partage-advertiser"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "PARTAGE_GPU_DRA", "value": cards} in advertiser["env"]


def test_the_api_servers_hosts_reach_the_advertisers_where_they_are_named(helm: Helm) -> None:
    def sources(*values: str) -> list[Any]:
        found = by_name(helm.rendered(*values))["NetworkPolicy", "partage-system", "partage-advertiser"]
        return [source for rule in found["spec"]["ingress"] for source in rule["from"]]

    usual = sources()
    assert sources("advertiser.askedFrom={192.0.2.1/32,2001:db8::/64}") == [
        *usual,
        {"ipBlock": {"cidr": "192.0.2.1/32"}},
        {"ipBlock": {"cidr": "2001:db8::/64"}},
    ]


def test_the_job_of_keys_has_another_name_where_it_is_another(helm: Helm) -> None:
    def name(*values: str) -> str:
        (job,) = (each for each in helm.rendered(*values, folders=("keys",)) if each["kind"] == "Job")
        return str(job["metadata"]["name"])

    extender = ("extender.enabled=true", "extender.callers={any}")
    assert len({name(), name(*extender), name("image.scheduler=mine:2")}) == 3
    assert name() == name("scheduler.replicas=3"), "or it would run for nothing"


def test_trusted_namespaces_are_those_of_all_policies(helm: Helm) -> None:
    operator = ("profile=gpu-operator", "operatorNamespace=elsewhere")
    found = by_name(helm.rendered("trustedNamespaces={monitoring}", *operator, "mutation.enabled=true"))
    for name in ("partage-cdi", "partage-visible-devices"):
        variables = found["ValidatingAdmissionPolicy", "", name]["spec"]["variables"]
        assert variables[0] == {
            "name": "trusted",
            "expression": "['monitoring', 'elsewhere']",
        }
    binding = found["MutatingAdmissionPolicyBinding", "", "partage-scheduler-name"]["spec"]
    (left_alone,) = binding["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert {"kube-system", "partage-system", "monitoring", "elsewhere"} <= set(left_alone["values"])
