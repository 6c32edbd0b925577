"""Nodes for pods of the siege. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

HOST: Final = "kubernetes.io/hostname"
REAL: Final = ("n1", "n2")
"""Nodes where containers run; all others are made up."""
ARENA: Final = "n0000"
"""The made-up node that is fought over by priority."""
CROWDED: Final = "n0001"
TWINS: Final = tuple(f"n{number:04}" for number in range(10, 20))


def only_on(*nodes: str, expressions: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Fields of a pod's spec, with further requirements on the node."""
    return _hosts("In", nodes, expressions)


def not_on(*nodes: str) -> dict[str, Any]:
    return _hosts("NotIn", nodes, ())


def _hosts(operator: str, nodes: tuple[str, ...], more: Sequence[dict[str, Any]]) -> dict[str, Any]:
    expression = {"key": HOST, "operator": operator, "values": list(nodes)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression, *more]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
