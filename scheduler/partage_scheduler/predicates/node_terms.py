"""Node selectors and node affinity terms, evaluated for all nodes at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from partage_plugins.answers import Flags
from partage_scheduler.objects.selectors import Expression, NodeSelector, NodeTerm
from partage_scheduler.predicates.nodes import Nodes

NAME_FIELD: Final = "metadata.name"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_MOST: Final = 2**63


def selected(nodes: Nodes, labels: Mapping[str, str], selector: NodeSelector | None) -> Flags:
    """Nodes that have all these labels and, if there is a selector, match one of its terms."""
    found = np.ones(nodes.end, dtype=np.bool_)
    for key, value in labels.items():
        found &= _having(nodes, key, (value,))
    if selector is not None:
        found &= any_term(nodes, selector)
    return found


def any_term(nodes: Nodes, selector: NodeSelector) -> Flags:
    found = np.zeros(nodes.end, dtype=np.bool_)
    for term in selector.node_selector_terms:
        found |= term_holds(nodes, term)
    return found


def term_holds(nodes: Nodes, term: NodeTerm) -> Flags:
    """An empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return np.zeros(nodes.end, dtype=np.bool_)
    found = np.ones(nodes.end, dtype=np.bool_)
    for expression in term.match_expressions:
        found &= holds(nodes, expression)
    for field in term.match_fields:
        found &= _field_holds(nodes, field)
    return found


def holds(nodes: Nodes, asked: Expression) -> Flags:
    match asked.operator:
        case "In":
            return _having(nodes, asked.key, asked.values)
        case "NotIn":
            return ~_having(nodes, asked.key, asked.values)
        case "Exists":
            return nodes.codes(asked.key) >= 0
        case "DoesNotExist":
            return nodes.codes(asked.key) < 0
        case "Gt" | "Lt":
            return _compared(nodes, asked)
        case _:  # reported by `unsupported`
            return np.zeros(nodes.end, dtype=np.bool_)


def _having(nodes: Nodes, key: str, values: tuple[str, ...]) -> Flags:
    column = nodes.column(key)
    codes = [column.values[value] for value in values if value in column.values]
    here = column.codes[: nodes.end]
    if len(codes) == 1:
        return np.equal(here, np.intp(codes[0]))
    return np.isin(here, np.array(codes, dtype=np.intp))


def _compared(nodes: Nodes, asked: Expression) -> Flags:
    """Compares labels as integers; a label that is no integer does not match."""
    column = nodes.column(asked.key)
    of_value = np.zeros(len(column.values) + 1, dtype=np.bool_)
    bound = integer(asked.values[0]) if len(asked.values) == 1 else None
    if bound is not None:
        for text, code in column.values.items():
            number = integer(text)
            if number is not None:
                of_value[code] = number > bound if asked.operator == "Gt" else number < bound
    found: Flags = of_value[column.codes[: nodes.end]]
    return found


def integer(text: str) -> int | None:
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -_MOST <= number < _MOST else None


def _field_holds(nodes: Nodes, asked: Expression) -> Flags:
    """The node's name is the only field."""
    named = np.zeros(nodes.end, dtype=np.bool_)
    if asked.key != NAME_FIELD or asked.operator not in {"In", "NotIn"}:
        return named
    slots = [slot for slot in map(nodes.slot, asked.values) if slot is not None]
    named[slots] = True
    return named if asked.operator == "In" else ~named
