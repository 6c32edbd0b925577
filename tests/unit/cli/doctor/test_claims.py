"""Pods with claims start if the driver answers kubelet; without cards for claims there is no finding."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec.structs import replace

from partage_cli.doctor.claims import claims
from partage_cli.doctor.findings import Severity
from partage_plugins.api import GPU, Inventory
from partage_plugins.api.places import CLAIMS_FOLDER, DRA_REGISTRATION, DRA_SOCKET, INVENTORY_FILE
from partage_plugins.codecs import encode_inventory
from support.sockets import listening
from unit.cli.doctor.made import Made, only
from unit.gpu_node.nodes import CARDS, part


@pytest.fixture
def made() -> Iterator[Made]:
    """A node whose cards are for claims; its folder's name is short, since kubelet's socket names are long."""
    with TemporaryDirectory() as folder:
        yield with_cards_for_claims(Made(Path(folder)))


def with_cards_for_claims(made: Made) -> Made:
    inventory = Inventory(kinds={GPU.name: part(*(replace(card, pool="dra") for card in CARDS))})
    made.write(INVENTORY_FILE).write_bytes(encode_inventory(inventory))
    return made


@contextmanager
def answering(made: Made, *paths: str) -> Generator[None]:
    with ExitStack() as stack:
        for path in paths:
            stack.enter_context(listening(made.root / path))
        yield


def test_a_driver_that_answers_is_well(made: Made) -> None:
    with answering(made, DRA_REGISTRATION, DRA_SOCKET):
        finding = only(claims(made.node))
    assert (finding.status, finding.found) == (
        Severity.OK,
        "the driver answers; 2 cards are for claims, 0 claims are in force",
    )


@pytest.mark.parametrize(("there", "who"), [((), "kubelet finds no"), ((DRA_REGISTRATION,), "no DRA driver answers")])
def test_one_that_is_away_is_wrong(made: Made, there: tuple[str, ...], who: str) -> None:
    with answering(made, *there):
        finding = only(claims(made.node))
    assert finding.status is Severity.WRONG
    assert finding.found.startswith(who)
    assert finding.found.endswith("so no pod with a claim starts or ends here")


def test_a_record_that_cannot_be_read_is_wrong(made: Made) -> None:
    made.write(f"{CLAIMS_FOLDER}/5f0c.json")
    with answering(made, DRA_REGISTRATION, DRA_SOCKET):
        _, finding = claims(made.node)
    assert finding.found == "records of 1 claims can't be read (5f0c), so no further claim is prepared"


def test_where_no_card_is_for_claims_there_is_nothing_to_say_but_of_those_that_stand(made: Made) -> None:
    made.write(INVENTORY_FILE).write_bytes(encode_inventory(Inventory(kinds={GPU.name: part(*CARDS)})))
    assert not list(claims(made.node))
    made.write(f"{CLAIMS_FOLDER}/5f0c.json")
    with answering(made, DRA_REGISTRATION, DRA_SOCKET):
        first, *_ = claims(made.node)
    assert first.found == "1 claims are in force, and no card is for claims any more"
