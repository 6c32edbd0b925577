#!/usr/bin/env python3

"""Generates the tables of docs/ between two marks, from the code that declares their contents.

    <!-- settings crishim -->
    …
    <!-- end -->

`settings` takes `common` or a daemon, `metrics` a daemon or `labels`, `codes` and `commands` `cli`, `reasons`
`scheduler`, `cards` and `programs` `simgpu`. A metric is found where its full name and its sentence are adjacent. With
--check nothing is written, and pages that would change are named with exit code 1.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from partage_base.daemon.metrics import LABELS
from partage_base.daemon.settings import CommonSettings, fields_of
from partage_base.daemon.sources import shown_default
from partage_cli.codes import rows as error_codes
from partage_cli.main import GROUPS
from partage_simgpu.build import WORKLOADS
from partage_simgpu.profiles import load_profile, profile_names

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = {
    "advertiser": ("advertiser/partage_advertiser", "AdvertiserSettings"),
    "agent": ("oci/partage_oci", "AgentSettings"),
    "broker": ("isolation/partage_isolation", "BrokerSettings"),
    "crishim": ("crishim/partage_crishim", "CrishimSettings"),
    "dra": ("dra/partage_dra", "DraSettings"),
    "installer": ("cli/partage_cli/rollout/installer", "InstallerSettings"),
    "scheduler": ("scheduler/partage_scheduler", "SchedulerSettings"),
    "sharepods": ("scheduler/partage_scheduler/sharepods", "SharePodSettings"),
    "ui": ("ui/partage_ui", "UiSettings"),
}
REASONED: Final = ("plugins/gpu/partage_gpu", "plugins/partage_plugins", "scheduler/partage_scheduler")
"""Packages with reasons why a pod fits nowhere."""
METRIC: Final = re.compile(r"partage_[a-z0-9]+(_[a-z0-9]+)+")


def settings(daemon: str) -> Iterator[str]:
    yield "| setting | default | what it is |"
    yield "|---|---|---|"
    kind = CommonSettings
    if daemon != "common":
        folder, name = PACKAGES[daemon]
        package = folder.partition("/")[2].replace("/", ".")
        kind = getattr(importlib.import_module(f"{package}.settings"), name)
    for name, field in fields_of(kind).items():
        if field.common == (daemon == "common"):
            default = "the host's name" if name == "node_name" else f"`{shown_default(field, getattr(kind(), name))}`"
            yield f"| `{name}` | {default} | {field.setting.sentence} |"


def metrics(daemon: str) -> Iterator[str]:
    if daemon == "labels":
        yield "| label | values on one page |"
        yield "|---|---|"
        yield from (f"| `{label}` | {most} |" for label, most in LABELS.items())
        return
    yield "| metric | what it is |"
    yield "|---|---|"
    found: dict[str, str] = {}
    own = ROOT / PACKAGES[daemon][0]
    others = [
        ROOT / folder for folder, _ in PACKAGES.values() if (ROOT / folder).is_relative_to(own) and ROOT / folder != own
    ]
    for file in sorted(own.rglob("*.py")):
        if any(file.is_relative_to(other) for other in others):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
            texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            named = [index for index, text in enumerate(texts) if METRIC.fullmatch(text)]
            if named and texts[-1].endswith("."):
                found[texts[named[0]] + labels_of(node)] = texts[-1]
    for name, sentence in sorted(found.items()):
        yield f"| `{name}` | {sentence} |"


def codes(_program: str) -> Iterator[str]:
    yield "| code | what it means | do |"
    yield "|---|---|---|"
    yield from (f"| `{each.code}` | {each.means} | {each.advice} |" for each in error_codes())


def commands(_program: str) -> Iterator[str]:
    yield "| `partage …` | |"
    yield "|---|---|"
    for group in GROUPS.values():
        yield from (f"| `{name}` | {each.summary} |" for name, each in group.items())


def reasons(_daemon: str) -> Iterator[str]:
    yield "| code | in words | lasts |"
    yield "|---|---|---|"
    files = (file for folder in REASONED for file in sorted((ROOT / folder).rglob("*.py")))
    for code, words, lasts in sorted({row for file in files for row in reasons_of(ast.parse(file.read_text()))}):
        yield f"| `{code}` | {words.replace('{{', '{').replace('}}', '}')} | {lasts} |"


def reasons_of(module: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Reasons with a public name, alone or in a collection."""
    for each in module.body:
        if not isinstance(each, ast.AnnAssign) or ast.unparse(each.target).startswith("_"):
            continue
        for call in ast.walk(each):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Reason":
                code, words = map(ast.literal_eval, call.args)
                yield code, words, "yes" if call.keywords else ""


def cards(_program: str) -> Iterator[str]:
    yield "| name | card | memory | time and links |"
    yield "|---|---|---|---|"
    for name in profile_names():
        each = load_profile(name)
        links = [f"NVLink {each.nvlink.version}"] if each.nvlink else []
        others = [*links, *(["MIG"] if each.mig else []), *([] if each.ecc else ["no ECC"])]
        time = ", ".join([f"{each.sms} SMs", each.compute, *others])
        yield f"| `{name}` | {each.name} | {each.memory_mib} MiB | {time} |"


def programs(_program: str) -> Iterator[str]:
    yield "| program | what it does |"
    yield "|---|---|"
    yield from (f"| `{name}` | {what} |" for name, what in WORKLOADS.items())


def labels_of(declaration: ast.AST) -> str:
    keywords = declaration.keywords if isinstance(declaration, ast.Call) else []
    names = [ast.literal_eval(keyword.value) for keyword in keywords if keyword.arg in {"label", "labels"}]
    return "".join(f"{{{name if isinstance(name, str) else ','.join(name)}}}" for name in names)


TABLES: Final[Mapping[str, Callable[[str], Iterator[str]]]] = {
    "cards": cards,
    "codes": codes,
    "commands": commands,
    "metrics": metrics,
    "programs": programs,
    "reasons": reasons,
    "settings": settings,
}
MARKED: Final = re.compile(rf"<!-- (?P<what>{'|'.join(TABLES)}) (?P<of>\w+) -->\n.*?<!-- end -->", re.DOTALL)


def current(page: str) -> str:
    """The page with its tables regenerated."""

    def replaced(match: re.Match[str]) -> str:
        lines = "".join(f"{row}\n" for row in TABLES[match["what"]](match["of"]))
        return f"<!-- {match['what']} {match['of']} -->\n{lines}<!-- end -->"

    return MARKED.sub(replaced, page)


def main() -> int:
    stale, checks = 0, "--check" in sys.argv
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        wanted = current(text)
        if wanted != text:
            stale += 1
            sys.stdout.write(f"{page.relative_to(ROOT)}: {'not current; run `make tables`' if checks else 'written'}\n")
            if not checks:
                page.write_text(wanted)
    return 1 if stale and checks else 0


if __name__ == "__main__":
    sys.exit(main())
