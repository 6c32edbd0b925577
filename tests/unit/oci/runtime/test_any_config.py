"""For any config.json, what is removed and which containers ask is what Python finds in the parsed content."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.oci_oracle import asks, cleaned, parsed
from support.oci_program import Program, sanitized

pytestmark = pytest.mark.slow

SPACE: Final = (*[""] * 9, " ", "\n\t", "\r\n  ")
VOID: Final[tuple[Any, ...]] = (
    7,
    "x",
    [],
    {},
    ["PARTAGE_A=1"],
    {"env": ["PARTAGE_A=1"], "path": "/dev/nvidia0", "partage.dev/a": "1"},
)
REFUSED: Final = b"partage: no agent answers"


@pytest.fixture(scope="module")
def checked() -> Iterator[Program]:
    """A program under the sanitizers, with the guard on, whose agent is away."""
    with TemporaryDirectory() as folder:
        program = Program(Path(folder), sanitized())
        program.configure("guard yes")
        yield program


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
paths = st.sampled_from(
    ["/dev/nvidia0", "/dev//nvidia-uvm", "/dev/x/../nvidia-caps/1", "/dev/null", "dev/nvidia1", "/"]
)
paths |= st.sampled_from(
    ["/var/run/nvidia-container-devices/0", "/run/./nvidia-persistenced", "/dev/dxg", "/data", ".."]
)
programs = st.sampled_from(["/usr/bin/nvidia-ctk", "nvidia-cdi-hook", "/usr/bin/other", "nvidia", "x-nvidia-", ""])
variables = st.sampled_from(["PARTAGE_SHARE=1", "PARTAGE_X", "DOCKER_RESOURCE_PARTAGE-MILLI=3", "A=PARTAGE_B=1"])
majors = st.sampled_from([195, 1, 8, 240, 511, 512, -1, 195.0, 1 << 70])
kinds = st.sampled_from(["c", "b", "a", "u", "p"])


def some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of these members, now and then with other content, and with other members."""
    known = st.fixed_dictionaries({}, optional={name: each | values for name, each in members.items()})
    return st.builds(lambda one, other: one | other, st.dictionaries(st.text(max_size=2), scalars, max_size=2), known)


nodes = some(path=paths, major=majors, type=kinds)
rules = some(allow=st.booleans(), major=majors, type=kinds)
hooks = some(path=programs, args=st.lists(programs))
configs = some(
    process=some(env=st.lists(variables | st.text())),
    annotations=st.dictionaries(st.sampled_from(["partage.dev/gpu-milli", "partage.dev", "x"]), st.text()),
    linux=some(devices=st.lists(nodes | values), resources=some(devices=st.lists(rules | values))),
    mounts=st.lists(some(source=paths, destination=paths) | values),
    hooks=some(prestart=st.lists(hooks | values), createContainer=st.lists(hooks)),
)


def written(value: Any, rng: random.Random) -> str:
    """The value as JSON: with escapes, white space, and members overridden by another of the same name."""
    space = rng.choice(SPACE)
    match value:
        case str():
            text = "".join(_escaped(one, rng) for one in value)
            return f'{space}"{text}"{space}'
        case list():
            return f"{space}[{space}{','.join(written(one, rng) for one in value)}]{space}"
        case dict():
            members = [(key, inner) for key, inner in value.items()]
            void = [(key, rng.choice(VOID)) for key in value if rng.random() < 0.1]
            text = ",".join(f"{written(key, rng)}:{written(inner, rng)}" for key, inner in void + members)
            return f"{space}{{{space}{text}}}{space}"
        case _:
            return json.dumps(value)


def _escaped(one: str, rng: random.Random) -> str:
    """One character in a JSON string."""
    units = one.encode("utf-16-be", "surrogatepass")
    if rng.random() < 0.2 or "\ud800" <= one <= "\udfff":
        digits = (units[i : i + 2].hex() for i in range(0, len(units), 2))
        return "".join(f"\\u{rng.choice((each, each.upper()))}" for each in digits)
    return json.dumps(one, ensure_ascii=rng.random() < 0.5)[1:-1]


def judged(program: Program, content: bytes) -> tuple[bool, Any]:
    """Whether an agent was to be asked, and the content of the file afterwards."""
    done = program.create(content)
    assert (done.returncode, done.stderr[: len(REFUSED)]) in {(0, b""), (1, REFUSED)}, done.stderr.decode()
    return done.returncode == 1, program.config()


@given(config=configs | values, rng=st.randoms(use_true_random=False))
def test_cards_are_gone_and_our_words_found_as_python_has_it(checked: Program, config: Any, rng: random.Random) -> None:
    content = written(config, rng).encode("utf-8", "surrogatepass")
    assert parsed(content) == config
    is_asking, left = judged(checked, content)
    assert is_asking == asks(config)
    assert json.dumps(left, sort_keys=True) == json.dumps(cleaned(config), sort_keys=True)


def test_as_deep_and_as_large_as_may_be(checked: Program) -> None:
    deep: Any = 1
    for _ in range(63):
        deep = [deep]
    config = {"deep": deep, "mounts": [{"source": "/dev/nvidia0"}] * 10_000, "long": "\\" * (1 << 20)}
    config["process"] = {"env": ["A=" + "é" * (1 << 20), "PARTAGE_A=" + "x" * (1 << 20)]}
    assert judged(checked, json.dumps(config).encode()) == (True, config | {"mounts": []})


@given(config=configs, rng=st.randoms(use_true_random=False), cut=st.floats(0, 1), noise=st.binary(max_size=3))
def test_a_text_that_is_damaged_does_no_harm(
    checked: Program, config: Any, rng: random.Random, cut: float, noise: bytes
) -> None:
    whole = written(config, rng).encode("utf-8", "surrogatepass")
    place = int(cut * len(whole))
    for content in (whole[:place], whole[:place] + noise + whole[place:], noise):
        done = checked.create(content)
        assert done.returncode in (0, 1), done.stderr.decode()
