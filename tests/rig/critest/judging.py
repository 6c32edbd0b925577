"""Whether a run went as expected: nothing fails that is not listed, and nothing is listed that does not fail. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rig.critest.exempting import Exemption
from rig.critest.results import Outcome, Result, Run


def judge(run: Run, exemptions: Iterable[Exemption], conditions: Mapping[str, bool]) -> list[str]:
    """What is wrong, a line each; nothing if all is well.

    Exemptions of specs that were not selected excuse nothing, but must name a spec and a condition that exist.
    """
    listed = list(exemptions)
    wrong = [*_faults_of_the_list(listed, run, conditions)]
    if not run.selected:
        wrong.append("no spec was selected")
    in_force = {each.spec: each for each in listed if not each.when or conditions.get(each.when)}
    for spec in sorted(run.selected):
        wrong += _faults_of_one(spec, run.results.get(spec), in_force.get(spec))
    return wrong


def _faults_of_the_list(listed: list[Exemption], run: Run, conditions: Mapping[str, bool]) -> Iterator[str]:
    in_force: set[str] = set()
    for each in listed:
        if each.spec not in run.known:
            yield f"listed, but there is no such spec: {each.spec}"
        if each.when and each.when not in conditions:
            yield f"listed for a condition that nobody looks at, {each.when!r}: {each.spec}"
        if not each.when or conditions.get(each.when):
            if each.spec in in_force:
                yield f"listed twice for this machine: {each.spec}"
            in_force.add(each.spec)


def _faults_of_one(spec: str, result: Result | None, exemption: Exemption | None) -> Iterator[str]:
    if result is None:
        yield f"selected, but did not run: {spec}"
        return
    wanted = exemption.outcome if exemption else Outcome.PASSED
    if result.outcome is wanted:
        return
    if exemption is None:
        yield f"{result.outcome}: {spec}: {result.message}"
    else:
        yield f"{result.outcome}, but listed as {wanted} ({exemption.reason}): {spec}: {result.message}".rstrip(": ")
