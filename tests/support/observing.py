"""The chart's rules and dashboards, and all of their Prometheus queries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from rig.identity.permissions import FOLDER
from support import fences

RULES: Final = FOLDER / "chart/files/partage.rules.yaml"
DASHBOARDS: Final = tuple(sorted((FOLDER / "chart/files/dashboards").glob("*.json")))
_NAMES: Final = re.compile(r"\b(?:partage_\w+|DCGM_\w+|[a-z_]+:[a-z0-9_]+:[a-z0-9_]+)\b")
_VARIABLES: Final = {"$node": ".*", "$card": ".*", "$namespace": ".*", "$pod": ".*", "$__rate_interval": "1m"}
_SOONER: Final = {"[7d:1h]": "[1m:1s]"}
"""Queries that have no result before an hour has passed, with a shorter equivalent."""


RUNBOOKS: Final = (FOLDER.parent / "docs/runbooks.md").read_text()


class Typed(NamedTuple):
    """A command of a runbook."""

    words: tuple[str, ...]
    on_node: bool


def commands() -> tuple[Typed, ...]:
    """The commands in runbooks, without duplicates."""
    lines = [each.line for each in fences.typed() if each.where.heading.startswith("Partage")]
    found = [Typed(words, "on the node" in line) for line in lines for words in fences.commands(line)]
    return tuple(dict.fromkeys(each for each in found if each.words[0] in {"kubectl", "partage"}))


class Query(NamedTuple):
    where: str
    expr: str

    @property
    def names(self) -> frozenset[str]:
        """Names of the metrics and records that it reads."""
        return frozenset(_NAMES.findall(self.expr))


@cache
def rules() -> tuple[dict[str, Any], ...]:
    """The rules of all groups, in order."""
    return tuple(rule for group in msgspec.yaml.decode(RULES.read_bytes())["groups"] for rule in group["rules"])


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def records() -> frozenset[str]:
    return frozenset(rule["record"] for rule in rules() if "record" in rule)


def dashboard(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def queries() -> Iterator[Query]:
    """The queries of rules and dashboards, with values substituted for Grafana's variables."""
    for rule in rules():
        yield Query(str(rule.get("alert") or rule["record"]), rule["expr"])
    for path in DASHBOARDS:
        for panel in dashboard(path)["panels"]:
            for target in panel["targets"]:
                expr = target["expr"]
                for name, value in {**_VARIABLES, **_SOONER}.items():
                    expr = expr.replace(name, value)
                yield Query(f"{path.stem}: {panel['title']}", expr)
