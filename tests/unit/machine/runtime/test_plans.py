"""What a pod becomes for the runtime."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.machine.pods.options import Options, pod_of
from partage_cli.machine.pods.pod import (
    Amounts,
    Container,
    ContainerPort,
    EmptyDir,
    EnvVar,
    HostPath,
    Metadata,
    Pod,
    SecurityContext,
    Spec,
    Volume,
    VolumeMount,
)
from partage_cli.machine.runtime.plans import (
    CgroupPlan,
    ContainerPlan,
    Dns,
    MountPlan,
    PortPlan,
    Premises,
    SandboxPlan,
    container_plan,
    sandbox_plan,
)
from partage_plugins.errors import DecodeError, Refused

UID = "0b6f1c1e-6f0e-4c39-9d53-2f5d2b1f3c11"


def one_of(container: Container, **spec: object) -> Pod:
    return Pod(metadata=Metadata(name="web", labels={"app": "w"}), spec=Spec(containers=(container,), **spec))  # type: ignore[arg-type]


def plans(container: Container, **spec: object) -> tuple[SandboxPlan, ContainerPlan]:
    pod = one_of(container, **spec)
    sandbox = sandbox_plan(pod, uid=UID, attempt=2, annotations={"a": "b"}, premises=Premises(root="/r"))
    return sandbox, container_plan(pod, container, sandbox=sandbox, attempt=5, image="sha256:1")


def container(**said: object) -> Container:
    return Container(name="main", image="busybox", **said)  # type: ignore[arg-type]


def test_labels_and_logs_are_those_that_kubelet_would_have_set() -> None:
    sandbox, plan = plans(container())
    common = {
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": UID,
    }
    assert sandbox.labels == {"app": "w", **common}
    assert plan.labels == {**common, "io.kubernetes.container.name": "main"}
    assert (sandbox.log_folder, plan.log_path) == (f"/r/var/lib/partage/machine/logs/{UID}", "main/5.log")
    assert (sandbox.annotations, sandbox.attempt, sandbox.hostname) == ({"a": "b"}, 2, "web")


def test_a_pod_cannot_take_the_place_of_our_annotations_and_labels() -> None:
    pod = Pod(
        metadata=Metadata(name="web", labels={"io.kubernetes.pod.uid": "other"}, annotations={"ours": "forged"}),
        spec=Spec(containers=(container(),)),
    )
    sandbox = sandbox_plan(pod, uid=UID, attempt=0, annotations={"ours": "true"}, premises=Premises())
    assert (sandbox.labels["io.kubernetes.pod.uid"], sandbox.annotations["ours"]) == (UID, "true")


def test_references_to_variables_are_filled_in_as_in_kubernetes() -> None:
    env = (EnvVar(name="A", value="1"), EnvVar(name="B", value="$(A)2 $(C) $$(A)"), EnvVar(name="C", value="3"))
    _, plan = plans(container(env=env, command=("x$(B)",), args=("$(C)", "$(none)", "$(date)", "$$", "$x", "$(A")))
    assert dict(plan.env)["B"] == "12 $(C) $(A)"
    assert plan.command == ("x12 $(C) $(A)",)
    assert plan.args == ("3", "$(none)", "$(date)", "$", "$x", "$(A")


@given(st.text("$()A{}", max_size=8))
def test_what_is_said_on_a_command_line_reaches_the_container_as_it_stands(text: str) -> None:
    options = Options(image="busybox", arguments=("sh", text), env=("A=1", f"B={text}"))
    said = pod_of(options).spec.containers[0]
    _, plan = plans(said)
    assert (plan.args, dict(plan.env)["B"]) == (("sh", text), text)


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        (Amounts(), CgroupPlan()),
        (Amounts(limits={"cpu": "1500m"}), CgroupPlan(cpu_shares=1536, cpu_quota_us=150_000, cpu_period_us=100_000)),
        (
            Amounts(limits={"cpu": 2}, requests={"cpu": "1m"}),
            CgroupPlan(cpu_shares=2, cpu_quota_us=200_000, cpu_period_us=100_000),
        ),
        (Amounts(limits={"cpu": "1m"}), CgroupPlan(cpu_shares=2, cpu_quota_us=1000, cpu_period_us=100_000)),
        (Amounts(limits={"memory": "64Mi", "partage.dev/gpu-milli": 300}), CgroupPlan(memory_bytes=64 << 20)),
    ],
)
def test_amounts_become_the_kernels_numbers(amounts: Amounts, expected: CgroupPlan) -> None:
    assert plans(container(resources=amounts))[1].limits == expected


@pytest.mark.parametrize("key", ["cpu", "memory"])
@pytest.mark.parametrize("said", ["much", "-1", "1e99"])
def test_an_amount_that_is_none_is_refused_by_its_path(key: str, said: str) -> None:
    with pytest.raises(DecodeError) as refused:
        plans(container(resources=Amounts(limits={key: said})))
    assert refused.value.path == f"$.main.resources.limits.{key}"


def test_volumes_become_paths_of_the_machine() -> None:
    volumes = (
        Volume(name="data", host_path=HostPath(path="/data")),
        Volume(name="work", empty_dir=EmptyDir()),
        Volume(name="fast", empty_dir=EmptyDir(medium="Memory")),
    )
    mounts = tuple(VolumeMount(name=each.name, mount_path=f"/{each.name}", read_only=True) for each in volumes)
    _, plan = plans(container(volume_mounts=mounts), volumes=volumes)
    assert plan.mounts == (
        MountPlan(source="/data", target="/data", read_only=True),
        MountPlan(source=f"/r/var/lib/partage/machine/volumes/{UID}/work", target="/work", read_only=True),
        MountPlan(source=f"/dev/shm/partage-{UID}/fast", target="/fast", read_only=True),  # noqa: S108  a name
    )


@pytest.mark.parametrize(
    "volumes",
    [(), (Volume(name="v"),), (Volume(name="v", host_path=HostPath(path="/x"), empty_dir=EmptyDir()),)],
)
def test_a_mount_of_no_volume_or_of_no_single_kind_is_refused(volumes: tuple[Volume, ...]) -> None:
    with pytest.raises(Refused):
        plans(container(volume_mounts=(VolumeMount(name="v", mount_path="/v"),)), volumes=volumes)


def test_ports_are_mapped_on_the_bridge_and_not_in_the_machines_network() -> None:
    ports = (ContainerPort(container_port=80, host_port=8080, host_ip="127.0.0.1"), ContainerPort(container_port=81))
    assert plans(container(ports=ports))[0].ports == (PortPlan(container_port=80, host_port=8080, host_ip="127.0.0.1"),)
    sandbox, _ = plans(container(ports=ports), host_network=True)
    assert (sandbox.ports, sandbox.hostname, sandbox.host_network) == ((), "", True)


def test_who_a_container_runs_as_may_be_said_by_its_pod() -> None:
    common = SecurityContext(run_as_user=7, run_as_group=8, privileged=True)
    sandbox, plan = plans(container(security_context=SecurityContext(run_as_user=0)), security_context=common)
    assert (plan.security.run_as_user, plan.security.run_as_group) == (0, 8)
    assert not plan.security.privileged
    assert not sandbox.privileged


def test_a_host_name_is_no_longer_than_the_kernel_takes() -> None:
    sandbox, _ = plans(container(), hostname="x" * 62 + "-" * 9)
    assert sandbox.hostname == "x" * 62
    assert sandbox.premises.dns == Dns()
