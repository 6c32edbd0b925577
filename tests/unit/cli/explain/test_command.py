"""`partage explain` from the command line, and its output for programs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import textwrap
from pathlib import Path

import pytest

from partage_base.kube import ApiServer
from partage_cli.explain.question import Answer, Question, answer
from partage_cli.tables import as_json
from partage_plugins.errors import Refused
from support.fake_api import FakeApi
from support.kube import access_to
from support.scheduler_stage import add_node, add_pod
from unit.cli.nodes.test_command import kubeconfig
from unit.cli.program import partage

SKILL = Path(__file__).parents[4] / "skills/why-a-pod-waits/SKILL.md"


def asked(folder: Path, milli: int, *words: str, **spec: str) -> subprocess.CompletedProcess[str]:
    """Explains a pod that requests this much, on a node with two cards."""

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            add_node(api, "n1")
            add_pod(api, "new", milli, **spec)
            done = await asyncio.to_thread(
                partage, folder, "explain", "--kubeconfig", str(kubeconfig(folder, api.url)), *words
            )
            assert {each.method for each in api.asked} == {"GET"}
            return done

    return asyncio.run(whole())


@pytest.mark.slow  # it starts a process
def test_a_pod_that_fits_nowhere_is_explained_and_the_exit_code_says_so(tmp_path: Path) -> None:
    done = asked(tmp_path, 3000, "team/new")
    assert done.returncode == 3
    assert done.stdout == (
        "team/new: waits: 0/1 nodes are available: 1 node(s) had too few healthy cards to share.\n"
        "\n"
        "NODE   CARD   MODEL   SHARE LEFT   MEMORY LEFT   HELD BY   IN THE WAY\n"
        "n1                                                         node(s) had too few healthy cards to share\n"
        "       n1-0   T4      1000         16 GiB        nobody    nothing\n"
        "       n1-1   T4      1000         16 GiB        nobody    nothing\n"
        "\n"
        "no single change was found with which it would fit\n"
    )
    assert done.stderr == ("no scheduler says in namespace partage-system how it decides: this goes by the defaults\n")
    assert textwrap.indent(done.stdout, "   ") in SKILL.read_text(), "people are shown another answer"


@pytest.mark.slow  # as above
def test_a_pod_that_waits_for_another_scheduler_is_no_success(tmp_path: Path) -> None:
    done = asked(tmp_path, 500, "team/new", schedulerName="volcano")
    assert done.returncode == 3
    assert done.stdout.startswith("team/new: not ours: it waits for volcano, which is not ours; set schedulerName: ")
    assert "would fit" not in done.stdout


def answered(folder: Path, name: str, milli: int = 600) -> Answer:
    """The same in this process."""

    async def whole() -> Answer:
        async with FakeApi() as api, ApiServer(access_to(api.url), user_agent="test") as server:
            add_node(api, "n1")
            add_pod(api, "new", milli)
            return await answer(server, Question(namespace="team", name=name, partage="partage-system", root=folder))

    return asyncio.run(whole())


def test_programs_get_the_same_as_json(tmp_path: Path) -> None:
    found = json.loads(as_json(answered(tmp_path, "new")))
    assert (found["pod"]["state"], found["pod"]["explained"]["goes_to"], found["verified"]) == ("fits", "n1", True)


def test_a_pod_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no pod other in namespace team"):
        answered(tmp_path, "other")
