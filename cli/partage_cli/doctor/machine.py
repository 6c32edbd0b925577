"""A machine with Docker or Podman: whether the agent answers, and whether engines use our runtime."""

from __future__ import annotations

from collections.abc import Iterator

from partage_cli.docker.program import InstalledProgram
from partage_cli.docker.registration import DAEMON_JSON, DROP_IN, DockerFile, PodmanFile
from partage_cli.docker.state import states
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode
from partage_oci.client import AgentClient, AgentError, OnlyForRoot
from partage_plugins.errors import Refused


def agent(node: LocalNode) -> Iterator[Finding]:
    """The agent answers, so containers with a share can be created."""
    client = AgentClient(node.root)
    about = About("agent", (str(client.path),))
    try:
        told = client.tell()
    except OnlyForRoot as error:
        yield about.unknown(str(error), do="ask again as root")
    except (AgentError, Refused) as error:
        yield about.wrong(
            f"{error}; until then no container with a share starts",
            do="`partage up`; where systemd runs, `systemctl status partage-agent`",
        )
    else:
        count = len(told.containers)
        yield about.ok(
            f"version {told.agent}; {count} {'container holds' if count == 1 else 'containers hold'} a share"
        )


def engines(node: LocalNode) -> Iterator[Finding]:
    """Every engine with the runtime registered also uses it."""
    about = About("engines", (str(node.root / DAEMON_JSON), str(node.root / DROP_IN)))
    try:
        docker, podman = DockerFile(node.root), PodmanFile(node.root)
        found = [each for each in states(docker, podman, InstalledProgram(node.root)) if each.registered]
    except (Refused, OSError) as error:
        yield about.unknown(str(error), do="ask again as root")
        return
    if not found:
        yield about.warning("no engine knows the runtime partage", do="`partage docker install`")
    for each in found:
        if each.why:
            yield about.wrong(f"{each.engine}: {each.why}", do="`partage docker status`")
        else:
            yield about.ok(f"{each.engine} creates containers by the runtime partage")
