"""The advertisers' requests in the API server's audit log: a client's own count would prove nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rig.control.settings import ControlSettings
from rig.identity.people import ADVERTISER

_READS = frozenset(("get", "list", "watch"))


class Asked(NamedTuple):
    """One request that was answered."""

    verb: str
    resource: str
    name: str
    status: int

    @property
    def is_write(self) -> bool:
        return self.verb not in _READS


class Audit:
    """The log of one API server, from a position on."""

    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "policy.json", folder / "audit.log"
        self._read_from = 0

    def settings(self) -> ControlSettings:
        """Settings of a control plane that writes this log."""
        rules = [{"level": "Metadata", "users": [ADVERTISER.user]}, {"level": "None"}]
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
        self._policy.write_text(json.dumps({**policy, "omitStages": ["RequestReceived", "ResponseStarted"]}))
        flags = {"audit-policy-file": str(self._policy), "audit-log-path": str(self._log)}
        return ControlSettings(apiserver_flags=flags)

    def begin(self) -> None:
        """Ignore all requests up to now."""
        self._read_from = self._log.stat().st_size if self._log.exists() else 0

    def asked(self) -> list[Asked]:
        """All requests since `begin`."""
        return list(self._entries())

    def writes(self) -> Counter[tuple[str, str]]:
        """Number of writes by verb and resource."""
        return Counter((each.verb, each.resource) for each in self._entries() if each.is_write)

    def _entries(self) -> Iterator[Asked]:
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._read_from)
            for line in log.read().splitlines():
                entry: dict[str, Any] = json.loads(line)
                about = entry.get("objectRef", {})
                status = int(entry.get("responseStatus", {}).get("code", 0))
                yield Asked(entry["verb"], about.get("resource", ""), about.get("name", ""), status)
