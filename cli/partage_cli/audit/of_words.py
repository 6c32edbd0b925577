"""Pods that say something of cards and name another scheduler than ours: to those our scheduler tells nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_cli.audit.observation import SeenCluster, SeenPod
from partage_cli.audit.of_pods import Read
from partage_cli.doctor.findings import About, Finding
from partage_plugins.errors import PartageError
from partage_plugins.rules.words import Lexicon, Spoken, first_keys
from partage_plugins.vocabulary.keys import ALLOCATION
from partage_scheduler.objects import seen

_DEFAULT: Final = "default-scheduler"


def words(cluster: SeenCluster, read: Read, lexicon: Lexicon, *, ours: str) -> Iterator[Finding]:
    """One finding for each system and scheduler, however many pods there are."""
    about = About("words")
    found: dict[tuple[str, str], dict[str, list[Spoken]]] = {}
    for each in cluster.pods:
        scheduler = each.pod.spec.scheduler_name or _DEFAULT
        if scheduler == ours or ALLOCATION in each.pod.metadata.annotations or _is_told_elsewhere(each, read):
            continue
        for spoken in lexicon.spoken(seen(each.pod), waits=not each.pod.node):
            pods = found.setdefault((spoken.words.system, scheduler), {})
            pods.setdefault(each.name, []).append(spoken)
    for (system, scheduler), pods in sorted(found.items()):
        name, said = next(iter(pods.items()))
        many = f"{len(pods)} pods say" if len(pods) > 1 else "a pod says"
        meant = next((f"; did you mean {each.meant}?" for each in said if each.meant is not None), "")
        yield about.warning(
            f"{many} something of cards in {system}'s words ({name}: {first_keys(said)}{meant}) and scheduler "
            f"{scheduler} places it: of partage it gets none",
            do=f"name {ours} in schedulerName, unless {scheduler} itself gives cards here",
        )
    if not found:
        yield about.ok(f"no pod that names another scheduler than {ours} says something of cards")


def _is_told_elsewhere(each: SeenPod, read: Read) -> bool:
    """`of_pods.requests` finds those that are on a node, ask, and have no allocation."""
    if not each.pod.node:
        return False
    try:
        return bool(read(seen(each.pod)).asking)
    except PartageError:
        return True
