"""No room is granted twice: running containers, creates in progress, and those of another crishim all count."""

from __future__ import annotations

import asyncio
import fcntl
import resource
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from partage_base.cri import RuntimeConfig
from partage_crishim import reservations
from partage_crishim.decisions import Ending, Refuse, Rewrite
from partage_plugins.api.keys import CONTAINER
from unit.crishim.rules.allocations import CARD, GIB, OTHER_CARD, card, grant, inventory, pod
from unit.crishim.rules.stage import Crishim, Stage, enforced

COMPUTE, MEMORY = (
    f"partage: card {CARD} has not enough {what} left for this container: other containers on the node hold it; "
    "kubelet tries again, and where this stays, delete the pod to move it"
    for what in ("compute", "memory")
)


def test_cards_are_full_at_the_brim_and_not_before(crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=400, memory=40 * GIB)))
    assert crishim.refusal(pod("b", grant(share=601, memory=GIB))) == COMPUTE
    assert crishim.refusal(pod("b", grant(share=1, memory=40 * GIB + 1))) == MEMORY
    crishim.rewrite(pod("b", grant(share=600, memory=40 * GIB)))
    assert crishim.refusal(pod("c", grant(share=1, memory=0))) == COMPUTE
    crishim.rewrite(pod("c", grant(share=0, memory=0)))


def test_what_moves_may_be_promised_beyond_the_card_as_far_as_the_inventory_says(stage: Stage) -> None:
    stage.write_inventory(inventory(card(CARD, 0, beyond=40 * GIB)))
    crishim = stage.crishim()
    crishim.rewrite(pod("a", moving(60)))
    assert crishim.refusal(pod("b", grant(share=1, memory=21 * GIB))) == MEMORY, "beside a turn of 60"
    assert crishim.refusal(pod("b", moving(61))) == MEMORY, "121 are promised of 120"
    crishim.rewrite(pod("b", grant(share=1, memory=19 * GIB)))
    crishim.rewrite(pod("c", moving(40)))
    assert crishim.refusal(pod("d", moving(2))) == MEMORY


def test_without_anything_beyond_what_moves_counts_like_what_stays(crishim: Crishim) -> None:
    crishim.rewrite(pod("a", moving(60)))
    assert crishim.refusal(pod("b", moving(21))) == MEMORY
    crishim.rewrite(pod("b", grant(share=1, memory=20 * GIB)))


def moving(gib: int) -> dict[str, Any]:
    return grant(share=1, memory=gib * GIB, movable=True)


def test_nothing_is_given_where_the_runtime_makes_containers_that_cannot_be_counted(stage: Stage) -> None:
    stage.runtime.setup = RuntimeConfig(default_handler="runc", programs={"runc": "runc"}, restores=True)
    assert "enable_experimental_restore_via_create" in stage.crishim().refusal(pod("a", grant(share=1, memory=0)))


@pytest.mark.parametrize("folder", ["usr/sbin", "usr/local/bin"])
def test_nor_where_it_may_and_does_not_say_so_once_criu_is_there(folder: str, stage: Stage) -> None:
    """Such a container is listed with the annotation of its checkpoint, which may contain anything."""
    stage.runtime.version = "containerd", "v2.1.0"
    create, crishim = pod("a", grant(share=1, memory=0)), stage.crishim()
    crishim.rewrite(create)
    (stage.root / folder).mkdir(parents=True)
    (stage.root / folder / "criu").touch()
    assert "take CRIU off it" in crishim.refusal(create)


def test_another_attempt_at_the_same_container_is_not_another(crishim: Crishim) -> None:
    for attempt in range(4):
        crishim.rewrite(pod("a", grant(share=800), attempt=attempt))


def test_the_same_attempt_again_changes_nothing(crishim: Crishim) -> None:
    first = crishim.held_back(pod("a", grant(share=800)))
    again = crishim.held_back(pod("a", grant(share=800)))
    assert first.message == again.message
    first.ended(Ending.FAILED)  # of a create that kubelet gave up: the reservation of the later one stays
    assert crishim.refusal(pod("b", grant(share=800))) == COMPUTE


def test_what_exited_holds_nothing_and_what_is_created_does(stage: Stage, crishim: Crishim) -> None:
    create = pod("a", grant(share=800))
    decision = crishim.held_back(create)
    stage.create(decision.message, create)
    assert stage.crishim().refusal(pod("b", grant(share=800))) == COMPUTE
    stage.create(decision.message, create, exited=True)
    crishim.rewrite(pod("b", grant(share=800)))


def test_a_create_in_flight_counts_for_this_and_another_crishim(stage: Stage, crishim: Crishim) -> None:
    decision = crishim.held_back(pod("a", grant(share=800)))
    newer = stage.crishim()
    assert crishim.refusal(pod("b", grant(share=800))) == newer.refusal(pod("b", grant(share=800))) == COMPUTE
    decision.ended(Ending.FAILED)
    newer.rewrite(pod("b", grant(share=800)))
    assert crishim.refusal(pod("c", grant(share=800))) == COMPUTE


def test_what_another_crishim_created_since_is_seen_though_our_listing_is_older(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("x", grant(OTHER_CARD)))  # takes a listing
    newer = stage.crishim()
    newer.rewrite(pod("a", grant(share=800)))
    newer.rewrite(pod("y", grant(OTHER_CARD)))
    stage.now_s += 0.5
    asyncio.run(newer.containerd.listing(fresh=True))
    newer.rewrite(pod("z", grant(OTHER_CARD, share=0)))  # drops the reservation of a, which is listed by now
    assert crishim.refusal(pod("b", grant(share=800))) == COMPUTE


def test_a_create_that_ends_while_the_runtime_is_listing_counts(stage: Stage, crishim: Crishim) -> None:
    create = pod("a", grant(share=800))
    decision = crishim.held_back(create)

    def created() -> None:
        stage.create(decision.message, create)
        decision.ended(Ending.DONE)

    stage.now_s += 100  # the older listing is too old to be reused
    stage.runtime.meanwhile = created
    assert crishim.refusal(pod("b", grant(share=800))) == COMPUTE
    assert stage.runtime.meanwhile is None


def test_a_create_whose_end_is_unknown_counts_until_its_time_is_over(stage: Stage, crishim: Crishim) -> None:
    crishim.held_back(pod("a", grant(share=800))).ended(Ending.UNKNOWN)
    stage.now_s += reservations.LIFETIME_S - 5
    newer = stage.crishim()
    assert crishim.refusal(pod("b", grant(share=800))) == newer.refusal(pod("b", grant(share=800))) == COMPUTE
    stage.now_s += 10
    newer.rewrite(pod("b", grant(share=800)))


def test_what_a_killed_crishim_saw_end_holds_nothing_any_more(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=800)))
    stage.runtime.listed.clear()
    stage.crishim().rewrite(pod("b", grant(share=800)))


def test_a_yes_costs_no_question_to_the_runtime_and_a_no_one(stage: Stage, crishim: Crishim) -> None:
    for index in range(5):
        crishim.rewrite(pod(f"p{index}", grant(share=100)))
    assert stage.runtime.times_asked("ListContainers") == 1
    crishim.refusal(pod("q", grant(share=900)))
    assert stage.runtime.times_asked("ListContainers") == 2


def test_room_of_a_container_that_ended_is_found_though_the_listing_is_older(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a", grant(share=800)))
    stage.runtime.listed.clear()
    crishim.rewrite(pod("b", grant(share=800)))


def test_a_container_whose_grants_are_unreadable_closes_the_cards(stage: Stage, crishim: Crishim) -> None:
    stage.runtime.put("c-new", {CONTAINER: '{"v":2}'}, pod="a", container="main")
    assert crishim.refusal(pod("b")) == (
        "partage: a container on this node holds grants that this crishim cannot read; was crishim downgraded? Upgrade "
        "it, or delete that container's pod"
    )
    stage.runtime.put("c-new", {CONTAINER: '{"v":2}'}, pod="a", container="main", exited=True)
    stage.now_s += 100
    crishim.rewrite(pod("b"))


def test_without_the_runtime_grants_are_refused(stage: Stage, crishim: Crishim) -> None:
    stage.runtime.away = True
    assert crishim.refusal(pod("a")) == (
        "partage: the container runtime does not answer crishim, so it is unknown what this node's cards carry; "
        "kubelet tries again"
    )
    stage.runtime.away = False
    stage.runtime.gone.add("sandbox-1")
    assert "does not know this pod's sandbox" in crishim.refusal(pod("a"))


class TestTheFolder:
    """Files of other versions, a lock that is never released, a full disk."""

    def folder(self, stage: Stage) -> Path:
        return stage.root / "run/partage/crishim/reserved"

    @pytest.mark.parametrize("name", ["0" * 32, ".horizon", ".unfinished-0123"])
    @pytest.mark.parametrize("half", [b"", b'{"held":{"ke', b"\xff", b"1e300"])
    def test_half_a_file_of_an_older_crishim_is_taken_away_with_a_line(
        self, name: str, half: bytes, stage: Stage
    ) -> None:
        stage.crishim().rewrite(pod("a", grant(share=600)))
        (self.folder(stage) / name).write_bytes(half)
        crishim = stage.crishim()
        with capture_logs() as logs:
            assert crishim.refusal(pod("b", grant(share=500))) == COMPUTE
            crishim.rewrite(pod("b", grant(share=400)))
        files = {each.name: each.read_bytes() for each in self.folder(stage).iterdir()}
        assert half not in files.values()
        said = [each["event"] for each in logs]
        assert said.count("removed unreadable reservation") == 1

    def test_what_was_created_under_it_is_counted_by_the_runtimes_list(self, stage: Stage, crishim: Crishim) -> None:
        crishim.rewrite(pod("a", grant(share=100)))
        other = stage.crishim()
        other.rewrite(pod("b", grant(share=600)))
        for file in self.folder(stage).glob("[0-9a-f]*"):
            file.write_bytes(file.read_bytes()[:20])
        assert crishim.refusal(pod("c", grant(share=500))) == COMPUTE

    def test_a_disk_that_takes_half_a_reservation_keeps_none(self, stage: Stage, crishim: Crishim) -> None:
        crishim.rewrite(pod("a", grant(share=1)))
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            refusal = crishim.refusal(pod("b", grant(share=1)))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert refusal == "partage: crishim cannot write to its folder below /run/partage; is the disk full?"
        stage.crishim().rewrite(pod("b", grant(share=999)))

    def test_files_that_a_killed_writer_of_an_older_crishim_left_are_no_reservations(
        self, stage: Stage, crishim: Crishim
    ) -> None:
        crishim.rewrite(pod("a", grant(share=1)))
        (self.folder(stage) / f".{'0' * 32}.123").write_text("{")
        crishim.rewrite(pod("b", grant(share=1)))

    def test_a_lock_that_is_held_for_long_is_named(
        self, stage: Stage, crishim: Crishim, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reservations, "_LOCK_DEADLINE_S", 0.05)
        decision = crishim.held_back(pod("a", grant(share=800)))
        with (self.folder(stage) / ".lock").open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert crishim.refusal(pod("b")) == (
                f"partage: another process holds the lock on {self.folder(stage)}; is an old crishim stuck? End it"
            )
            decision.ended(Ending.FAILED)  # cannot remove its reservation now: the next listing will
        crishim.rewrite(pod("c", grant(share=800)))

    def test_a_folder_that_cannot_be_written_refuses_in_words(self, stage: Stage, crishim: Crishim) -> None:
        self.folder(stage).parent.parent.mkdir(parents=True, exist_ok=True)
        (stage.root / "run/partage/crishim").write_text("a file in the way")
        assert crishim.refusal(pod("a")) == (
            "partage: crishim cannot write to its folder below /run/partage; is the disk full?"
        )


def test_what_fails_after_the_reservation_takes_it_back(stage: Stage, crishim: Crishim) -> None:
    stage.fake.answer = ValueError("broken inside")
    decision = crishim.decision(pod("a", grant(share=800)))
    assert isinstance(decision, Refuse)
    stage.fake.answer = enforced()
    crishim.rewrite(pod("b", grant(share=800)))


async def test_a_create_that_kubelet_gives_up_meanwhile_takes_it_back(stage: Stage, crishim: Crishim) -> None:
    started, never = asyncio.Event(), asyncio.Event()

    async def meanwhile() -> None:
        started.set()
        await never.wait()

    stage.fake.meanwhile = meanwhile
    asked = asyncio.ensure_future(crishim.decided(pod("a", grant(share=800))))
    await started.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    stage.fake.meanwhile = None
    assert isinstance(await crishim.decided(pod("b", grant(share=800))), Rewrite)
