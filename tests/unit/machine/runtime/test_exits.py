"""The end of a container is seen when it comes, whatever happens around it; real processes, a runtime by script."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Generator

import pytest

from partage_base.cri import PeerAway, PeerRefused
from partage_cli.machine.runtime.exits import ended
from partage_cli.machine.runtime.messages import ContainerState

NEVER = 1 << 22
"""Above every process number."""


def state(of: str, pid: int | None = None, code: int | None = None) -> ContainerState:
    return ContainerState(
        state=of,  # type: ignore[arg-type]
        started_ns=1,
        finished_ns=None,
        exit_code=code,
        reason="",
        message="",
        pid=pid,
        log_path="",
    )


class Scripted:
    """Answers one after the other; the last again and again."""

    def __init__(self, *answers: ContainerState | Exception) -> None:
        self.answers = list(answers)

    async def container(self, container_id: str) -> ContainerState:
        assert container_id == "c"
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


EXITED = state("exited", code=7)
GONE = PeerRefused("s", 5, "not found")


@pytest.fixture
def process() -> Generator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


async def test_it_is_told_when_its_first_process_ends(process: subprocess.Popen[bytes]) -> None:
    runtime = Scripted(state("running", process.pid), state("running", process.pid), EXITED)
    waiting = asyncio.create_task(ended(runtime, "c"))
    while len(runtime.answers) > 1:  # noqa: ASYNC110  until it waits
        await asyncio.sleep(0)
    assert not waiting.done()
    assert process.stdin is not None
    process.stdin.close()
    assert await waiting == EXITED


async def test_a_process_number_that_was_given_again_is_not_waited_for(process: subprocess.Popen[bytes]) -> None:
    assert await ended(Scripted(state("running", process.pid), EXITED), "c") == EXITED


@pytest.mark.parametrize(
    "before",
    [
        (state("running", NEVER), state("running", NEVER)),
        (state("created"),),
        (state("running"),),
        (PeerAway("s", "closed the connection"), state("running", NEVER), PeerAway("s", "no such file")),
    ],
)
async def test_a_runtime_that_is_late_or_away_is_asked_again(before: tuple[ContainerState | Exception, ...]) -> None:
    assert await ended(Scripted(*before, EXITED), "c") == EXITED


async def test_one_that_was_lost_has_ended_and_one_that_was_removed_is_none() -> None:
    assert await ended(Scripted(state("unknown")), "c") == state("unknown")
    assert await ended(Scripted(state("running", NEVER), GONE), "c") is None


async def test_another_refusal_of_the_runtime_is_its_callers() -> None:
    with pytest.raises(PeerRefused):
        await ended(Scripted(PeerRefused("s", 13, "internal")), "c")
