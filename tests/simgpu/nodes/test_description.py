"""A node's facts, derived from its cards."""

from __future__ import annotations

import pytest

from partage_simgpu.description import Card, Section, as_text, card_uuid, described, mig_uuid, sections_of
from partage_simgpu.errors import ProfileRefused
from partage_simgpu.profiles import load_profile, profile_names

H100, L4, A100 = (load_profile(name) for name in ("h100", "l4", "a100-80g"))


def ends(section: Section) -> set[int]:
    return {int(end) for end in str(section.fields.get("link_to", "")).split()}


def test_cards_of_a_node_differ_in_all_that_names_them() -> None:
    sections = described("n1", [Card(H100)] * 16)
    for key in ("uuid", "serial", "pci", "minor"):
        assert len({section.fields[key] for section in sections}) == 16


def test_the_same_node_has_the_same_ids_again_and_another_node_has_others() -> None:
    assert described("n1", [Card(L4)] * 2) == described("n1", [Card(L4)] * 2)
    assert {one.fields["uuid"] for one in described("n1", [Card(L4)] * 2)} == {card_uuid("n1", 0), card_uuid("n1", 1)}
    assert card_uuid("n1", 0) != card_uuid("n2", 0)


def test_half_of_the_cards_is_near_each_socket() -> None:
    assert [one.fields["numa"] for one in described("n1", [Card(L4)] * 4)] == [0, 0, 1, 1]
    assert [one.fields["numa"] for one in described("n1", [Card(L4)])] == [0]


def test_cards_of_one_processor_lie_behind_switches_two_by_two() -> None:
    switches = [one.fields["pcie_switch"] for one in described("n1", [Card(L4)] * 6)]
    assert switches == [0, 0, 1, 32, 32, 33]
    assert len({one.fields["cpus"] for one in described("n1", [Card(L4)] * 4)}) == 2


@pytest.mark.parametrize("count", [2, 3, 8, 16])
def test_nvlink_joins_all_cards_of_a_board_and_no_others(count: int) -> None:
    sections = described("n1", [Card(H100)] * count)
    for index, section in enumerate(sections):
        board = set(range(index // 8 * 8, min(count, index // 8 * 8 + 8)))
        assert ends(section) == board - {index}
        assert len(str(section.fields["link_to"]).split()) == section.fields["nvlinks"] == 18


def test_a_card_alone_or_without_nvlink_has_no_links() -> None:
    assert described("n1", [Card(H100)])[0].fields["nvlinks"] == 0
    assert all(one.fields["nvlinks"] == 0 for one in described("n1", [Card(L4)] * 4))


def test_cards_of_different_nvlink_are_not_joined() -> None:
    sections = described("n1", [Card(H100), Card(A100), Card(H100)])
    assert [ends(section) for section in sections] == [{2}, set(), {0}]


def test_mig_turns_nvlink_off_and_others_count_its_instances() -> None:
    sections = described("n1", [Card(H100), Card(H100, ("1g.10gb", "3g.40gb")), Card(H100)])
    assert [section.kind for section in sections] == ["card", "card", "mig", "mig", "card"]
    assert [ends(section) for section in sections if section.kind == "card"] == [{4}, set(), {0}]


def test_an_instance_says_what_it_is_and_has_an_id_of_its_own() -> None:
    _, large, small = described("n1", [Card(H100, ("1g.10gb", "3g.40gb"))])
    assert (large.fields["name"], large.fields["mig_profile"]) == ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "3g.40gb")
    assert large.fields["uuid"] == mig_uuid("n1", 0, int(large.fields["gpu_instance"]))
    assert large.fields["uuid"] != small.fields["uuid"]
    assert (small.fields["memory"], small.fields["sms"]) == ("9984 MiB", 16)


@pytest.mark.parametrize("name", profile_names())
def test_the_file_reads_back_as_it_was_meant(name: str) -> None:
    profile = load_profile(name)
    sections = described("n1", [Card(profile, tuple(profile.mig)[:1]), Card(profile)])
    read = sections_of(as_text(sections))
    assert [one.kind for one in read] == [one.kind for one in sections]
    for one, meant in zip(read, sections, strict=True):
        assert one.fields == {key: str(value) for key, value in meant.fields.items()}


@pytest.mark.parametrize("cards", [[], [Card(L4)] * 33, [Card(H100, ("1g.10gb",) * 7)] * 5])
def test_a_node_has_a_card_and_at_most_32_with_instances(cards: list[Card]) -> None:
    with pytest.raises(ProfileRefused, match="a node has 1 to 32 cards"):
        described("n1", cards)
