"""Debian's Podman on a machine of the rig.

podman = podman_on(machine)
podman.load({"tools": workloads()})
podman.run("--rm", "tools", "true")
podman.done("--runtime", PATH, "run", "--rm", "tools", "true")
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rig.nodes.machine import Machine
from support.engines.engine import DATA, STATE, Engine, cgroup_of, engine_programs, make_libraries_known, path_of

PODMAN: Final = "podman"
_CONFIG: Final = """\
[containers]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
conmon_path = ["{conmon}"]
events_logger = "file"
runtime = "runc"
[engine.runtimes]
{runtimes}
"""
_STORAGE: Final = f"""\
[storage]
driver = "overlay"
graphroot = "{DATA}/podman"
runroot = "{STATE}/podman"
"""
_POLICY: Final = '{"default": [{"type": "insecureAcceptAnything"}]}'


@dataclass(frozen=True)
class Podman(Engine):
    cgroup: str

    def done(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command without checking its status; its containers are below the machine's cgroup."""
        at = next((index for index, word in enumerate(words, 1) if word in {"create", "run"}), 0)
        return super().done(*words[:at], *(("--cgroup-parent", self.cgroup) if at else ()), *words[at:])

    def by_crun(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A `run` by crun without a version 2 hierarchy beside version 1, as some systems have: crun accepts no mix."""
        alone = (
            "umount /sys/fs/cgroup/unified 2>/dev/null; exec podman --runtime crun run --cgroup-parent " + self.cgroup
        )
        return self.program("unshare", "--mount", "sh", "-c", f'{alone} "$@"', "sh", *words)

    def end(self, *names: str) -> None:
        self.said("rm", "-f", "-t", "0", *names)


def podman_on(machine: Machine, runtimes: Mapping[str, str] | None = None) -> Podman:
    """Podman with additional runtimes, paths by name."""
    programs = engine_programs(PODMAN)
    lines = "\n".join(f'{name} = ["{path}"]' for name, path in (runtimes or {}).items())
    make_libraries_known(machine, programs)  # conmon starts runtimes, too, without environment variables
    machine.write("/etc/containers/containers.conf", _CONFIG.format(conmon=programs["conmon@conmon"], runtimes=lines))
    machine.write("/etc/containers/storage.conf", _STORAGE)
    machine.write("/etc/containers/policy.json", _POLICY)
    return Podman(machine, "podman", {"PATH": path_of(programs), "HOME": STATE}, cgroup_of(machine, "conmon"))
