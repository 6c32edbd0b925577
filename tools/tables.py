#!/usr/bin/env python3

"""Writes the tables of settings and metrics in docs/, each between two marks, from the code that declares them.

    <!-- settings crishim -->
    …
    <!-- end -->

`settings` takes `common` or a daemon, `metrics` a daemon or `labels`, `codes` `cli`. A metric is found where its whole
name and its sentence stand beside each other. With --check nothing is written, and pages that would change are named
with exit code 1.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partage_base.daemon.metrics import LABELS
from partage_base.daemon.settings import CommonSettings, fields_of
from partage_base.daemon.sources import shown_default
from partage_cli.codes import rows as error_codes

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
MARKED: Final = re.compile(
    r"<!-- (?P<what>settings|metrics|codes) (?P<daemon>\w+) -->\n(?P<table>.*?)<!-- end -->", re.DOTALL
)
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


def labels_of(declaration: ast.AST) -> str:
    keywords = declaration.keywords if isinstance(declaration, ast.Call) else []
    names = [ast.literal_eval(keyword.value) for keyword in keywords if keyword.arg in {"label", "labels"}]
    return "".join(f"{{{name if isinstance(name, str) else ','.join(name)}}}" for name in names)


def current(page: str) -> str:
    """The page with its tables as the code has them now."""

    def replaced(match: re.Match[str]) -> str:
        rows = {"settings": settings, "metrics": metrics, "codes": codes}[match["what"]](match["daemon"])
        lines = "".join(f"{row}\n" for row in rows)
        return f"<!-- {match['what']} {match['daemon']} -->\n{lines}<!-- end -->"

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
