"""A run of critest: what it is started with, what is read from it, and what happens if it breaks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rig.critest import Critest, Outcome, Selection, run
from rig.errors import ComponentFailed, NeverHappened
from unit.rig.critest.samples import named, report, spec

# Writes `dry.json` or `real.json` as its report, after having done what `act` says.
FAKE = """#!/bin/sh
here=${0%%/*}
echo "$*" >>"$here/asked"
env >"$here/environment"
for flag; do
    case $flag in
    --ginkgo.dry-run) kind=dry ;;
    --ginkgo.json-report=*) report=${flag#*=} ;;
    esac
done
if [ "$kind" = dry ]; then cp "$here/dry.json" "$report"; exit 0; fi
%s
cp "$here/real.json" "$report"
exit 1
"""
PASSES = 'printf "%s\\n" ------------------------------ "[k8s.io] Things when used a" "• [0.5 seconds]"'


def fake(folder: Path, act: str = ":", real: bytes | None = None) -> Critest:
    both = report(spec("a"), spec("b", "failed", "no"), spec("c", "skipped"))
    (folder / "dry.json").write_bytes(report(spec("a"), spec("b"), spec("c", "skipped")))
    (folder / "real.json").write_bytes(both if real is None else real)
    program = folder / "critest"
    program.write_text(FAKE % act)
    program.chmod(0o755)
    return Critest(program, "/run/some.sock", folder / "work")


def nothing(_: str) -> None: ...


def test_results_come_by_name_with_what_was_selected_and_what_there_is(tmp_path: Path) -> None:
    seen = run(fake(tmp_path), seed=7, say=nothing)
    assert seen.seed == 7
    assert seen.known == {named("a"), named("b"), named("c")}
    assert seen.selected == {named("a"), named("b")}
    assert seen.specs(Outcome.PASSED) == {named("a")}
    assert seen.specs(Outcome.FAILED) == {named("b")}


def test_critest_is_asked_for_the_socket_the_seed_and_the_selection(tmp_path: Path) -> None:
    run(fake(tmp_path), Selection(focus="Things.*a", skip="b"), seed=7, say=nothing)
    dry, real = (tmp_path / "asked").read_text().splitlines()
    for asked in (dry, real):
        assert "--runtime-endpoint=unix:///run/some.sock --image-endpoint=unix:///run/some.sock" in asked
        assert "--ginkgo.focus=Things.*a --ginkgo.skip=b" in asked
    assert "--ginkgo.dry-run" in dry
    assert "--ginkgo.randomize-all --ginkgo.seed=7" in real


def test_temporary_files_are_made_in_the_work_folder(tmp_path: Path) -> None:
    run(fake(tmp_path), seed=1, say=nothing)
    assert f"TMPDIR={tmp_path}/work/tmp" in (tmp_path / "environment").read_text().splitlines()
    assert (tmp_path / "work/tmp").is_dir()


def test_critest_starts_inside_what_it_is_told_to(tmp_path: Path) -> None:
    critest = fake(tmp_path)
    within = Critest(critest.program, critest.socket, critest.folder, inside=("env", "INSIDE=yes"))
    run(within, seed=1, say=nothing)
    assert "INSIDE=yes" in (tmp_path / "environment").read_text().splitlines()


def test_people_are_told_how_it_goes_while_it_runs(tmp_path: Path) -> None:
    told: list[str] = []

    def say(line: str) -> None:
        told.append(line)
        if "1/2" in line:
            (tmp_path / "heard").touch()

    waits = f"while [ ! -e {tmp_path}/heard ]; do sleep 0.05; done"
    run(fake(tmp_path, f"{PASSES}; {waits}"), seed=7, timeout_s=10, say=say)
    assert told == [
        f"critest: 2 of 3 specs, seed 7; its log is {tmp_path}/work/critest.log",
        "critest 1/2: passed in 0.5 s: [k8s.io] Things when used a",
    ]


def test_a_critest_that_dies_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    critest = fake(tmp_path, 'echo "panic: runtime error" >&2; kill -9 $$')
    with pytest.raises(ComponentFailed, match=r"(?s)critest ended without a report\n.*panic: runtime error"):
        run(critest, seed=1, say=nothing)


def test_a_critest_that_hangs_is_killed_in_time_and_shown(tmp_path: Path) -> None:
    critest = fake(tmp_path, f'echo "at the barrier"; echo $$ >{tmp_path}/pid; exec sleep 1000')
    with pytest.raises(NeverHappened, match=r"(?s)critest did not end within 0 s\n.*at the barrier"):
        run(critest, seed=1, timeout_s=0.4, say=nothing)
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path("/proc", pid).exists()


def test_a_report_of_an_earlier_run_is_never_taken_for_this_ones(tmp_path: Path) -> None:
    run(fake(tmp_path), seed=1, say=nothing)
    with pytest.raises(ComponentFailed, match=r"without a report"):
        run(fake(tmp_path, "exit 0"), seed=2, say=nothing)


def test_a_torn_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailed, match=r"report is not as expected"):
        run(fake(tmp_path, real=b"[{"), seed=1, say=nothing)


def test_an_interrupted_run_leaves_no_critest(tmp_path: Path) -> None:
    def interrupt(line: str) -> None:
        if "1/2" in line:
            raise KeyboardInterrupt

    critest = fake(tmp_path, f"echo $$ >{tmp_path}/pid; {PASSES}; exec sleep 1000")
    with pytest.raises(KeyboardInterrupt):
        run(critest, seed=1, say=interrupt)
    pid = (tmp_path / "pid").read_text().strip()
    assert subprocess.run(["kill", "-0", pid], stderr=subprocess.DEVNULL, check=False).returncode != 0
