"""The fuzzer's mutations are reproducible by seed and bounded, and JSON stays JSON."""

import json
import random

from fuzz.engine.json_mutation import change_json
from fuzz.engine.minimising import shortened
from fuzz.engine.mutation import MAX_BYTES, Mutator
from fuzz.engine.wire_mutation import change_message, read, write
from unit.crishim.rules.requests import Create

DOCUMENT = b'{"v": 1, "kinds": {"gpu": [{"id": "a", "memory": 85017493504}, null]}}'


def variants(seed: int, count: int = 300) -> list[bytes]:
    chosen = Mutator(random.Random(seed))  # noqa: S311 - it makes inputs, no secrets
    return [chosen.changed(DOCUMENT, [DOCUMENT, b"other"]) for _ in range(count)]


def test_one_seed_makes_the_same_inputs_again() -> None:
    assert variants(7) == variants(7)
    assert variants(7) != variants(8)


def test_inputs_differ_from_each_other_and_stay_within_bounds() -> None:
    found = variants(1)
    assert len(set(found)) > 200
    assert max(map(len, found)) <= MAX_BYTES


def test_changed_json_is_still_json() -> None:
    rng = random.Random(5)  # noqa: S311 - as above
    found = [change_json(DOCUMENT, rng) for _ in range(500)]
    parsed = [text for text in found if _parses(text)]
    assert len(parsed) > 450
    assert len(set(parsed)) > 150


def test_changed_messages_are_still_messages_and_say_something_else() -> None:
    request = Create(env=[("A", "1")], annotations={"a": "b"}, pids=3, target="c").bytes()
    rng = random.Random(5)  # noqa: S311 - as above
    found = [change_message(request, rng) for _ in range(500)]
    assert all(read(each) or each == b"" for each in found)
    assert len(set(found)) > 200
    assert change_message(b"\xff no message", rng) == b"\xff no message"


def test_a_message_is_written_as_it_was_read() -> None:
    whole = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d1234" + b"\x2112345678" + b"\xcb\x0c\x08\x01\xcc\x0c"
    assert write(read(whole)) == whole
    assert [each.type for each in read(whole)] == [0, 2, 5, 1, 3]


def test_a_change_of_the_targets_own_is_half_of_all() -> None:
    own = Mutator(random.Random(1), change=lambda data, _rng: data + b"!")  # noqa: S311 - as above
    found = [own.changed(b"", [b""]) for _ in range(300)]
    assert 100 < sum(b"!" in each for each in found) < 290


def test_a_failing_input_is_made_as_short_as_can_be() -> None:
    def still_fails(data: bytes) -> bool:
        return b"A" in data and b"Z" in data

    assert shortened(b"lorem A ipsum dolor" * 20 + b"sit Z amet", still_fails, has_time=lambda: True) == b"AZ"


def _parses(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
