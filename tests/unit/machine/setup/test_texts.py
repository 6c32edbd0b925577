"""Texts written for other programs mean what was decided, with any content."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_cli.machine.places import MACHINE_FILE
from partage_cli.machine.setup.decision import Decision, read_decision, write_decision
from partage_cli.machine.setup.errors import Earlier, NotReadable
from partage_cli.machine.setup.services import services
from partage_cli.machine.setup.units import TARGET, unit_name, units

DECISION = Decision(simulated="h100", cards=2)
ROOT = Path("/")
EVERY = services(ROOT, simulated=True, python="/usr/bin/python3", log=())


@pytest.mark.parametrize("decision", [DECISION, Decision()])
def test_a_decision_is_read_as_it_was_written(tmp_path: Path, decision: Decision) -> None:
    write_decision(tmp_path, decision)
    assert read_decision(tmp_path) == decision


def test_a_machine_that_was_not_decided_has_no_decision(tmp_path: Path) -> None:
    assert read_decision(tmp_path) is None


@pytest.mark.parametrize(
    "text", ["x", "v = 3", "v = 2\ncards = 'a'", "v = 2\n\xff", "#" * (1 << 17), "v=" + "[" * 9999]
)
def test_a_decision_that_can_t_be_read_is_one_line_with_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / MACHINE_FILE).parent.mkdir(parents=True)
    (tmp_path / MACHINE_FILE).write_bytes(text.encode("latin-1"))
    with pytest.raises(NotReadable, match=MACHINE_FILE) as raised:
        read_decision(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_machine_of_a_version_that_ran_containers_itself_is_left_to_that_version(tmp_path: Path) -> None:
    (tmp_path / MACHINE_FILE).parent.mkdir(parents=True)
    (tmp_path / MACHINE_FILE).write_text('v = 1\nnetwork = "10.88.0.0/16"\n')
    with pytest.raises(Earlier, match="end them with that version: `partage down --all --purge`"):
        read_decision(tmp_path)


def test_a_field_of_a_newer_version_is_passed_over(tmp_path: Path) -> None:
    write_decision(tmp_path, DECISION)
    file = tmp_path / MACHINE_FILE
    file.write_text(f'later = "word"\n{file.read_text()}')
    assert read_decision(tmp_path) == DECISION


def test_a_machine_with_real_cards_runs_no_simulation() -> None:
    names = [each.name for each in services(ROOT, simulated=False, python="/usr/bin/python3", log=())]
    assert names == [each.name for each in EVERY][1:]


def test_units_mean_the_words_that_they_were_made_of() -> None:
    """Checked with systemd's own parser, where it is installed."""
    texts = units(EVERY)
    assert [*texts] == [*map(unit_name, EVERY), TARGET]
    assert all(name in texts[TARGET] for name in map(unit_name, EVERY))
    for each in EVERY:
        words = texts[unit_name(each)].split("ExecStart=")[1].splitlines()[0]
        assert [word.strip('"') for word in words.split()] == list(each.argv)


def test_engines_start_after_all_that_their_containers_need() -> None:
    texts = units(EVERY)
    assert all("Before=docker.service podman.service\n" in texts[unit_name(each)] for each in EVERY)


def test_what_systemd_would_expand_is_said_as_it_is() -> None:
    odd = services(Path('/a%b/$c/"d"'), simulated=False, python="/p", log=())
    assert '"--root" "/a%%b/$$c/\\"d\\""' in units(odd)["partage-agent.service"]


def test_a_stop_of_the_target_stops_all_but_the_simulated_driver() -> None:
    texts = units(EVERY)
    part = {name for name, text in texts.items() if f"PartOf={TARGET}" in text}
    assert {*texts} - part == {TARGET, "partage-simgpud.service"}
