"""Runs the conformance program on simulated cards, and reads what it told."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from partage_simgpu.comparison import read_facts
from support.simgpu import SimulatedNode, built, simulated_node

SOURCES: Final = Path(__file__).parents[3] / "simgpu/native/conformance"
DEADLINE_S: Final = 300

Facts = dict[str, str]


def started(environment: Mapping[str, str], *cases: str) -> subprocess.Popen[str]:
    program = [str(built() / "conformance"), *cases]
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(program: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit status and what it said to programs and to people."""
    try:
        told, said = program.communicate(timeout=DEADLINE_S)
    finally:
        program.kill()
    return program.returncode, told, said


def asked(node: SimulatedNode, *cases: str) -> Facts:
    status, told, said = ended(started(node.environment, *cases))
    assert (status, said) == (0, "")
    return read_facts(told, "told")


def asked_all_at_once(folder: Path, profiles: Sequence[str]) -> list[Facts]:
    """The same questions to several cards, each on a node of its own: nearly all of the time is waiting."""
    with ExitStack() as nodes:
        running = [
            started(nodes.enter_context(simulated_node(folder / str(number), cards=(profile,))).environment)
            for number, profile in enumerate(profiles)
        ]
        answers = [ended(program) for program in running]
    assert [(status, said) for status, _, said in answers] == [(0, "")] * len(profiles)
    return [read_facts(told, profile) for profile, (_, told, _) in zip(profiles, answers, strict=True)]


def outcomes(facts: Facts) -> dict[str, str]:
    """What became of each case."""
    return {fact.removesuffix(".outcome"): value for fact, value in facts.items() if fact.endswith(".outcome")}
