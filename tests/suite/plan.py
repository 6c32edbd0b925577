"""The jobs, slow ones first, because they determine the total time.

Folders of tests are discovered, not listed. Each folder is one process, so that many run in parallel.

`make test` is what every push needs: each guarantee is tested once, by the cheapest test that can detect a violation.
`make test-all` runs everything: also the jobs that are `extended` here, and the tests that are marked so.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.pool import ROOT, Job
from support.extent import is_all

BIN: Final = Path(sys.executable).parent
FUZZ_SECONDS: Final = 1
LONGER_FUZZ_SECONDS: Final = 10
# These share the one rig with two nodes.
_ON_ONE_RIG: Final = ("bundle", "cli", "permissions", "simgpu")
PARTS: Final = ("checks", "unit", "isolation", "simgpu", "real", "fuzz", "bench", "demo")
# Why a job is only in `make test-all`.
_EXTENDED: Final = {
    "pyright": "a second opinion on types: mypy is strict, too",
    "real/release": "builds all that people install, and installs it",
    "isolation/aarch64": "the same library for another processor, in an emulator",
}
_OF_BENCHES: Final = "measures; what it measures has tests"
_OF_DEMOS: Final = "shows what tests promise; `make demo` itself is in `make test`"
_MAIN_DEMO: Final = "machine"
# By measured time, waiting and computing ones; the others of either kind are quicker, and come in alphabetical order.
SLOW_FIRST: Final = (
    "real/installation",
    "real/release",
    "real/dra",
    "real on one rig",
    "real/crishim",
    "real/advertiser",
    "real/chain",
    "real/docker",
    "real/isolation",
    "real/scheduler",
    "real/up",
    "isolation/memory",
    "real/conformance",
    "real/chart",
    "isolation/gates",
    "real/pools",
    "isolation/timeslices",
    "isolation/migration",
    "isolation/broker",
    "real/cleaning",
    "real/kube",
    "real/rollout",
    "unit/scheduler",
    "contract",
    "unit/isolation",
    "unit/cli",
    "unit/crishim",
    "unit/house",
    "unit/daemon",
)
_HALF: Final = frozenset(
    ("codecs", "contract", "crishim", "cri", "gpu_allocator", "gpu_discovery", "gpu_node", "isolation", "rig")
)
"""These take as long as all other computing quick tests together."""
_FORMAT: Final = (
    f"{BIN}/ruff format --check . && git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h' | "
    f"xargs -0 -r {BIN}/clang-format --dry-run --Werror"
)
_ASIDE: Final = BIN.parent / "aside"
_LINT_IMPORTS: Final = ("env", f"PYTHONPATH={_ASIDE}", sys.executable, f"{_ASIDE}/bin/lint-imports")
_PYTHON: Final = ("*.py", "*.pyi", "*.toml", "*/py.typed")


def inner_loop() -> list[Job]:
    return [*(job for job in checks() if not job.extended), *_quick_tests()]


def checks() -> list[Job]:
    """Checks of all files, without tests."""
    return [
        Job("pyright", (f"{BIN}/pyright",), extended=_EXTENDED["pyright"], reads=_PYTHON),
        Job("mypy", (f"{BIN}/mypy", *_trees()), reads=_PYTHON),
        Job("imports", (*_LINT_IMPORTS, "--cache-dir", ".cache/import-linter"), reads=_PYTHON),
        Job("lint", (f"{BIN}/ruff", "check", "."), reads=_PYTHON),
        Job("format", ("bash", "-o", "pipefail", "-c", _FORMAT), reads=(*_PYTHON, "*.c", "*.h", "*.clang-format")),
    ]


def _trees() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(settings["tool"]["pyright"]["include"])


def _quick_tests() -> list[Job]:
    folders = [*_folders("unit"), ROOT / "tests/contract", ROOT / "plugins/dialects/tests"]
    waiting = [folder for folder in folders if folder.name in {"cli", "scheduler"}]
    halves = [
        [folder for folder in folders if folder not in waiting and (folder.name in _HALF) == is_in]
        for is_in in (True, False)
    ]
    jobs = [("quick tests 1", halves[0], False), ("quick tests 2", halves[1], False), ("quick tests 3", waiting, True)]
    return [_tests(name, of, "-m", "not slow and not extended", waits=waits) for name, of, waits in jobs]


def builds() -> list[Job]:
    """Builds that the other jobs use: done here once, instead of by each of them."""
    libraries = "from partage_simgpu.build import built; built()"
    return [
        Job("rig: its programs", ("tools/rig-build", "default", "nvidia", "helm", "prometheus"), waits=True),
        Job("rig: a newer runc", ("tools/rig-build", "runc@newer"), waits=True),
        *([Job("rig: a newer Docker", ("tools/rig-build", "moby", "docker-compose"), waits=True)] if is_all() else ()),
        Job("simulated GPU: its libraries", (sys.executable, "-P", "-c", libraries)),
    ]


def built_beside() -> list[Job]:
    """Builds that few tests use, and late: made while others run. A test that needs one earlier waits."""
    return [Job("bundle: its trees", ("tools/bundle",))]


def every_push() -> list[Job]:
    """Everything except extended jobs and tests."""
    return [_without_extended(job) for job in everything(FUZZ_SECONDS) if not job.extended]


def _without_extended(job: Job) -> Job:
    return replace(job, argv=(*job.argv, "-m", "not extended")) if job.is_pytest else job


def everything(fuzz_seconds: int = LONGER_FUZZ_SECONDS) -> list[Job]:
    return [*checks(), *_demos(), *_every_test(), *_fuzzers(fuzz_seconds), *_smokes()]


def part_of(job: Job) -> str:
    """The part, by the first word of the job's name; tests of the contract and of plugins count as unit tests."""
    first = job.name.replace("/", " ").split()[0]
    return first if first in PARTS else "unit" if job.is_pytest else "checks"


def _every_test() -> list[Job]:
    shared = [ROOT / "tests/real" / name for name in _ON_ONE_RIG]
    alone = [folder for kind in ("real", "isolation", "simgpu") for folder in _folders(kind) if folder not in shared]
    here = [*_folders("unit"), ROOT / "tests/contract", *sorted(ROOT.glob("plugins/*/tests"))]
    jobs = [
        _tests("real on one rig", shared, waits=True),
        *(_tests(_name(folder), [folder], waits=True) for folder in alone),
        *(_tests(_name(folder), [folder]) for folder in here),
    ]
    return sorted(jobs, key=lambda job: (*SLOW_FIRST, job.name).index(job.name))


def _name(folder: Path) -> str:
    return str(folder.relative_to(ROOT)).removeprefix("tests/")


def _folders(kind: str) -> list[Path]:
    folder = ROOT / "tests" / kind
    return sorted(
        {
            path.relative_to(folder).parts[0]: folder / path.relative_to(folder).parts[0]
            for path in folder.rglob("test_*.py")
        }.values()
    )


def _tests(name: str, folders: Iterable[Path], *flags: str, waits: bool = False) -> Job:
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "suite.record", *flags, *map(str, folders))
    return Job(name, argv, waits=waits, is_pytest=True, extended=_EXTENDED.get(name, ""))


def _fuzzers(seconds: int) -> list[Job]:
    """Each fuzzes with a fixed seed, so that a change is judged by its own effect; `make fuzz-all` uses new seeds."""
    flags = ("--seconds", str(seconds), "--seed", "1")
    return [Job(f"fuzz {name}", ("tools/named", "fuzz", name, *flags)) for name in _programs("fuzz")]


def _smokes() -> list[Job]:
    return [
        Job(f"bench {name}", ("tools/named", "bench", name, "--smoke"), waits=True, extended=_OF_BENCHES)
        for name in _programs("bench")
    ]


def _demos() -> list[Job]:
    return [
        Job(
            f"demo {name}",
            ("tools/demo", name),
            waits=True,
            extended="" if name == _MAIN_DEMO else _OF_DEMOS,
        )
        for name in _programs("demo")
    ]


def _programs(family: str) -> list[str]:
    found = [path.stem for path in sorted((ROOT / "tests" / family).glob("*.py"))]
    return [name for name in found if name not in {"harness", "runner"} and not name.startswith("_")]
