"""What a plan says on the wire is what crishim and containerd read there; what they answer is read safely."""

from __future__ import annotations

import json

import pytest

from partage_base.cri import MessageWrong, read_create
from partage_base.cri.kubelet_schema import kubelet_message
from partage_cli.machine.pods.pod import Capabilities, SecurityContext
from partage_cli.machine.runtime import messages, requests
from partage_cli.machine.runtime.plans import ContainerPlan, Dns, MountPlan, PortPlan, Premises, SandboxPlan

SANDBOX = SandboxPlan(
    name="web",
    namespace="default",
    uid="u-1",
    attempt=3,
    hostname="web",
    ports=(PortPlan(container_port=80, host_port=8080, protocol="UDP"),),
    premises=Premises(dns=Dns(servers=("1.1.1.1",), options=("ndots:2",))),
    annotations={"alloc.partage.dev/allocation": "{}"},
    labels={"a": "b"},
)
CONTAINER = ContainerPlan(
    name="main",
    attempt=4,
    image="sha256:1",
    image_name="busybox",
    args=("a", "b"),
    env=(("A", "ü"), ("B", "")),
    mounts=(MountPlan(source="/s", target="/t", read_only=True),),
    log_path="main/4.log",
    security=SecurityContext(run_as_user=0, capabilities=Capabilities(add=("NET_ADMIN",))),
)


def test_crishim_reads_a_create_as_it_was_meant() -> None:
    request = read_create(requests.create_container("sandbox", CONTAINER, SANDBOX))
    assert (request.sandbox_id, request.pod, request.uid, request.namespace) == ("sandbox", "web", "u-1", "default")
    assert (request.container, request.attempt, request.image) == ("main", 4, "busybox")
    assert request.annotations == {"alloc.partage.dev/allocation": "{}"}
    assert request.env == (("A", "ü".encode()), ("B", b""))
    assert [(each.host_path, each.container_path, each.readonly) for each in request.mounts] == [("/s", "/t", True)]
    assert (request.capabilities, request.privileged) == (("NET_ADMIN",), False)
    assert not request.pod_pid
    assert not request.host_pid


def test_the_sandbox_that_a_create_names_is_the_one_that_was_made() -> None:
    made = messages.read("RunPodSandboxRequest", requests.run_sandbox(SANDBOX)).config
    named = messages.read("CreateContainerRequest", requests.create_container("s", CONTAINER, SANDBOX)).sandbox_config
    assert made == named
    assert made.metadata.attempt == 3
    assert [(each.protocol, each.container_port, each.host_port) for each in made.port_mappings] == [(1, 80, 8080)]
    assert list(made.dns_config.servers) == [b"1.1.1.1"]


def test_user_0_is_said_and_not_left_to_the_image() -> None:
    config = messages.read("CreateContainerRequest", requests.create_container("s", CONTAINER, SANDBOX)).config
    assert config.linux.security_context.run_as_user.value == 0
    assert config.linux.security_context.HasField("run_as_user")
    assert not config.linux.security_context.HasField("run_as_group")


@pytest.mark.parametrize(("privileged", "masked"), [(False, True), (True, False)])
def test_what_kubelet_hides_is_hidden_but_from_the_privileged(privileged: bool, masked: bool) -> None:  # noqa: FBT001
    plan = ContainerPlan(
        name="m", image="i", image_name="i", log_path="l", security=SecurityContext(privileged=privileged)
    )
    config = messages.read("CreateContainerRequest", requests.create_container("s", plan, SANDBOX)).config
    security = config.linux.security_context
    assert (b"/proc/kcore" in security.masked_paths, bool(security.readonly_paths)) == (masked, masked)
    assert security.seccomp.profile_type == (1 if privileged else 0)


def status(**fields: requests.Value) -> bytes:
    info = ({"key": "info", "value": json.dumps({"pid": 77, "sandboxID": "x"})},)
    return requests.message("ContainerStatusResponse", status=fields, info=info)


def test_a_container_that_runs_has_a_process_and_no_exit_code() -> None:
    state = messages.container_state(status(state=1, started_at=5))
    assert (state.state, state.pid, state.exit_code, state.started_ns) == ("running", 77, None, 5)
    assert not state.is_lost


def test_a_container_that_has_ended_has_an_exit_code_and_no_process() -> None:
    state = messages.container_state(status(state=2, started_at=5, finished_at=9, exit_code=0))
    assert (state.state, state.pid, state.exit_code, state.finished_ns) == ("exited", None, 0, 9)


def test_no_container_ends_before_it_begins() -> None:
    state = messages.container_state(status(state=2, started_at=9, finished_at=5))
    assert (state.started_ns, state.finished_ns) == (5, 5)


@pytest.mark.parametrize("fields", [{"state": 2, "exit_code": 255, "reason": "Unknown"}, {"state": 3}, {"state": 9}])
def test_a_container_that_ended_unseen_is_lost(fields: dict[str, requests.Value]) -> None:
    assert messages.container_state(status(**fields)).is_lost


def test_a_runtime_that_does_not_tell_a_pid_has_none() -> None:
    for info in (b"{}", b"no JSON", b"[" * 100_000):
        raw = requests.message("ContainerStatusResponse", status={"state": 1}, info=({"key": "info", "value": info},))
        assert messages.container_state(raw).pid is None


def test_why_a_runtime_is_not_ready_is_said_by_what_it_lacks() -> None:
    conditions: tuple[requests.Value, ...] = (
        {"type": "RuntimeReady", "status": True},
        {"type": "NetworkReady", "status": False, "message": "cni config uninitialized"},
        {"type": "ContainerdHasNoDeprecationWarnings", "status": False, "message": "of containerd 2, for people"},
    )
    raw = requests.message("StatusResponse", status={"conditions": conditions})
    assert messages.why_not_ready(raw) == "NetworkReady is not so: cni config uninitialized"


@pytest.mark.parametrize("parse", [messages.sandboxes, messages.containers, messages.container_state, messages.images])
def test_bytes_that_are_no_message_are_said_to_be_none(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(MessageWrong):
        parse(b"\xff\xff")


def test_a_label_that_is_no_text_makes_the_answer_wrong() -> None:
    pair: requests.Value = ({"key": b"\xff", "value": b""},)
    with pytest.raises(MessageWrong):
        messages.containers(requests.message("ListContainersResponse", containers=({"labels": pair},)))


def test_the_messages_of_kubelet_have_all_fields_of_the_proxys() -> None:
    fields = kubelet_message("ContainerConfig").DESCRIPTOR.fields_by_name
    assert {"envs", "mounts", "cdi_devices", "command", "log_path"} <= set(fields)
