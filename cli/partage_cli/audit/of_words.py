"""Pods whose request for cards has no effect: they name no scheduler of ours, or no dialect reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_cli.audit.observation import SeenCluster
from partage_cli.audit.requests import Readings
from partage_cli.doctor.findings import About, Finding
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.rules.words import Spoken, first_keys

_DEFAULT: Final = "default-scheduler"


def words(cluster: SeenCluster, readings: Readings) -> Iterator[Finding]:
    """One finding for each pair of system and scheduler, or for each sentence, regardless of the number of pods."""
    found = [*_of_others(cluster, readings), *_of_ours(cluster, readings)]
    ours = " or ".join(readings.schedulers)
    yield from found or [About("words").ok(f"no pod says something of cards that {ours} does not read")]


def _of_others(cluster: SeenCluster, readings: Readings) -> Iterator[Finding]:
    found: dict[tuple[str, str], dict[str, list[Spoken]]] = {}
    for each in cluster.pods:
        if readings.is_ours(each) or ALLOCATION in each.pod.metadata.annotations:
            continue
        for spoken in readings.of(each).spoken:
            pods = found.setdefault((spoken.words.system, each.pod.spec.scheduler_name or _DEFAULT), {})
            pods.setdefault(each.name, []).append(spoken)
    for (system, scheduler), pods in sorted(found.items()):
        name, said = next(iter(pods.items()))
        many = f"{len(pods)} pods say" if len(pods) > 1 else "a pod says"
        meant = next((f"; did you mean {each.meant}?" for each in said if each.meant is not None), "")
        yield About("words").warning(
            f"{many} something of cards in {system}'s words ({name}: {first_keys(said)}{meant}) and scheduler "
            f"{scheduler} places it: of partage it gets none",
            do=_advice(said, scheduler, " or ".join(readings.schedulers)),
        )


def _advice(said: list[Spoken], scheduler: str, ours: str) -> str:
    """The advice: if our dialects don't read the keys either, changing the scheduler name is not enough."""
    advice = f"name {ours} in schedulerName, unless {scheduler} itself gives cards here"
    unread = next((each.words for each in said if not (each.words.is_read and each.is_word)), None)
    return advice if unread is None else f"{advice}. {unread.remedy}"


def _of_ours(cluster: SeenCluster, readings: Readings) -> Iterator[Finding]:
    found: dict[str, list[str]] = {}
    for each in cluster.pods:
        if readings.is_ours(each) and (sentence := readings.of(each).unread) is not None:
            found.setdefault(sentence, []).append(each.name)
    for sentence, names in found.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield About("words").warning(f"pod {names[0]}{more}: {sentence}", do="change what the pod is made from")
