"""By every way to allocate memory, the library's figure equals the card's; also where others patch the driver."""

from __future__ import annotations

import json
import random
import subprocess

import pytest

from bench.isolation.place import a_place
from bench.isolation.programs import programs
from isolation.memory.paths import LINES
from isolation.memory.stage import MIB, Place, Program
from support.extent import drawn
from support.simgpu import card

pytestmark = pytest.mark.slow


def agrees(program: Program, after: str) -> None:
    """The library's figure equals the card's; the deferred work that `amounts` waits for may shrink a pool first."""
    program.place.broker.amounts(program.pid)  # completes deferred work
    said, held = program.used, program.held
    assert said == held, f"after `{after}` the library says {said}, the card {held}"


@pytest.mark.parametrize("path", LINES)
def test_the_library_says_what_the_card_counts_and_was_lent_no_less_after_every_step(one: Program, path: str) -> None:
    one.place.broker.gives_credit = False
    for line in LINES[path]:
        one.ask(line)
        agrees(one, line)
        assert one.place.broker.lent() >= one.held, line
    assert one.used == 0


GIVES_BACK = 0.45
WAYS = (
    ("alloc({size})", "free({})"),
    ("alloc({small})", "free({})"),
    ("managed({size})", "free({})"),
    ("pitched(1 + {small} % 5000, 1 + {size} % 900)[0]", "free({})"),
    ("alloc_async({size})", "free_async({})"),
    ("alloc_from(p, {size})", "free_async({})"),
    ("create({blocks})", "release({})"),
    ("array(1 + {small} % 3000, 1 + {size} % 900)", "call('cuArrayDestroy', {})"),
    ("mipmaps(1 + {small} % 900, 1 + {size} % 900, 4)", "call('cuMipmappedArrayDestroy', {})"),
)


@pytest.mark.parametrize("seed", drawn("isolation/memory: seeds", range(4), 1))
def test_any_order_of_taking_and_giving_keeps_the_account_right(place: Place, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    held: list[tuple[str, str]] = []
    with place.program() as one:
        one.ask("p = make_pool()")
        for turn in range(120):
            if held and dice.random() < GIVES_BACK:
                name, give = held.pop(dice.randrange(len(held)))
                line = give.format(name)
                one.ask(line)
            else:
                take, give = dice.choice(WAYS)
                size = dice.randrange(1, 12 * MIB)
                line = take.format(size=size, small=size % 100_000 + 1, blocks=2 * MIB * (size % 4 + 1))
                if one.error(f"x{turn} = {line}") == 0:
                    held.append((f"x{turn}", give))
            agrees(one, line)
            assert one.held <= place.broker.limits[0]


# ---- Libraries that patch --------------------------------------------------------------------------------------------


CONTEXT_MIB, LIMIT_MIB, PIECE_MIB = 16, 256, 16


def test_who_patches_what_he_finds_sees_each_call_and_gets_no_more() -> None:
    with a_place(cards=(card("h100", context_mib=CONTEXT_MIB),)) as place:
        environment = dict(place.container(memory_mib=LIMIT_MIB).environment)
        said = subprocess.check_output([programs() / "patching", str(PIECE_MIB)], env=environment)
    most = (LIMIT_MIB - CONTEXT_MIB) // PIECE_MIB
    assert json.loads(said) == {"pieces": [most, most], "taken": most + 1, "given": most}
