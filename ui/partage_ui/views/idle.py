"""What is held and not used: what could be lowered, and how. Pure."""

from __future__ import annotations

from typing import Final

from partage_cli.tables import amount
from partage_ui.facts import Facts, Scope
from partage_ui.html import joined, tag
from partage_ui.views.parts import Query, Shown, code, counted, hour, memory_bar, nothing, paged, share_bar, table
from partage_ui.views.workloads import chosen_of, named, where
from partage_ui.workload import Workload

_HEADS: Final = ("Container", "Card", "Share not wanted", "Last hour", "Memory not held", "To lower it")
_GIB: Final = 1 << 30


def idle(facts: Facts, scope: Scope, query: Query) -> Shown:
    """The highest demand of any known minute counts as used."""
    found = scope.of(facts.idle)
    chosen = chosen_of(found, query)
    if not chosen:
        words = "Nothing is held that is not used." if not found else "Nothing that is held and not used matches."
        return Shown(words, nothing(words))
    rows, pages = paged(chosen, query)
    milli, size = sum(each.idle_milli for each in found), sum(each.idle_bytes for each in found)
    who = counted(len(found), "container does not use all that it holds", "containers do not use all that they hold")
    summary = f"{who}: {milli} milli and {amount(size)} in all."
    body = table("Held, not used", _HEADS, (_row(facts, each) for each in rows))
    return Shown(summary, joined(body, pages))


def _row(facts: Facts, each: Workload) -> tuple[str, ...]:
    held = each.held
    charged, limit = (0, 0) if held is None else (held.charged_bytes, held.limit_bytes)
    share = joined(share_bar(each), tag("small", f"{each.idle_milli} of {each.share_milli} milli"))
    memory = joined(memory_bar(charged, limit), tag("small", f"{amount(each.idle_bytes)} of {amount(limit)}"))
    return named(each), where(facts, each), share, hour(each), memory, code(_command(each, is_cluster=facts.is_cluster))


def _command(each: Workload, *, is_cluster: bool) -> str:
    share = f" --share {each.share_milli - each.idle_milli}" if each.idle_milli else ""
    kept = each.memory_bytes - each.idle_bytes
    memory = f" --memory {max(1, -(-kept // _GIB))}Gi" if each.idle_bytes > each.memory_bytes // 2 else ""
    if not each.is_whole:  # the command takes totals
        share, memory = " --share …", " --memory …"
    if not is_cluster:
        return f"sudo partage limits {each.pod}{share}{memory}"
    return f"partage resize {each.title} --container {each.name}{share}{memory}"
