"""`partage ps`: the holders of shares, their use, and their engines' names for them."""

from __future__ import annotations

from msgspec.structs import replace

from partage_cli.machine.commands.shown import sharing, sharing_table
from partage_isolation.wire.messages import CardHeld, ContainerReport
from partage_oci.messages import Held
from partage_plugins.api import CardId, ContainerName, GpuGrant, Namespace, PodName, PodRef, PodUid
from partage_plugins.api.engines import engine_key

GIB = 1 << 30
ID = "54593e043f0de49b" * 4
CARDS = (CardId("GPU-6f0c1234-0000"), CardId("GPU-aaaa1234-0000"))
POD = PodRef(namespace=Namespace("containers"), name=PodName(ID[:12]), uid=PodUid(ID))


def grant(card: CardId) -> GpuGrant:
    return GpuGrant(card=card, share_milli=300, limit_milli=600, memory_bytes=4 * GIB)


def holds(*cards: CardId, **how: object) -> Held:
    return replace(Held(id=ID, n=2, stage="running", grants=tuple(map(grant, cards))), **how)


def told(**how: object) -> ContainerReport:
    held = CardHeld(card=CARDS[0], granted_bytes=4 * GIB, limit_bytes=4 * GIB, share_milli=300, limit_milli=600)
    card = replace(held, charged_bytes=GIB, **how)
    return ContainerReport(key=engine_key(ID, 2), pod=POD, container=ContainerName("main"), gen=1, cards=(card,))


def lines(
    *held: Held, broker: tuple[ContainerReport, ...] = (), named: dict[str, tuple[str, str]] | None = None
) -> str:
    return sharing_table(sharing(held, broker, named or {}), {CARDS[0]: 0})


def test_a_container_that_runs_is_a_line_with_its_engines_words() -> None:
    shown = lines(holds(CARDS[0]), broker=(told(),), named={ID: ("train", "pytorch")})
    assert " ".join(shown.splitlines()[1].split()) == "54593e043f0d train pytorch 300 600 4 GiB 1 GiB 0 running"


def test_a_place_that_is_kept_says_how_long_and_what_is_not_known_is_a_hyphen() -> None:
    shown = lines(holds(CARDS[0], stage="kept", kept_s=41.4)).splitlines()[1]
    assert shown.endswith("kept 41 s for a restart")
    assert shown.split()[1:3] == ["-", "-"]


def test_of_several_cards_it_is_all_together_and_a_card_without_number_has_its_id() -> None:
    (shown,) = sharing([holds(*CARDS)], (), {})
    assert (shown.share_milli, shown.limit_milli, shown.memory_bytes) == (600, 1200, 8 * GIB)
    assert "0,GPU-aaaa1234" in lines(holds(*CARDS))


def test_limits_that_were_lowered_are_those_in_force() -> None:
    (shown,) = sharing([holds(CARDS[0])], (told(share_milli=100, limit_bytes=2 * GIB),), {})
    assert (shown.share_milli, shown.memory_bytes, shown.used_bytes) == (100, 2 * GIB, GIB)


def test_the_last_run_of_a_container_is_not_this_one() -> None:
    (shown,) = sharing([holds(CARDS[0], n=3)], (told(),), {})
    assert shown.used_bytes is None


def test_names_of_others_move_no_cursor() -> None:
    assert "\x1b" not in lines(holds(CARDS[0]), named={ID: ("a\x1b[2J", "b\x1b")})
