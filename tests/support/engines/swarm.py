"""Dockers of several machines as one Swarm; the first is its manager.

Services have no network, so requests are not balanced over them: that needs IP_VS, which few sandbox kernels have. The
ingress network, which uses it, is removed before any node joins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from rig.client.wait import until
from rig.nodes.machine import Machine
from rig.programs import Programs
from support.engines.docker import Docker, Settings, dockerd_on

_PORT: Final = 2377
_FLAGS: Final = (
    *("--detach", "--no-resolve-image", "--endpoint-mode", "dnsrr"),
    *("--restart-delay", "0s", "--stop-grace-period", "0s"),
)
_STATES: Final = "{{.Node}} {{.CurrentState}} {{.Error}}"


@dataclass(frozen=True)
class Swarm:
    nodes: tuple[Docker, ...]

    @property
    def manager(self) -> Docker:
        return self.nodes[0]

    def serve(self, name: str, *words: str) -> None:
        """Create a service; returns before it runs."""
        self.manager.said("service", "create", "--name", name, *_FLAGS, *words)

    def tasks(self, service: str) -> list[str]:
        """Tasks that should run: node if one is assigned, state, and error."""
        flags = ("--filter", "desired-state=running", "--no-trunc", "--format", _STATES)
        return self.manager.said("service", "ps", *flags, service).splitlines()

    def errors(self, service: str) -> list[str]:
        """Errors of tasks, including those that failed recently."""
        return self.manager.said("service", "ps", "--no-trunc", "--format", "{{.Error}}", service).splitlines()

    def wait_running(self, service: str, wanted: Mapping[str, int]) -> list[str]:
        """Wait for these numbers of running tasks by node; returns the tasks that do not run."""

        def running() -> Counter[str]:
            return Counter(task.split()[0] for task in self.tasks(service) if " Running " in task)

        until(f"{wanted} run", lambda: None if running() == wanted else str(self.tasks(service)))
        return [task for task in self.tasks(service) if " Running " not in task]

    def end_all(self) -> None:
        """Remove all services; returns when no node has a container left."""
        if services := self.manager.said("service", "ls", "-q").split():
            self.manager.said("service", "rm", *services)
        until(
            "all containers are gone", lambda: " ".join(node.said("ps", "-aq") for node in self.nodes).strip() or None
        )


@contextmanager
def swarm_of(machines: Iterable[tuple[Machine, Settings]], programs: Programs | None = None) -> Generator[Swarm]:
    with ExitStack() as ends:
        nodes = tuple(ends.enter_context(dockerd_on(machine, settings, programs)) for machine, settings in machines)
        manager = nodes[0]
        at = f"{manager.machine.addresses.ip}:{_PORT}"
        manager.said("swarm", "init", "--advertise-addr", at, "--listen-addr", at)
        removed = manager.program("sh", "-c", "echo y | docker network rm ingress")
        assert removed.returncode == 0, removed.stderr
        token = manager.said("swarm", "join-token", "-q", "worker")
        for node in nodes[1:]:
            node.said("swarm", "join", "--token", token, "--advertise-addr", str(node.machine.addresses.ip), at)
        swarm = Swarm(nodes)
        yield swarm
        swarm.end_all()
