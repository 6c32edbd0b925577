"""Containers of one machine by Debian's containerd, through crishim: from their images to their ends."""

from __future__ import annotations

import asyncio
import ctypes
import os
import termios
import uuid
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from partage_base.cri import PeerRefused, UnaryClient
from partage_cli.machine.places import CONTAINERD_SOCKET, CRISHIM_SOCKET
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
from partage_cli.machine.runtime import host, images
from partage_cli.machine.runtime.archives import ImageAway
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.runtime.exits import ended
from partage_cli.machine.runtime.logs import followed, rotate
from partage_cli.machine.runtime.plans import Premises, container_plan, sandbox_plan
from partage_cli.machine.runtime.streams import Asked, StreamEnd, streamed
from partage_cli.machine.runtime.terminal import Terminal
from rig import images as made
from rig.images.image import layout
from support.machine_stage import MachineStage, machine_up

CLONE_NEWNET = 0x40000000
ON_TERMINAL = Asked(stdin=True, tty=True)
FOREVER = ("sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done")


@pytest.fixture(scope="module")
def stage() -> Iterator[MachineStage]:
    with machine_up(say=print) as stage:
        stage.registry.push(made.busybox(), "busybox")
        yield stage


@pytest.fixture
async def runtime(stage: MachineStage) -> AsyncGenerator[MachineRuntime]:
    runtime = MachineRuntime(UnaryClient(stage.machine.path(f"/{CRISHIM_SOCKET}")))
    yield runtime
    for sandbox in await runtime.sandboxes():
        await runtime.remove_sandbox(sandbox.id)
    runtime.close()


class Started:
    """A pod of one container on the machine."""

    def __init__(self, runtime: MachineRuntime, sandbox: str, container: str, logs: Path) -> None:
        self.runtime, self.sandbox, self.container, self.logs = runtime, sandbox, container, logs

    async def end(self) -> int | None:
        state = await ended(self.runtime, self.container)
        assert state is not None
        return state.exit_code

    async def said(self, stream: str = "stdout") -> bytes:
        return b"".join([line.data + b"\n" async for line in followed(self.logs) if line.stream == stream])


@asynccontextmanager
async def started(
    stage: MachineStage, runtime: MachineRuntime, container: Container, **spec: object
) -> AsyncGenerator[Started]:
    pod = Pod(metadata=Metadata(name="web"), spec=Spec(containers=(container,), **spec))  # type: ignore[arg-type]
    uid, image = str(uuid.uuid4()), await runtime.image(container.image) or await runtime.pull(container.image)
    sandbox = sandbox_plan(pod, uid=uid, attempt=0, annotations={}, premises=Premises())
    plan = container_plan(pod, container, sandbox=sandbox, attempt=0, image=image)
    # The machine has its own files, so what is made for the pod is made as it sees them.
    inside = stage.machine.path("/")
    host.prepare(pod, sandbox_plan(pod, uid=uid, attempt=0, annotations={}, premises=Premises(root=str(inside))))
    sandbox_id = await runtime.run_sandbox(sandbox)
    container_id = await runtime.create(sandbox_id, plan, sandbox)
    await runtime.start(container_id)
    yield Started(runtime, sandbox_id, container_id, inside / sandbox.log_folder.lstrip("/") / container.name)
    await runtime.stop_sandbox(sandbox_id)
    await runtime.remove_sandbox(sandbox_id)


def running(*argv: str, **said: object) -> Container:
    return Container(name="main", image="busybox", command=argv, **said)  # type: ignore[arg-type]


@contextmanager
def network_of(stage: MachineStage) -> Generator[None]:
    """This thread has the machine's network, so that what it connects to is there."""
    libc = ctypes.CDLL(None, use_errno=True)
    own, other = (os.open(f"/proc/{pid}/ns/net", os.O_RDONLY) for pid in ("thread-self", stage.machine.pid))
    try:
        assert libc.setns(other, CLONE_NEWNET) == 0
        yield
    finally:
        assert libc.setns(own, CLONE_NEWNET) == 0
        os.close(own)
        os.close(other)


async def fetched(host: str, port: int) -> bytes:
    """The body of the first page; a server that has only just been started does not listen yet."""
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)
            continue
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer.partition(b"\r\n\r\n")[2]


class Output:
    def __init__(self) -> None:
        self.of = {"stdout": bytearray(), "stderr": bytearray()}
        self.came = asyncio.Event()

    async def write(self, stream: str, data: bytes) -> None:
        self.of[stream] += data
        self.came.set()

    async def until(self, has: Callable[[bytes], bool]) -> None:
        while not has(bytes(self.of["stdout"])):
            self.came.clear()
            await self.came.wait()


async def test_a_runtime_tells_its_version_and_that_it_is_ready(runtime: MachineRuntime) -> None:
    assert (await runtime.version()).startswith("containerd 1.6")
    assert await runtime.status() == ""


async def test_a_container_from_its_making_to_its_end(stage: MachineStage, runtime: MachineRuntime) -> None:
    argv = ("sh", "-c", "echo out; echo err >&2; exit 7")
    async with started(stage, runtime, running(*argv)) as pod:
        assert await pod.end() == 7
        assert (await pod.said(), await pod.said("stderr")) == (b"out\n", b"err\n")
        (sandbox,), (listed,) = await runtime.sandboxes(), await runtime.containers()
        assert (sandbox.name, sandbox.ready, listed.pod_uid) == ("web", True, sandbox.uid)
        assert (listed.name, listed.state, listed.sandbox_id) == ("main", "exited", pod.sandbox)
        state = await runtime.container(pod.container)
        assert state.started_ns is not None
        assert state.finished_ns is not None
        assert state.started_ns <= state.finished_ns
        assert not state.is_lost
    assert await runtime.containers() == ()


async def test_the_end_of_one_that_already_ran_is_an_event(stage: MachineStage, runtime: MachineRuntime) -> None:
    async with started(stage, runtime, running(*FOREVER)) as pod:
        waiting = asyncio.create_task(ended(runtime, pod.container))
        while await pod.said() != b"ready\n":  # noqa: ASYNC110  before, it has no answer to a signal
            await asyncio.sleep(0.02)
        await runtime.stop(pod.container, grace_s=10)
        state = await waiting
        assert state is not None
        assert state.exit_code == 3
        await runtime.stop(pod.container, grace_s=1)


async def test_what_kubelet_would_promise_is_in_force(stage: MachineStage, runtime: MachineRuntime) -> None:
    stage.machine.write("/data/given", "given")
    show = (
        "id -u; echo $A; cat /data/given; touch /data/x 2>/dev/null || echo read-only; touch /work/y && echo written; "
        "touch /z 2>/dev/null || echo root read-only; pwd; hostname; "
        "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null"
    )
    container = running(
        "sh",
        "-c",
        show,
        env=(EnvVar(name="A", value="x y"),),
        working_dir="/tmp",  # noqa: S108  in the container
        resources=Amounts(limits={"memory": "64Mi", "cpu": "500m"}),
        security_context=SecurityContext(run_as_user=77, read_only_root_filesystem=True),
        volume_mounts=(
            VolumeMount(name="data", mount_path="/data", read_only=True),
            VolumeMount(name="work", mount_path="/work"),
        ),
    )
    volumes = (Volume(name="data", host_path=HostPath(path="/data")), Volume(name="work", empty_dir=EmptyDir()))
    async with started(stage, runtime, container, volumes=volumes, hostname="named") as pod:
        await pod.end()
        said = (await pod.said()).decode()
    assert said == "77\nx y\ngivenread-only\nwritten\nroot read-only\n/tmp\nnamed\n67108864\n"


async def test_a_command_in_a_container_has_its_input_its_outputs_and_its_exit_code(
    stage: MachineStage, runtime: MachineRuntime
) -> None:
    async with started(stage, runtime, running(*FOREVER)) as pod:
        argv = ("sh", "-c", "cat; echo err >&2; exit 5")
        url = await runtime.exec_url(pod.container, argv, tty=False, stdin=True)
        reading, writing = os.pipe()
        os.write(writing, b"abc")
        os.close(writing)
        output = Output()
        with network_of(stage):
            end = await streamed(url, Asked(stdin=True, tty=False), write=output.write, stdin=reading)
        assert end == StreamEnd(how="exited", exit_code=5)
        assert {name: bytes(data) for name, data in output.of.items()} == {"stdout": b"abc", "stderr": b"err\n"}
        os.close(reading)


async def test_a_terminal_in_a_container_has_the_size_of_ours_and_its_keys(
    stage: MachineStage, runtime: MachineRuntime
) -> None:
    async with started(stage, runtime, running(*FOREVER)) as pod:
        url = await runtime.exec_url(pod.container, ("sh",), tty=True, stdin=True)
        person, program = os.openpty()
        output = Output()
        termios.tcsetwinsize(program, (33, 99))
        with network_of(stage):
            task = asyncio.create_task(streamed(url, ON_TERMINAL, write=output.write, terminal=Terminal(program)))
            await output.until(lambda said: b"#" in said)
            os.write(person, b"stty size\r")
            await output.until(lambda said: b"33 99" in said)
            os.write(person, b"exit 9\r")
            assert await task == StreamEnd(how="exited", exit_code=9)
        for descriptor in (person, program):
            os.close(descriptor)


async def test_input_of_a_container_ends_with_ours(stage: MachineStage, runtime: MachineRuntime) -> None:
    async with started(stage, runtime, running("cat", stdin=True)) as pod:
        url = await runtime.attach_url(pod.container, tty=False, stdin=True, output=False)
        reading, writing = os.pipe()
        os.write(writing, b"all of it\n")
        os.close(writing)
        with network_of(stage):
            end = await streamed(url, Asked(stdin=True, tty=False, output=False), write=Output().write, stdin=reading)
        os.close(reading)
        assert end == StreamEnd(how="exited", exit_code=0)
        assert await pod.end() == 0
        assert await pod.said() == b"all of it\n"


async def test_letting_go_of_a_container_leaves_it_running(stage: MachineStage, runtime: MachineRuntime) -> None:
    async with started(stage, runtime, running("sh", stdin=True, tty=True)) as pod:
        person, program = os.openpty()
        for _ in range(2):
            url, output = await runtime.attach_url(pod.container, tty=True, stdin=True), Output()
            with network_of(stage):
                task = asyncio.create_task(streamed(url, ON_TERMINAL, write=output.write, terminal=Terminal(program)))
                os.write(person, b"echo a''b\r")
                await output.until(lambda said: b"ab" in said)
                os.write(person, b"\x10\x11")
                assert await task == StreamEnd(how="detached")
            assert (await runtime.container(pod.container)).state == "running"
        for descriptor in (person, program):
            os.close(descriptor)


async def test_a_port_of_the_machine_leads_into_the_bridges_network(
    stage: MachineStage, runtime: MachineRuntime
) -> None:
    serving = ("sh", "-c", "mkdir /www; echo hello > /www/index.html; httpd -f -p 80 -h /www")
    ports = (ContainerPort(container_port=80, host_port=8088),)
    async with started(stage, runtime, running(*serving, ports=ports)) as pod:
        address = await runtime.address(pod.sandbox)
        assert address
        with network_of(stage):
            assert await fetched(address, 80) == b"hello\n"
            assert await fetched(str(stage.machine.addresses.ip), 8088) == b"hello\n"


async def test_a_pod_may_have_the_machines_network(stage: MachineStage, runtime: MachineRuntime) -> None:
    async with started(stage, runtime, running("ip", "addr"), host_network=True) as pod:
        assert await pod.end() == 0
        assert str(stage.machine.addresses.ip).encode() in await pod.said()
        assert await runtime.address(pod.sandbox) == ""


async def test_a_log_that_was_set_aside_goes_on_in_a_new_file(stage: MachineStage, runtime: MachineRuntime) -> None:
    counting = ("sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done")
    async with started(stage, runtime, running(*counting)) as pod:
        until, seen = asyncio.Event(), 0
        lines = followed(pod.logs, until=until)
        async for line in lines:
            seen += 1
            assert int(line.data) == seen
            if seen in (20, 60):
                assert await rotate(runtime, pod.container, pod.logs / "0.log", most_bytes=10)
            if seen == 100:
                until.set()
        assert seen >= 100
        assert sorted(path.name for path in pod.logs.iterdir()) == ["0.log", "0.log.1"]


@asynccontextmanager
async def half_a_download(stage: MachineStage, *, total: int) -> AsyncGenerator[None]:
    """Of another program; it is there as long as the context."""
    root, socket = stage.machine.path("/"), str(stage.machine.path(f"/{CONTAINERD_SOCKET}"))
    argv = (str(stage.ctr), "--address", socket, "--namespace", "k8s.io", "content", "ingest")
    other = await asyncio.create_subprocess_exec(*argv, "--expected-size", str(total), "half", stdin=PIPE)
    try:
        assert other.stdin is not None
        other.stdin.write(bytes(total // 2))
        while not images.downloads(root):  # noqa: ASYNC110  a program's file
            await asyncio.sleep(0.01)
        yield
    finally:
        other.kill()
        await other.wait()


async def test_an_image_is_fetched_with_what_was_fetched_so_far(stage: MachineStage, runtime: MachineRuntime) -> None:
    """All downloads are told of, and another's is there: an image may come between two looks."""
    stage.registry.push(made.busybox().labelled(own="2"), "big/image:1")
    told: list[tuple[int, int]] = []
    async with half_a_download(stage, total=3 << 20):
        root = stage.machine.path("/")
        image = await images.pull(runtime, "big/image:1", root=root, tell=lambda *figures: told.append(figures))
    assert await runtime.image("big/image:1") == image
    assert max(total for _, total in told) >= 3 << 20
    assert all(done <= total for done, total in told)
    assert "docker.io/big/image:1" in {name for each in await runtime.images() for name in each.names}


async def test_an_image_that_is_nowhere_is_one_line(stage: MachineStage, runtime: MachineRuntime) -> None:
    assert await runtime.image("none/such") is None
    with pytest.raises(ImageAway, match=r"image docker\.io/none/such:latest: its registry has none") as away:
        await images.pull(runtime, "none/such", root=stage.machine.path("/"))
    assert "\n" not in str(away.value)


async def test_an_archive_is_loaded_and_known_at_once(
    stage: MachineStage, runtime: MachineRuntime, tmp_path: Path
) -> None:
    archive = tmp_path / "own.tar"
    archive.write_bytes(layout({"docker.io/library/own:1": made.busybox().labelled(own="1")}))
    socket = stage.machine.path(f"/{CONTAINERD_SOCKET}")
    assert await images.load(runtime, archive, ctr=stage.ctr, socket=socket) == ("docker.io/library/own:1",)
    async with started(stage, runtime, Container(name="main", image="own:1", command=("true",))) as pod:
        assert await pod.end() == 0


async def test_what_is_not_there_is_refused_or_done(runtime: MachineRuntime) -> None:
    with pytest.raises(PeerRefused):
        await runtime.container("nothing")
    await runtime.remove("nothing")
    await runtime.remove_sandbox("nothing")
    assert await ended(runtime, "nothing") is None
