"""The installation of an author or operator: both distributions, installed with pip into a new environment.

The locked dependencies come from the caches of `make`; without them, from the network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rig.patience import patience_s

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
OURS = {group: len(named) for group, named in PROJECT["entry-points"].items()}
"""The number of plugins of the scheduler and of nodes."""
LOCK = CHECKOUT / "requirements/dev.lock"
UV = str(Path(sys.executable).parent / "uv")
NOT_SOURCE = shutil.ignore_patterns(".*", "__pycache__", "dist", "node_modules", "*.egg-info")
BROKEN = {
    "broken_plugin.py": "raise RuntimeError('no such library')\n",
    "broken-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n",
    "broken-1.0.dist-info/entry_points.txt": "[partage.node]\nbroken = broken_plugin:Broken\n",
}
HOSTING = """
import asyncio, json, os, sys
from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.registry.entry_points import blocked_names

async def main():
    host = PluginHost(HostSettings(node="n1", root=sys.argv[1], blocked=blocked_names(os.environ)))
    started = await host.start()
    await host.stop()
    ours = [name for name in sys.modules if name == "numpy" or name.startswith(("partage_fpga", "broken"))]
    print(json.dumps({"kinds": started.kinds, "faults": started.faults, "blocked": started.blocked, "imported": ours}))

asyncio.run(main())
"""
BOTH = {"gpu": "gpu", "fpga": "fpga"}
"""Our own plugin for cards, and the template's for boards."""
ENTRY_POINTS = """
import json
from partage_plugins.hooks import NODE_GROUP, SCHEDULER_GROUP
from partage_plugins.registry.entry_points import installed

print(json.dumps([[each.name for each in installed(group)] for group in (SCHEDULER_GROUP, NODE_GROUP)]))
"""
SIDE = """
import importlib, json, sys
from partage_plugins import hooks
from partage_plugins.registry.entry_points import installed
from partage_plugins.registry.registry import Registry

side = sys.argv[1]
if side == "node":
    import partage_plugins.host.child
report = Registry(importlib.import_module(f"partage_plugins.hooks.{side}")).load(installed(f"partage.{side}"))
imported = [name for name in sys.argv[2:] if name in sys.modules]
print(json.dumps({"loaded": [str(each) for each in report.loaded], "faults": report.faults, "imported": imported}))
"""
HELP = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from partage_cli.main import main

def helped(command):
    sys.argv = ["partage", command, "--help"]
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as ended:
        return ended.code or 0, out.getvalue(), err.getvalue()

print(json.dumps({command: helped(command) for command in sys.argv[1:]}))
"""
ALWAYS = ("doctor", "keys", "limits", "node", "nodes", "top", "ui", "up")
OF_AN_EXTRA = {
    **dict.fromkeys(("audit", "drain", "explain", "simulate"), "scheduler"),
    "simgpu": "simulated",
}
OF_THE_SCHEDULER = ("numpy", "partage_plugins.framework.scheduler", "partage_fpga_template.scheduler")
OF_THE_NODE = ("pynvml", "partage_gpu.discovery.discovery", "partage_fpga_template.node")


class Environment:
    """A virtual environment and its working folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = str(folder / "venv/bin/python")

    def run(self, *command: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
        """The output of a command that inherits only PATH from this environment."""
        known = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **(variables or {}),
        }
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=known,
            capture_output=True,
            text=True,
            timeout=patience_s(300),
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)[:200]}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def said(self, program: str, *arguments: str, **variables: str) -> Any:
        """The JSON that a program prints."""
        return json.loads(self.run(self.python, "-P", "-W", "error", "-c", program, *arguments, variables=variables))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the locked dependencies, partage and the template."""
    environment = Environment(tmp_path_factory.mktemp("fresh"))
    source = shutil.copytree(CHECKOUT, environment.folder / "source", ignore=NOT_SOURCE)
    environment.run(sys.executable, "-m", "venv", "--without-pip", "venv")
    fill(environment)
    flags = ("--quiet", "--no-index", "--no-build-isolation")
    pip, dist = (environment.python, "-m", "pip"), str(source / "dist")
    environment.run(*pip, "wheel", "--no-deps", *flags, "-w", dist, ".", "./plugins/template", cwd=source)
    both = ("partage[node,scheduler]", "partage-fpga-template")
    environment.run(*pip, "install", *flags, "--find-links", dist, *both)
    return environment


def with_extra(extra: str, fresh: Environment, folder: Path) -> Environment:
    """An environment with partage and exactly the dependencies that it declares for this extra."""
    environment = Environment(folder)
    environment.run(sys.executable, "-m", "venv", "--without-pip", "venv")
    needed = needed_by(Requirement(f"partage[{extra}]" if extra else "partage"), {})
    blocks = re.split(r"\n(?=\S)", LOCK.read_text())
    locked = folder / "locked.txt"
    locked.write_text("\n".join(each for each in blocks if canonicalize_name(each.partition("==")[0]) in needed))
    fill(environment, locked)
    (wheel,) = (fresh.folder / "source/dist").glob("partage-*.whl")
    environment.run(
        UV, "pip", "install", "--quiet", "--no-deps", "--offline", "--python", environment.python, str(wheel)
    )
    return environment


def needed_by(requirement: Requirement, known: dict[str, set[str]]) -> set[str]:
    """The names of all packages that it requires here, by the metadata of the installed ones."""
    name = canonicalize_name(requirement.name)
    extras = {"", *requirement.extras}
    if not extras <= known.setdefault(name, set()):
        known[name] |= extras
        for each in map(Requirement, requires(name) or ()):
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras):
                needed_by(each, known)
    return set(known) - {"partage"}


def fill(environment: Environment, locked: Path = LOCK) -> None:
    """Installs the locked packages: from the cache alone if possible, as tools/bootstrap does."""
    command = [UV, "pip", "sync", "--quiet", "--require-hashes", "--python", environment.python]
    known = {**os.environ, "UV_CACHE_DIR": str(CHECKOUT / ".cache/uv")}
    said = ""
    for flags in (["--offline"], []):
        done = subprocess.run([*command, *flags, str(locked)], env=known, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        said += done.stderr
    pytest.fail(f"uv could not install {locked}:\n{said}", pytrace=False)


def test_entry_points_of_both_sides_are_found(fresh: Environment) -> None:
    of_the_scheduler, of_the_node = fresh.said(ENTRY_POINTS)
    assert {"gpu", "native-dialect", "fpga"} <= set(of_the_scheduler)
    assert {"gpu", "isolation", "fpga"} <= set(of_the_node)


def test_the_plugin_host_owns_what_is_installed_and_imports_none_of_it(fresh: Environment, tmp_path: Path) -> None:
    said = fresh.said(HOSTING, str(tmp_path))
    assert said == {"kinds": BOTH, "faults": [], "blocked": [], "imported": []}


def test_a_blocked_plugin_is_not_loaded(fresh: Environment, tmp_path: Path) -> None:
    said = fresh.said(HOSTING, str(tmp_path), PARTAGE_PLUGINS_BLOCK="fpga")
    assert (said["kinds"], said["blocked"], said["faults"]) == ({"gpu": "gpu"}, ["fpga"], [])


def test_a_plugin_that_cannot_be_imported_is_reported_and_costs_no_other(fresh: Environment, tmp_path: Path) -> None:
    for name, text in BROKEN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    said = fresh.said(HOSTING, str(tmp_path), PYTHONPATH=str(tmp_path))
    (fault,) = said["faults"]
    assert "plugin broken: import: broken 1.0 (broken_plugin:Broken): RuntimeError: no such library" in fault
    assert (said["kinds"], said["imported"]) == (BOTH, [])


@pytest.mark.parametrize(("framework", "others"), [("node", OF_THE_SCHEDULER), ("scheduler", OF_THE_NODE)])
def test_one_side_imports_nothing_of_the_other(fresh: Environment, framework: str, others: tuple[str, ...]) -> None:
    said = fresh.said(SIDE, framework, *others)
    with_template = OURS[f"partage.{framework}"] + 1
    assert (len(said["loaded"]), said["faults"], said["imported"]) == (with_template, [], [])


@pytest.mark.parametrize(
    ("extra", "programs", "missing"),
    [
        ("node", ("partage-crishim", "partage-advertiser", "partage-broker"), "numpy"),
        ("scheduler", ("partage-scheduler", "partage-sharepods", "partage-ui", "partage"), "pynvml"),
    ],
)
def test_an_extra_is_all_that_its_side_needs(
    fresh: Environment, tmp_path: Path, extra: str, programs: tuple[str, ...], missing: str
) -> None:
    alone = with_extra(extra, fresh, tmp_path)
    said = alone.said(SIDE, extra)
    assert (len(said["loaded"]), said["faults"]) == (OURS[f"partage.{extra}"], [])
    for program in programs:
        assert alone.run(str(tmp_path / "venv/bin" / program), "--help").startswith("Usage:")
    absent = f"import importlib.util; print(str(importlib.util.find_spec({missing!r}) is None).lower())"
    assert alone.said(absent) is True


def test_without_an_extra_the_command_line_works_and_names_the_extra_that_it_lacks(
    fresh: Environment, tmp_path: Path
) -> None:
    alone = with_extra("", fresh, tmp_path)
    for command, (code, out, err) in alone.said(HELP, *ALWAYS, *OF_AN_EXTRA).items():
        needed = OF_AN_EXTRA.get(command)
        if needed is None:
            assert (code, out.startswith("Usage:")) == (0, True), err
        else:
            assert (code, f"pip install 'partage[{needed}]'" in err) == (1, True), err


def test_the_template_passes_its_tests_as_installed(fresh: Environment) -> None:
    tests = shutil.copytree(CHECKOUT / "plugins/template/tests", fresh.folder / "tests", ignore=NOT_SOURCE)
    said = fresh.run(fresh.python, "-m", "pytest", "-v", "-W", "error", "-p", "no:cacheprovider", str(tests))
    assert "::test_fpga::test_conformance[loads] PASSED" in said
    assert "failed" not in said
    where = fresh.said("import json, partage_fpga_template as it; print(json.dumps(it.__file__))")
    assert where.startswith(str(fresh.folder / "venv"))
