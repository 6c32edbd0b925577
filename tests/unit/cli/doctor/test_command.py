"""`partage doctor` from the command line: a process, its output and its exit code."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_base.condition import Condition, encode_condition
from partage_cli.doctor.broker import OBJECTS
from partage_cli.doctor.command import CHECKS
from partage_cli.doctor.findings import About
from partage_cli.doctor.output import as_text, report, summary
from partage_cli.machine.setup.decision import Decision, write_decision
from partage_cli.tables import as_json
from partage_plugins.api.places import CRISHIM_CONDITION
from support.broker import FakeBroker, told
from unit.cli.doctor.made import Made
from unit.cli.program import partage

FINDINGS = [
    About("keys", ("/etc/partage/keys.d",)).ok("well"),
    About("kernel", ("/proc",)).warning("old", do="upgrade it"),
    About("crishim").wrong("does not answer\x1b[2J", do="start it"),
]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """A node that lacks only crishim's socket and the cluster."""
    made = Made(tmp_path).with_driver().with_cards().with_key().with_kubeadm(config=_TO_CRISHIM)
    made.with_kubelet("--config=/var/lib/kubelet/config.yaml")
    made.seen("run/partage/crishim/kubelet-spoke", 1).seen("run/partage/broker/alive", 1)
    made.write(CRISHIM_CONDITION, encode_condition(Condition()).decode())
    made.write("proc/sys/kernel/osrelease", "6.1.0\n")
    made.write("sys/fs/cgroup/cgroup.controllers", "cpu\n")
    for name in OBJECTS:
        made.write(f"usr/local/lib/partage/0.1.0/{name}")
    how = told(library=str(made.root / "usr/local/lib/partage/0.1.0"))
    with made.advertiser(), FakeBroker(made.root, how):
        yield made


_TO_CRISHIM = "containerRuntimeEndpoint: unix:///run/partage/crishim.sock"


def asked(made: Made, *words: str) -> subprocess.CompletedProcess[str]:
    return partage(made.root, "doctor", "--kubeconfig", str(made.root / "none"), *words)


def found(made: Made, *words: str) -> dict[str, dict[str, str]]:
    return {each["check"]: each for each in json.loads(asked(made, "-o", "json", *words).stdout)["findings"]}


@pytest.mark.slow
def test_one_thing_that_is_wrong_is_exit_code_3_and_nothing_else_is(made: Made) -> None:
    done = asked(made, "-o", "json")
    statuses = {each["check"]: each["status"] for each in json.loads(done.stdout)["findings"]}
    assert done.returncode == 3
    assert [check for check, status in statuses.items() if status == "wrong"] == ["crishim"]
    assert statuses["api"] == "not checked"
    assert {*CHECKS} - {*statuses} == {
        "runtime",
        "claims",
        "private-keys",
    }  # other names, and only with content


@pytest.mark.slow
def test_a_machine_without_kubernetes_is_asked_for_its_agent_and_engines_and_no_kubelet(made: Made) -> None:
    write_decision(made.root, Decision())
    checks = found(made)
    assert not {"crishim", "kubelet-endpoint", "kubelet-speaks", "api"} & {*checks}
    assert "`partage up`" in checks["agent"]["advice"]
    assert checks["engines"]["advice"] == "`partage docker install`"
    made.write("var/lib/partage/engines/docker.json", "{")
    assert "what undoes the registration can't be read" in found(made)["engines"]["found"]


@pytest.mark.slow
def test_crishims_settings_are_taken_from_the_nodes_file(made: Made) -> None:
    made.write("etc/partage/partage.toml", '[crishim]\nlisten = "/run/other.sock"\nnode_name = "gpu-7"\n')
    assert "/run/other.sock" in found(made)["kubelet-endpoint"]["advice"]


@pytest.mark.slow
def test_a_mistake_in_the_nodes_file_is_a_finding(made: Made) -> None:
    made.write("etc/partage/partage.toml", '[crishim]\nlisen = "/x"\n')
    assert "did you mean listen" in found(made)["configuration"]["found"]


@pytest.mark.slow
def test_it_changes_nothing(made: Made) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in made.root.rglob("*")}

    before = state()
    asked(made)
    assert state() == before


def test_people_see_what_to_do_below_what_is_not_well() -> None:
    lines = [line.rstrip() for line in as_text(FINDINGS, wide=False).replace("\x1b[", "<").splitlines()]
    plain = [line.split("<0m")[-1].strip() if "<" in line else line for line in lines]
    assert plain == [
        "keys     well",
        "kernel   old",
        "    looked at  /proc",
        "    do         upgrade it",
        "crishim  does not answer?[2J",
        "    do         start it",
    ]
    assert "    looked at  /etc/partage/keys.d" in as_text(FINDINGS, wide=True)


def test_programs_see_all_of_it() -> None:
    told = json.loads(as_json(report(FINDINGS)))
    assert told["status"] == "wrong"
    assert told["findings"][1] == {
        "check": "kernel",
        "status": "warning",
        "found": "old",
        "looked_at": ["/proc"],
        "advice": "upgrade it",
    }
    assert told["findings"][0]["advice"] is None
    assert report([])["status"] == "ok"


def test_the_sum_begins_with_the_worst() -> None:
    assert summary(FINDINGS) == "1 wrong, 1 warning, 0 not checked, 1 ok"
