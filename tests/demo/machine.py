"""One machine: three Docker containers share a card, and each is limited to its part. No cluster, no registry.

Docker and partage run on a machine of the rig, so this machine's own Docker is neither seen nor changed. All commands
are those that an operator types. The card is simulated. At the end nothing is left.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final, NamedTuple

from partage_isolation.wire.client import ControlError
from rig.client.wait import until
from rig.errors import BuildFailed, MachineUnfit, RigError
from support.docker_machine import PLACES, DockerMachine, docker_machine
from support.engines.docker import CONFIG, packaged_or_installed
from support.isolation_stage import told_by
from support.machine_image import workloads

FOR_EVER: Final = "--seconds 100000"
MOST_OFF: Final = 0.03
WIDTH: Final = 40
NOT_STARTED: Final = 125
"""The exit status of a refused `docker run`."""
LEFT: Final = ("/etc/partage", "/run/partage", "/var/lib/partage/machine", "/usr/local/lib/partage/oci")


class Tenant(NamedTuple):
    """A container with a part of the card."""

    name: str
    milli: int
    gib: int
    program: str


TENANTS: Final = (
    Tenant("train", 500, 32, "flood --kernel-us 1000"),
    Tenant("tune", 300, 16, "graph-replay"),
    Tenant("serve", 200, 8, "flood --kernel-us 100"),
)


class Failed(Exception):
    """The demonstrated behaviour did not occur."""


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def typed(machine: DockerMachine, command: str, *, status: int = 0, expected: str = "") -> None:
    """Runs a command and shows it with its output; its exit status and a part of the output are checked."""
    say(f"   $ {command}")
    done = machine.types(command)
    for line in done.stdout.rstrip().splitlines():
        say(f"   | {line}")
    if done.returncode != status or expected not in done.stdout:
        raise Failed(f"that should have ended with status {status} and said {expected!r}; status {done.returncode}")


def come_up(machine: DockerMachine) -> None:
    say("   $ partage up --simulated h100 --foreground &")
    machine.stage.start()
    for line in machine.stage.said.rstrip().splitlines():
        say(f"   | {line}")
    say("   (The settings of Docker are in a folder of the demonstration; with your own Docker say nothing of them.)")
    typed(machine, f"partage docker install {PLACES}", expected="names the runtime partage")


def share(machine: DockerMachine) -> None:
    for each in TENANTS:
        asked = f"-e PARTAGE_SHARE={each.milli} -e PARTAGE_MEMORY={each.gib}Gi"
        typed(machine, f"docker run -d --name {each.name} --runtime partage {asked} demo {each.program} {FOR_EVER}")
    show_shares(machine)


def show_shares(machine: DockerMachine) -> None:
    """Shows the parts once those of the last ten seconds are near the shares: later on a busy machine."""
    got: list[float] = []

    def why_not() -> str | None:
        got[:] = parts(machine)
        near = (abs(part - each.milli / 1000) <= MOST_OFF for part, each in zip(got, TENANTS, strict=True))
        return None if all(near) else str(got)

    until("each has its share", why_not, every_s=1)
    say("   What each had of the card in the last ten seconds, as `partage top` shows it:")
    for each, part in zip(TENANTS, got, strict=True):
        say(f"   | {each.name:<6}|{'#' * round(part * WIDTH):<{WIDTH}}| {part:.0%} of {each.milli / 1000:.0%}")
    typed(machine, "partage ps")


def parts(machine: DockerMachine) -> list[float]:
    """Each tenant's part of the time as the broker reports it; 0 for one that it does not know."""
    try:
        cards = [container.cards[0] for container in told_by(machine.docker.machine).containers]
    except ControlError:
        cards = []
    got = {card.share_milli: card.time.got.s10 for card in cards if card.time is not None}
    return [got.get(each.milli, 0.0) for each in TENANTS]


def refuse_memory(machine: DockerMachine) -> None:
    ask = "docker exec serve allocate --kind large --count 1 --mib"
    typed(machine, f"{ask} 4096")
    typed(machine, f"{ask} 16384", status=1, expected="CUDA_ERROR_OUT_OF_MEMORY")


def kill_broker(machine: DockerMachine) -> None:
    started, before = starts(machine), machine.stage.said
    typed(machine, f"kill -9 {broker_pid(machine)}")
    until("it is told of", lambda: None if "starts again" in machine.stage.said[len(before) :] else "not yet")
    for line in machine.stage.said[len(before) :].rstrip().splitlines():
        say(f"   | {line}")
    show_shares(machine)
    if starts(machine) != started:
        raise Failed(f"containers were started again: {started} before, {starts(machine)} now")


def broker_pid(machine: DockerMachine) -> int:
    """Its process id on the machine; processes that the broker started have higher ones."""
    lines = machine.docker.machine.path("/proc").glob("[0-9]*/cmdline")
    return min(int(line.parent.name) for line in lines if b"partage_isolation" in line.read_bytes())


def starts(machine: DockerMachine) -> list[str]:
    """The start time of each container."""
    return [machine.docker.inspected(each.name)["State"]["StartedAt"] for each in TENANTS]


def take_away(machine: DockerMachine, settings: bytes) -> None:
    typed(machine, f"docker rm -f {' '.join(each.name for each in TENANTS)}")
    typed(machine, f"partage docker uninstall {PLACES}")
    typed(machine, "partage down --all --purge")
    if left := [path for path in LEFT if machine.docker.machine.path(path).exists()]:
        raise Failed(f"left: {' '.join(left)}")
    if machine.docker.machine.path(CONFIG).read_bytes() != settings:
        raise Failed(f"{CONFIG} is not as it was")


def show() -> None:
    with docker_machine() as machine:
        machine.docker.load({"demo": workloads()})
        settings, began = machine.docker.machine.path(CONFIG).read_bytes(), time.monotonic()
        say("1. On a machine with Docker, partage is started, and Docker told of it")
        come_up(machine)
        say("\n2. Three containers share the card, and all want the whole of it")
        share(machine)
        say("\n3. A program asks for more memory than its container may have, though it is free on the card")
        refuse_memory(machine)
        say("\n4. A container that does not fit is told why")
        command = "docker run --rm --runtime partage -e PARTAGE_SHARE=300 demo flood"
        typed(machine, command, status=NOT_STARTED, expected="no card has a share of 300 milli left")
        say("\n5. The broker, which keeps the limits, is killed; it comes back, and no container stops")
        kill_broker(machine)
        say(f"\n6. All is taken away, after {time.monotonic() - began:.0f} s")
        take_away(machine, settings)


def main() -> int:
    say("\nOne machine, one card, three containers of Docker. SIMULATED CARDS: nothing is computed on them")
    say("Half a minute; the first time one or two more, for packages are fetched and C is compiled\n")
    if os.geteuid() != 0:
        say("   it starts a machine of its own, in namespaces: run this as root")
        return 1
    began = time.monotonic()
    try:
        packaged_or_installed()
    except (MachineUnfit, BuildFailed) as error:
        say(f"   this demonstration needs Docker's programs, and can't have them: {str(error).splitlines()[0]}")
        return 1
    try:
        show()
    except (Failed, RigError, AssertionError) as failed:
        say(f"   FAILED: {failed}")
        return 1
    say(f"\n   It took {time.monotonic() - began:.0f} s in all. To try next, with your own Docker:")
    say("   | sudo .venv/bin/partage up                # a real card where there is one")
    say("   | sudo .venv/bin/partage docker install    # in another terminal, where `up` stays")
    say("   | docker run --runtime partage -e PARTAGE_SHARE=300 -e PARTAGE_MEMORY=4Gi IMAGE")
    say("   | sudo .venv/bin/partage top")
    say("   | make demo-cluster                        # the same in Kubernetes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
