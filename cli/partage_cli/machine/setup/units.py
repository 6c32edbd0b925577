"""The services as systemd units. Pure.

They start before the engines: an engine that starts creates its containers with a restart policy, and tries each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from partage_cli.machine.setup.services import Service

PREFIX: Final = "partage-"
TARGET: Final = f"{PREFIX}machine.target"
_ENGINES: Final = "docker.service podman.service"
_HEAD: Final = "# Written by `partage up`. `partage down --purge` removes it.\n"


def unit_name(service: Service) -> str:
    return f"{PREFIX}{service.name}.service"


def units(every: Sequence[Service]) -> Mapping[str, str]:
    """Unit files by name, and the target that groups them."""
    texts = {unit_name(service): _unit(service, every[:place]) for place, service in enumerate(every)}
    wants = " ".join(texts)
    texts[TARGET] = f"""\
{_HEAD}[Unit]
Description=This machine's cards, shared between containers
Wants={wants}

[Install]
WantedBy=multi-user.target
"""
    return texts


def _unit(service: Service, before: Sequence[Service]) -> str:
    after = " ".join(("local-fs.target", *map(unit_name, before)))
    part_of = "" if service.outlives else f"PartOf={TARGET}\n"
    return f"""\
{_HEAD}[Unit]
Description=partage: {service.about}
After={after}
Before={_ENGINES}
{part_of}StartLimitIntervalSec=0

[Service]
Type={"notify" if service.tells_systemd else "exec"}
NotifyAccess=all
ExecStart={" ".join(map(_quoted, service.argv))}
Restart=always
RestartSec=1
KillMode=process
TimeoutStopSec=30
LimitNOFILE=infinity
TasksMax=infinity
OOMScoreAdjust=-900
RuntimeDirectory=partage
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=yes
"""


def _quoted(word: str) -> str:
    """Quote a word for systemd, with its escapes, so that no variable or specifier is expanded."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
