"""Runs the conformance program on simulated cards, and parses its facts."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from real_card.comparison import read_facts
from real_card.ground import built_programs
from rig.patience import patience_s
from support.simgpu import simulated_node

AT_ONCE: Final = 4
"""Programs per card: they mostly wait."""

Facts = dict[str, str]


def started(environment: Mapping[str, str], *cases: str) -> subprocess.Popen[str]:
    program = [str(built_programs() / "conformance"), *cases]
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(program: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The program's exit status, stdout and stderr."""
    try:
        told, said = program.communicate(timeout=patience_s())
    finally:
        program.kill()
    return program.returncode, told, said


def listed() -> list[str]:
    return subprocess.check_output([built_programs() / "conformance", "--list"], text=True).split()


def asked_all_at_once(folder: Path, profiles: Sequence[str]) -> list[Facts]:
    """Run all cases on cards of these profiles.

    Each program has its own node: cases compare free memory.
    """
    cases = listed()
    with ExitStack() as nodes:
        running = [
            [
                started(
                    nodes.enter_context(simulated_node(folder / f"{number}-{part}", cards=(profile,))).environment,
                    *cases[part::AT_ONCE],
                )
                for part in range(AT_ONCE)
            ]
            for number, profile in enumerate(profiles)
        ]
        answers = [[ended(program) for program in each] for each in running]
    assert {(status, said) for each in answers for status, _, said in each} == {(0, "")}
    return [read_facts("".join(told for _, told, _ in each), "told") for each in answers]


def outcomes(facts: Facts) -> dict[str, str]:
    """The outcome of each case."""
    return {fact.removesuffix(".outcome"): value for fact, value in facts.items() if fact.endswith(".outcome")}
