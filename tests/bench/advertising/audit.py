"""What the API server was asked to write, by its own audit log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rig.identity.people import ServiceAccount

_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]}, {"level": "None"}],
}


class AuditLog:
    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "audit-policy.json", folder / "audit.log"
        self._policy.write_text(json.dumps(_POLICY))

    @property
    def flags(self) -> Mapping[str, str]:
        """Of the API server that is to write it; each line is there before the write is answered."""
        return {"audit-policy-file": str(self._policy), "audit-log-path": str(self._log), "audit-log-mode": "blocking"}

    def position(self) -> int:
        return self._log.stat().st_size

    def writes(self, account: ServiceAccount, since: int) -> Counter[str]:
        """What the account asked for from that position on, refused or not, as `update leases`."""
        with self._log.open("rb") as log:
            log.seek(since)
            told = [json.loads(line) for line in log if line.endswith(b"\n")]
        ours = [each for each in told if each["user"]["username"] == account.user]
        return Counter(f"{each['verb']} {each['objectRef']['resource']}" for each in ours)
