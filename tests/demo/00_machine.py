"""One machine: three containers share a card, and each is held to its part. No cluster, no registry.

What is typed here is what an operator types; only the forger speaks to the runtime itself. The card is simulated. At
the end the machine is as it was.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_base.cri import PeerRefused, UnaryClient
from partage_cli.machine.places import CRISHIM_SOCKET, MACHINE_FILE
from partage_cli.machine.pods.pod import Container, Metadata, Pod, Spec
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.runtime.plans import Premises, container_plan, sandbox_plan
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_plugins.codecs import decode_allocation
from partage_plugins.vocabulary import GPU, PodUid
from rig.client.binding import signed
from rig.client.wait import until
from rig.errors import RigError
from support.machine_image import workloads, write_archive
from support.machine_services import pid_of
from support.sharing import bar

ROOT: Final = Path("/")
PARTAGE: Final = (sys.executable, "-P", "-m", "partage_cli")
TRACES: Final = (MACHINE_FILE, CRISHIM_SOCKET)
"""Of a partage that is here already."""
FOR_EVER: Final = ("--seconds", "100000")
ALONE_S: Final = 2
JUDGED_S: Final = 3
MOST_OFF: Final = 0.03
MOST_S: Final = 30
UP_WITHIN_S: Final = 900.0
"""The first time packages are fetched, and libraries built."""


class Tenant(NamedTuple):
    """A container with a part of the card."""

    name: str
    milli: int
    gib: int
    argv: tuple[str, ...]


TENANTS: Final = (
    Tenant("train", 500, 32, ("flood", "--kernel-us", "1000")),
    Tenant("tune", 300, 16, ("graph-replay",)),
    Tenant("serve", 200, 8, ("launch-wait", "--kernel-us", "1000")),
)


class Failed(Exception):
    """What was to be shown did not happen."""


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def partage(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PARTAGE, *words], capture_output=True, text=True, timeout=120, check=False)


def typed(*words: str) -> str:
    """What the command prints, which is shown."""
    say(f"   $ partage {' '.join(words)}")
    done = partage(*words)
    if done.returncode:
        raise Failed(f"partage {words[0]}: {done.stderr.strip()}")
    for line in done.stdout.rstrip().splitlines():
        say(f"   | {line}")
    return done.stdout


def refused(*words: str) -> None:
    """A command that must fail, and why it does."""
    say(f"   $ partage {' '.join(words)}")
    done = partage(*words)
    if not done.returncode:
        raise Failed(f"partage {words[0]} was not refused")
    say(f"   | {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    say(f"   | exit code {done.returncode}")


@contextmanager
def a_machine(folder: Path) -> Generator[subprocess.Popen[str]]:
    """Ready for containers while this lasts, and nothing of it is left then."""
    log = folder / "up.log"
    words = ("up", "--simulated", "h100", "--cards", "1", "--foreground")
    say(f"   $ partage {' '.join(words)}")
    with (
        log.open("w") as written,
        subprocess.Popen([*PARTAGE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as up,
    ):
        shown = threading.Event()
        reader = threading.Thread(target=_copy, args=(up, written, shown))
        reader.start()
        try:
            until("the machine is up", lambda: _why_not_up(up, log), UP_WITHIN_S)
            shown.set()
            yield up
        finally:
            shown.set()
            say("   $ partage down --all --purge")
            down = partage("down", "--all", "--purge")
            for line in down.stderr.splitlines():
                say(f"   | {line}")
            up.wait(60)
            reader.join()
            if down.returncode:
                raise Failed(f"partage down: {down.stderr.strip()}")


def _copy(up: subprocess.Popen[str], log: Any, enough: threading.Event) -> None:
    assert up.stdout is not None
    for line in up.stdout:
        log.write(line)
        log.flush()
        if not enough.is_set():
            say(f"   | {line.rstrip()}")


def _why_not_up(up: subprocess.Popen[str], log: Path) -> str | None:
    if up.poll() is not None:
        raise Failed(f"partage up ended with exit code {up.returncode}: {log.read_text()[-1000:].strip()}")
    done = partage("ps")
    return done.stderr.strip() or "it does not answer" if done.returncode else None


def share() -> bool:
    """They come one after the other; shares are of those who are there."""
    is_fair = False
    for each in TENANTS:
        flags = ("-d", "--name", each.name, "--share", str(each.milli), "--memory", f"{each.gib}Gi")
        typed("run", *flags, "demo", "--", *each.argv, *FOR_EVER)
        is_fair = watch(MOST_S if each is TENANTS[-1] else ALONE_S)
    return is_fair


def seconds() -> Iterator[dict[str, float]]:
    """What each had of the card in the last second, again and again, as the broker tells it."""
    broker = BrokerClient(ROOT, deadline_s=10)
    while True:
        time.sleep(1)
        held = {each.pod.name: each.cards[0].time for each in broker.tell().containers}
        yield {name: time.got.s1 for name, time in held.items() if time is not None}


def watch(most_s: int) -> bool:
    """A line a second until each has its share, over some seconds together."""
    seen: list[list[float]] = []
    for parts, _ in zip(seconds(), range(most_s), strict=False):
        seen.append([parts.get(each.name, 0.0) for each in TENANTS])
        figures = "   ".join(
            f"{each.name} {part:4.0%} of {each.milli / 1000:.0%}"
            for each, part in zip(TENANTS, seen[-1], strict=True)
            if each.name in parts
        )
        say(f"   |{bar(seen[-1])}|  {figures}")
        if len(seen) >= JUDGED_S and off(seen[-JUDGED_S:]) <= MOST_OFF:
            return True
    return False


def off(seen: Sequence[Sequence[float]]) -> float:
    """How far the worst share is from its promise."""
    means: list[float] = [sum(parts) / len(seen) for parts in zip(*seen, strict=True)]
    return max(abs(mean - each.milli / 1000) for mean, each in zip(means, TENANTS, strict=True))


def refuse_memory() -> None:
    """A program that wants more memory than its container may have, though it is free on the card."""
    words = ("run", "--rm", "--name", "small", "--memory", "2Gi", "demo", "--")
    for mib, expected in (("1024", None), ("4096", "CUDA_ERROR_OUT_OF_MEMORY")):
        program = ("allocate", "--kind", "large", "--seconds", "0.1", "--mib", mib)
        say(f"   $ partage {' '.join((*words, *program))}")
        done = partage(*words, *program)
        if not done.stdout:
            raise Failed(f"partage run: {done.stderr.strip()}")
        error = json.loads(done.stdout)["error"]
        if (expected is None) != (error is None) or str(expected) not in str(error):
            raise Failed(f"small asked for {mib} MiB of its 2 GiB: {error}")
        say(f"   | {error or 'has it'}; exit code {done.returncode}")


async def forge() -> None:
    """Who may speak to the runtime, and signs with a key of its own."""
    copied = decode_allocation(json.loads(partage("inspect", "train").stdout)[0]["allocation"], [GPU])
    uid, (name,) = str(uuid.uuid4()), copied.containers
    allocation = replace(copied, pod=PodUid(uid))
    pod = Pod(metadata=Metadata(name="forged"), spec=Spec(containers=(Container(name=name, image="demo"),)))
    annotations = signed(allocation, Ed25519PrivateKey.generate())
    plan = sandbox_plan(pod, uid=uid, attempt=0, annotations=annotations, premises=Premises())
    with closing(UnaryClient(ROOT / CRISHIM_SOCKET)) as peer:
        runtime = MachineRuntime(peer)
        image = await runtime.image(pod.spec.containers[0].image)
        sandbox = await runtime.run_sandbox(plan)
        try:
            container = container_plan(pod, pod.spec.containers[0], sandbox=plan, attempt=0, image=image or "")
            await runtime.create(sandbox, container, plan)
        except PeerRefused as refused:
            say(f"   | {refused.words}")
        else:
            raise Failed("a forged allocation was honoured")
        finally:
            await runtime.remove_sandbox(sandbox)


def kill_broker(up: subprocess.Popen[str]) -> None:
    before = starts()
    pid = pid_of(up.pid, "broker")
    os.kill(pid, signal.SIGKILL)
    say(f"   $ kill -9 {pid}")
    until("another broker answers", lambda: None if told() and pid_of(up.pid, "broker") != pid else "there is none")
    if starts() != before:
        raise Failed(f"containers were started again: {before} before, {starts()} now")
    say(f"   | process {pid_of(up.pid, 'broker')} is the broker now; no container was started again")


def told() -> bool:
    try:
        return bool(BrokerClient(ROOT).tell().containers)
    except ControlError:
        return False


def starts() -> dict[str, object]:
    """When each container was started."""
    pods = json.loads(partage("ps", "-o", "json").stdout)["pods"]
    return {pod["name"]: [container["started_ns"] for container in pod["containers"]] for pod in pods}


def show(folder: Path) -> None:
    say("1. The machine is made ready: a containerd of its own, broker, crishim, inventory and manager")
    with a_machine(folder) as up:
        began = time.monotonic()
        archive = write_archive(folder / "demo.tar", {"demo": workloads()})
        say("\n2. Three containers share the card, and all want the whole of it")
        typed("load", "-i", str(archive))
        if not share():
            raise Failed(f"after {MOST_S} s shares are not within {MOST_OFF:.0%}")
        typed("ps")
        say("\n3. A program asks for more memory than its container may have")
        refuse_memory()
        say("\n4. A container that does not fit is told why")
        refused("run", "-d", "--name", "more", "--share", "300", "demo", "--", "flood")
        say("\n5. A forger writes the allocation of another straight into the runtime, signed with a key of its own")
        asyncio.run(forge())
        say("\n6. The broker is killed, and nothing stops")
        kill_broker(up)
        if not watch(MOST_S):
            raise Failed(f"{MOST_S} s after the broker's end shares are not within {MOST_OFF:.0%}")
        say(f"\n7. All this took {time.monotonic() - began:.0f} s. The machine is taken down, with all that was made")


def main() -> int:
    say("\nOne machine, one card, three containers. SIMULATED CARDS: nothing is computed on them\n")
    if os.geteuid() != 0:
        say("   partage starts containers: run this as root")
        return 1
    began = time.monotonic()
    with Path("/run/partage-demo.lock").open("w") as lock, tempfile.TemporaryDirectory() as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found := [each for each in TRACES if (ROOT / each).exists()]:
            say(f"   this machine runs partage already (/{found[0]} is there), and the demonstration makes a machine")
            say("   of its own: type `partage down --all --purge` before, or show it elsewhere")
            return 1
        try:
            show(Path(folder))
        except (Failed, RigError) as failed:
            say(f"   FAILED: {failed}")
            return 1
    say(f"\n   It took {time.monotonic() - began:.0f} s in all. To try next:")
    say("   | .venv/bin/partage up                                      # leave it running, and in another terminal:")
    say("   | .venv/bin/partage run -it --share 300 --memory 4Gi IMAGE  # any image of any registry")
    say("   | .venv/bin/partage top")
    say("   | make demo-cluster                                         # the same in Kubernetes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
