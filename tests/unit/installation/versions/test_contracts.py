"""Which versions may follow one another on a node."""

from __future__ import annotations

import pytest

from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.versions.contracts import OURS, Contract, decode, encode, require_neighbours


def written(reads: str, leaves: str) -> Contract:
    return Contract(frozenset(reads), frozenset(leaves))


def test_a_version_follows_itself() -> None:
    require_neighbours(OURS, decode(encode(OURS)))


def test_a_version_that_reads_two_forms_follows_one_that_leaves_the_first() -> None:
    require_neighbours({"rows": written("1", "1")}, {"rows": written("12", "1")})


def test_one_that_cannot_read_what_is_there_is_refused_with_the_form_and_a_way() -> None:
    with pytest.raises(UnfitNode, match=r"cannot read what this node has: rows \(2\)\. Go there by a version between"):
        require_neighbours({"rows": written("12", "2")}, {"rows": written("1", "1")})


def test_one_that_leaves_what_the_one_in_force_cannot_read_is_refused_since_there_is_no_way_back() -> None:
    with pytest.raises(UnfitNode, match=r"no way back.*rows \(2\)"):
        require_neighbours({"rows": written("1", "1")}, {"rows": written("12", "2")})


def test_reading_more_forms_of_what_others_write_is_no_hindrance() -> None:
    require_neighbours({"allocations": written("1", "")}, {"allocations": written("12", "")})


def test_allocations_that_only_the_version_in_force_reads_may_be_on_its_pods() -> None:
    with pytest.raises(UnfitNode, match=r"cannot read what this node has: allocations \(2\)"):
        require_neighbours({"allocations": written("12", "")}, {"allocations": written("1", "")})


def test_a_contract_that_one_of_them_does_not_know_is_none_of_its_business() -> None:
    require_neighbours({"rows": written("1", "1")}, {"rows": written("1", "1"), "pages": written("1", "1")})
