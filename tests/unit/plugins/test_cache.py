"""Answers are cached up to a number of bytes."""

from __future__ import annotations

from partage_plugins.cache import ENTRY_BYTES, Cache


def test_what_nobody_asked_for_longest_goes_first_and_who_put_it_in_is_told() -> None:
    cache = Cache[str, str](3 * (ENTRY_BYTES + 10))
    for name in "abc":
        assert cache.put(name, name.upper(), 10) == []
    assert cache.get("a") == "A"
    assert cache.put("d", "D", 10) == ["B"]
    assert [key for key, _ in cache.items()] == ["c", "a", "d"]
    assert list(cache.values()) == ["C", "A", "D"]


def test_one_large_answer_takes_the_room_of_many_and_one_that_is_too_large_is_not_kept() -> None:
    cache = Cache[int, str](10 * ENTRY_BYTES)
    for number in range(10):
        cache.put(number, "small", 0)
    assert cache.put(99, "large", 5 * ENTRY_BYTES) == ["small"] * 6
    assert len(cache) == 5
    assert cache.put(100, "too large", 10 * ENTRY_BYTES) == ["too large"]
    assert cache.get(100) is None
    assert cache.get(99) == "large"


def test_the_account_is_right_whatever_is_put_again_popped_or_cleared() -> None:
    cache = Cache[str, int](1 << 20)
    cache.put("a", 1, 100)
    cache.put("a", 2, 50)
    cache.put("b", 3, 7)
    assert cache.bytes == 2 * ENTRY_BYTES + 57
    assert cache.pop("a") == 2
    assert cache.pop("a") is None
    assert cache.bytes == ENTRY_BYTES + 7
    cache.clear()
    assert (cache.bytes, len(cache)) == (0, 0)
