"""What is written for others to read: it means what was decided, whatever stands in it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_cli.machine.places import MACHINE_FILE, REGISTRIES
from partage_cli.machine.setup.containerd import PAUSE_IMAGE, Machine, chosen_attach, config
from partage_cli.machine.setup.decision import Decision, Programs, chosen_proxies, read_decision, write_decision
from partage_cli.machine.setup.errors import NotReadable, Unfit
from partage_cli.machine.setup.services import services
from partage_cli.machine.setup.units import TARGET, unit_name, units

PROGRAMS = Programs(containerd="/usr/bin/containerd", runc="/usr/sbin/runc", cni="/usr/lib/cni")
DECISION = Decision(simulated="h100", cards=2, network="10.213.0.0/16", programs=PROGRAMS)
ROOT = Path("/")


@given(group=st.text(max_size=20), packages=st.lists(st.text(max_size=9), max_size=3))
def test_a_decision_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, group: str, packages: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp()
    decision = Decision(
        network="10.9.0.0/16",
        group=group,
        programs=PROGRAMS,
        proxies={"HTTPS_PROXY": group},
        made_keys=("a",),
        installed=tuple(packages),
    )
    write_decision(root, decision)
    assert read_decision(root) == decision


def test_a_machine_that_was_not_decided_has_no_decision(tmp_path: Path) -> None:
    assert read_decision(tmp_path) is None


@pytest.mark.parametrize("text", ["x", "v = 2", 'network = "a"', "v = 1\n\xff", "#" * (1 << 17), "a = " + "[" * 9999])
def test_a_decision_that_can_t_be_read_is_one_line_with_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / MACHINE_FILE).parent.mkdir(parents=True)
    (tmp_path / MACHINE_FILE).write_bytes(text.encode("latin-1"))
    with pytest.raises(NotReadable, match=MACHINE_FILE) as raised:
        read_decision(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_field_of_a_newer_version_is_passed_over(tmp_path: Path) -> None:
    write_decision(tmp_path, DECISION)
    file = tmp_path / MACHINE_FILE
    file.write_text(f'later = "word"\n{file.read_text()}')
    assert read_decision(tmp_path) == DECISION


@pytest.mark.parametrize("root", [Path("/"), Path('/a "b" \\n ☂')])
def test_nothing_of_our_containerd_lies_where_another_keeps_its_own(root: Path) -> None:
    document = tomllib.loads(config(root, PROGRAMS, Machine(has_apparmor=False, may_lower_oom_score=False)))
    paths = [document["root"], document["state"], document["grpc"]["address"]]
    cri = document["plugins"]["io.containerd.grpc.v1.cri"]
    paths += [cri["cni"]["conf_dir"], cri["containerd"]["runtimes"]["runc"]["options"]["Root"]]
    paths += [each["path"] for each in document["plugins"].values() if "path" in each]
    ours = tuple(f"{root / each}/" for each in ("var/lib/partage/machine", "run/partage/machine"))
    assert len(paths) == 6
    assert all(path.startswith(ours) for path in paths)
    assert cri["registry"]["config_path"] == str(root / REGISTRIES)  # one folder: of several containerd 2 reads none
    assert (cri["sandbox_image"], cri["disable_apparmor"], cri["restrict_oom_score_adj"]) == (PAUSE_IMAGE, True, True)


def test_a_machine_with_real_cards_runs_no_simulation() -> None:
    real = Decision(network="10.9.0.0/16", programs=PROGRAMS)
    names = [each.name for each in services(ROOT, real, python="/usr/bin/python3", log=())]
    assert names == [each.name for each in services(ROOT, DECISION, python="/usr/bin/python3", log=())][1:]


def test_images_are_pulled_by_the_proxies_of_who_sets_the_machine_up() -> None:
    named = {"https_proxy": "http://p:1", "NO_PROXY": "a,b", "HTTP_PROXY": "", "HOME": "/h"}
    proxies = chosen_proxies(named, {"HTTPS_PROXY": "http://before"})
    assert proxies == {"https_proxy": "http://p:1", "NO_PROXY": "a,b"}
    every = services(ROOT, replace(DECISION, proxies=proxies), python="/p", log=())
    found = {each.name for each in every if each.env.get("https_proxy") == "http://p:1"}
    assert found == {"containerd"}


@pytest.mark.parametrize(("caller", "left"), [({"HOME": "/h"}, {"NO_PROXY": "x"}), ({"NO_PROXY": ""}, {})])
def test_proxies_hold_until_a_caller_names_others(caller: dict[str, str], left: dict[str, str]) -> None:
    assert chosen_proxies(caller, {"NO_PROXY": "x"}) == left


@pytest.mark.parametrize("value", ["a\nExecStart=/bin/x", "\udcff", "x" * 5000])
def test_a_proxy_that_no_unit_can_hold_is_refused(value: str) -> None:
    with pytest.raises(Unfit, match="variable HTTPS_PROXY can't be kept"):
        chosen_proxies({"HTTPS_PROXY": value}, {})


@pytest.mark.parametrize(
    ("version", "attach"),
    [
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", "raw"),
        ("containerd containerd.io 1.7.24 88bf19b2105c8b17560993bee28a01ddc2f97182", "auto"),
        ("containerd github.com/containerd/containerd/v2 v2.3.4 ", "auto"),
        ("containerd github.com/containerd/containerd/v2 v10.0.0 x", "auto"),
        ("containerd: not found", "raw"),
        ("", "raw"),
    ],
)
def test_cards_are_attached_by_cdi_where_containerd_knows_it_and_nvidias_spec_is_there(
    version: str, attach: str
) -> None:
    assert chosen_attach(simulated=False, version=version, has_spec=True) == attach
    assert chosen_attach(simulated=False, version=version, has_spec=False) == "raw"
    assert chosen_attach(simulated=True, version=version, has_spec=True) == "raw"


@pytest.mark.parametrize("by_cdi", [True, False])
def test_cdi_is_switched_on_where_cards_are_attached_by_it(*, by_cdi: bool) -> None:
    machine = Machine(has_apparmor=False, may_lower_oom_score=False, attaches_by_cdi=by_cdi)
    cri = tomllib.loads(config(ROOT, PROGRAMS, machine))["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri.get("enable_cdi", False) is by_cdi


def test_units_mean_the_words_that_they_were_made_of(tmp_path: Path) -> None:
    """As systemd's own checker reads them, where there is one."""
    every = services(ROOT, DECISION, python="/usr/bin/python3", log=())
    texts = units(every)
    assert [*texts] == [*map(unit_name, every), TARGET]
    assert "KillMode=process" in texts["partage-containerd.service"]
    assert all(name in texts[TARGET] for name in map(unit_name, every))
    for each in every:
        words = texts[unit_name(each)].split("ExecStart=")[1].splitlines()[0]
        assert [word.strip('"') for word in words.split()] == list(each.argv)


def test_what_systemd_would_expand_is_said_as_it_is() -> None:
    odd = Decision(
        network="10.9.0.0/16",
        programs=Programs(containerd='/a%b/$c/"d"/containerd', runc="/r", cni="/c"),
    )
    text = units(services(ROOT, odd, python="/p", log=()))["partage-containerd.service"]
    assert 'ExecStart="/a%%b/$$c/\\"d\\"/containerd"' in text


def test_a_stop_of_the_target_stops_all_but_the_simulated_driver() -> None:
    texts = units(services(ROOT, DECISION, python="/p", log=()))
    part = {name for name, text in texts.items() if f"PartOf={TARGET}" in text}
    assert {*texts} - part == {TARGET, "partage-simgpud.service"}
