"""Programs are built once for each state of their sources, and an incomplete build is never used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from partage_simgpu import build
from partage_simgpu.errors import NotBuilt
from rig.client.wait import found
from rig.patience import patience_s

pytestmark = pytest.mark.slow  # each test compiles

MAKEFILE = """\
all: $(OUT)/simgpud
$(OUT)/simgpud: $(OUT)/objects/main.o
\t$(or $(CC),cc) -o $@ $<
$(OUT)/objects/main.o: main.c
\t@mkdir -p $(@D)
\techo built >> $(COUNT)
\t$(SLOWLY)
\t$(or $(CC),cc) -c -o $@ $<
.DELETE_ON_ERROR:
"""
BUILD = """
import sys
from pathlib import Path
from partage_simgpu import build
build.sources = lambda: Path(sys.argv[1])
print(build.built(into=Path(sys.argv[2])))
"""


class Place:
    """Sources of one small program, and the folder of builds."""

    def __init__(self, folder: Path) -> None:
        self.sources, self.builds, self.count = folder / "sources", folder / "builds", folder / "count"
        self.sources.mkdir()
        (self.sources / "Makefile").write_text(MAKEFILE)
        self.write("int main(void) { return 0; }\n")

    def write(self, text: str) -> None:
        (self.sources / "main.c").write_text(text)

    def compiled(self) -> int:
        return len(self.count.read_text().splitlines()) if self.count.exists() else 0

    def builder(self, slowly: str = "true") -> subprocess.Popen[str]:
        env = {**os.environ, "COUNT": str(self.count), "SLOWLY": slowly, "PYTHONPATH": os.pathsep.join(sys.path)}
        argv = [sys.executable, "-c", BUILD, str(self.sources), str(self.builds)]
        return subprocess.Popen(
            argv, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True, stderr=subprocess.PIPE
        )


def finished(process: subprocess.Popen[str]) -> Path:
    out, err = process.communicate(timeout=patience_s())
    assert process.returncode == 0, err
    return Path(out.strip())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.setattr(build, "sources", lambda: place.sources)
    monkeypatch.setenv("COUNT", str(place.count))
    monkeypatch.delenv(build.READY_MADE, raising=False)
    return place


def test_what_is_built_is_not_built_again(place: Place) -> None:
    first = build.built(into=place.builds)
    assert (first / "simgpud").is_file()
    assert build.built(into=place.builds) == first
    assert place.compiled() == 1


def test_other_sources_make_another_build_and_the_old_one_stays_for_those_who_use_it(place: Place) -> None:
    first = build.built(into=place.builds)
    place.write("int main(void) { return 7; }\n")
    second = build.built(into=place.builds)
    assert [subprocess.run([build / "simgpud"], check=False).returncode for build in (first, second)] == [0, 7]


def test_builds_that_nobody_used_for_long_go_with_the_next_one(place: Place) -> None:
    first = build.built(into=place.builds)
    os.utime(first, (0, 0))
    place.write("int main(void) { return 7; }\n")
    build.built(into=place.builds)
    assert not first.exists()


def test_two_builders_at_once_make_one_build(place: Place) -> None:
    builders = [place.builder() for _ in range(3)]
    assert len({finished(builder) for builder in builders}) == 1
    assert place.compiled() == 1


def test_a_builder_that_is_killed_leaves_nothing_that_is_used(place: Place) -> None:
    killed = place.builder(slowly="echo broken > $@ && sleep 1000")
    found("it compiles", lambda: list(place.builds.glob("work-*/out/objects/main.o")))
    os.killpg(killed.pid, signal.SIGKILL)  # with its make, which belongs to its session
    killed.communicate()
    assert not [path for path in place.builds.iterdir() if (path / "simgpud").exists()]
    products = build.built(into=place.builds)
    assert subprocess.run([products / "simgpud"], check=False).returncode == 0


def test_a_source_that_changes_under_the_compiler_is_of_the_next_build(place: Place) -> None:
    place.write("int main(void) { return 1; }\n")
    go = place.builds.parent / "go"
    builder = place.builder(slowly=f"until [ -e {go} ]; do sleep 0.01; done")
    found("it compiles", place.compiled)
    place.write("int main(void) { return 2; }\n")
    go.touch()
    first, second = finished(builder), build.built(into=place.builds)
    assert [subprocess.run([build / "simgpud"], check=False).returncode for build in (first, second)] == [1, 2]


def test_a_build_with_an_error_does_not_make_the_next_one_begin_anew(place: Place) -> None:
    other = place.sources / "other.c"
    with (place.sources / "Makefile").open("a") as makefile:
        makefile.write(
            "all: $(OUT)/objects/other.o\n$(OUT)/objects/other.o: other.c $(OUT)/simgpud\n\tcc -c -o $@ $<\n"
        )
    other.write_text("int other = nothing;\n")
    with pytest.raises(NotBuilt, match="nothing"):
        build.built(into=place.builds)
    other.write_text("int other = 1;\n")
    assert (build.built(into=place.builds) / "simgpud").exists()
    assert place.compiled() == 1


def test_an_error_of_the_compiler_is_one_line_and_names_the_log(place: Place) -> None:
    place.write("int main(void) { return nothing; }\n")
    with pytest.raises(NotBuilt, match=r"main\.c:1:.*error: .*nothing.*; all of it is in .*/log") as refused:
        build.built(into=place.builds)
    assert "\n" not in str(refused.value)
    place.write("int main(void) { return 0; }\n")
    assert build.built(into=place.builds).is_dir()


def test_without_a_compiler_it_says_what_to_install(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place.sources))
    with pytest.raises(NotBuilt, match="built on first use and needs make; install gcc and make"):
        build.built(into=place.builds)


def test_a_folder_with_a_space_is_refused_before_make_stumbles_over_it(place: Place) -> None:
    with pytest.raises(NotBuilt, match="spaces in its name; set XDG_CACHE_HOME"):
        build.built(into=place.builds.parent / "my builds")


def test_a_build_of_ones_own_is_taken_as_it_is(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(build.READY_MADE, str(tmp_path / "mine"))
    assert build.built(into=place.builds) == tmp_path / "mine"
    assert place.compiled() == 0
