"""The design of a swarm's GPU manager, in its own words, on one machine.

"The manager takes requests. It looks at containers and at the memory of cards, assigns a card, and an agent creates the
container." Here the manager of the design is another program that keeps a map of cards and tasks in its memory. Its
agent is `partage-manager`, to which it speaks by the documented lines alone.
"""

from __future__ import annotations

import base64
import os
import signal
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import pytest

from partage_cli.machine.wire.messages import MANAGER_SOCKET
from rig.client.wait import until
from support.machine_services import pid_of
from support.machine_stage import MachineStage
from support.manager_lines import Gone, Json, Manager

pytestmark = pytest.mark.timeout(300)
GIB: Final = 1 << 30
WAITS: Final = ("sleep", "100000")


class SwarmManager:
    """Assigns cards by memory alone, as the design does."""

    def __init__(self, agent: Manager, image: str) -> None:
        self._agent, self._image = agent, image
        self.tasks = self._look()

    def submit(self, name: str, gib: int, *command: str) -> str:
        """The card on which the task's container was created."""
        free = self.free()
        card = max(free, key=lambda each: free[each])
        limits = {"partage.dev/gpu-memory": f"{gib}Gi"}
        container = {"name": "task", "image": self._image, "command": command, "resources": {"limits": limits}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": {"partage.dev/cards": card}},
            "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0},
        }
        answer = self._agent.ask({"do": "run", "pod": pod})
        if answer["is"] != "ran":
            raise PermissionError(answer["why"])
        self.tasks[card].append(name)
        return card

    def free(self) -> Mapping[str, int]:
        """Bytes that are assigned to no task, by card."""
        cards = self._agent.ask({"do": "info"})["cards"]
        return {card["id"]: card["memory_bytes"] - card["given_bytes"] for card in cards}

    def used(self) -> Mapping[str, int]:
        return {card["id"]: card["used_bytes"] for card in self._agent.ask({"do": "info"})["cards"]}

    def _look(self) -> dict[str, list[str]]:
        """The tasks of each card, as the containers say."""
        found: dict[str, list[str]] = defaultdict(list)
        for pod in self._agent.ask({"do": "ps"})["pods"]:
            for container in pod["containers"]:
                for grant in container["grants"]:
                    found[grant["card"]].append(pod["name"])
        return found


@pytest.fixture
def agent(stage: MachineStage) -> Manager:
    return Manager(stage.machine.path(f"/{MANAGER_SOCKET}"))


def test_a_request_is_assigned_the_card_with_the_most_free_memory_and_its_container_is_created_there(
    agent: Manager, image: str
) -> None:
    manager = SwarmManager(agent, image)
    first, second, third = (manager.submit(name, gib, *WAITS) for name, gib in (("a", 40), ("b", 60), ("c", 20)))
    assert first != second
    assert third == first
    assert SwarmManager(agent, image).tasks == {first: ["a", "c"], second: ["b"]}


def test_a_manager_that_died_knows_all_tasks_again_and_so_does_its_agent(
    stage: MachineStage, agent: Manager, image: str
) -> None:
    card = SwarmManager(agent, image).submit("a", 40, *WAITS)
    before = agent.ask({"do": "inspect", "name": "a"})["containers"]
    os.kill(pid_of(stage.up.pid, "manager"), signal.SIGKILL)
    until("the agent answers again", lambda: why_no_answer(agent))
    assert SwarmManager(agent, image).tasks == {card: ["a"]}
    assert agent.ask({"do": "inspect", "name": "a"})["containers"] == before


def test_two_managers_that_assign_the_same_memory_at_once_do_not_both_get_it(agent: Manager, image: str) -> None:
    """The map in a manager's memory may be old; the agent's word counts."""
    one, other = SwarmManager(agent, image), SwarmManager(agent, image)
    for manager, name in ((one, "a"), (other, "b")):
        manager.submit(name, 70, *WAITS)
    with pytest.raises(PermissionError, match="70 GiB"):
        one.submit("c", 70, *WAITS)


def test_a_task_has_no_more_memory_than_it_was_assigned(agent: Manager, image: str) -> None:
    card = SwarmManager(agent, image).submit("greedy", 2, "allocate", "--kind", "large", "--mib", "4096")
    assert agent.ask({"do": "wait", "name": "greedy"})["exit_code"] == 1
    assert "CUDA_ERROR_OUT_OF_MEMORY" in said(agent, "greedy")
    assert SwarmManager(agent, image).tasks == {}
    assert SwarmManager(agent, image).free()[card] == max(SwarmManager(agent, image).free().values())


def why_no_answer(agent: Manager) -> str | None:
    try:
        return None if agent.ask({"do": "info"})["is"] == "info" else "it does not know"
    except Gone as gone:
        return str(gone)


def said(agent: Manager, name: str) -> str:
    lines: list[Json] = []
    agent.ask({"do": "logs", "name": name}, told=lines.append)
    return b"".join(base64.b64decode(line["data"]) for line in lines if line["is"] == "log").decode()
