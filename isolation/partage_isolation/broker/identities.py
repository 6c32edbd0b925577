"""Which container a process is of: by its control group, once the runtime's id of the container is known.

When a container's first process comes, the runtime may not have been asked yet. It is taken then, and checked as soon
as the id is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from partage_isolation.broker.processes import cgroup_components, is_within
from partage_isolation.broker.served import Served, Session
from partage_plugins.vocabulary.names import ContainerKey


class Identities:
    """Of all containers."""

    def __init__(self, served: Mapping[ContainerKey, Served]) -> None:
        self.served = served
        self._ids: dict[ContainerKey, str] = {}

    def runtime_has(self, ids: Mapping[ContainerKey, str]) -> Iterator[tuple[Served, Session]]:
        """What the runtime's list says; gives the sessions that are of another container than their socket's."""
        news = [key for key, runtime_id in ids.items() if self._ids.get(key) != runtime_id]
        self._ids = {key: runtime_id for key, runtime_id in ids.items() if runtime_id}
        for key in news:
            served = self.served.get(key)
            for session in list(served.sessions.values()) if served else ():
                if served and session.calls and not self.may_be(key, session.process.pid):
                    yield served, session

    def may_be(self, key: ContainerKey, pid: int) -> bool:
        """Whether that process may be of that container."""
        runtime_id = self._ids.get(key)
        return not runtime_id or is_within(cgroup_components(pid), runtime_id)

    def container_of(self, pid: int) -> ContainerKey | None:
        """Which container a process is of, where that is known."""
        components = cgroup_components(pid)
        return next((key for key, runtime_id in self._ids.items() if is_within(components, runtime_id)), None)
