"""What is left out of a tree, and what must be kept."""

from __future__ import annotations

import pytest

from partage_bundle import recipe


@pytest.mark.parametrize(
    "path",
    [
        "idlelib/run.py",
        "test/support/__init__.py",
        "lib-dynload/_sqlite3.cpython-311-x86_64-linux-gnu.so",
        "config-3.11-x86_64-linux-gnu/Makefile",
        "sitecustomize.py",
        "json/__pycache__/decoder.cpython-311.pyc",
    ],
)
def test_modules_that_no_daemon_asks_for_are_left_out(path: str) -> None:
    assert not recipe.is_kept_of_python(path)


@pytest.mark.parametrize(
    "path", ["unittest/mock.py", "lib-dynload/_ssl.cpython-311-aarch64-linux-gnu.so", "LICENSE.txt", "site.py"]
)
def test_the_rest_of_python_is_kept(path: str) -> None:
    assert recipe.is_kept_of_python(path)


@pytest.mark.parametrize(
    "path",
    [
        "bin/partage",
        "numpy/_core/tests/test_umath.py",
        "uvloop/loop.pyx",
        "partage-0.1.0.dist-info/RECORD",
        "partage-0.1.0.dist-info/direct_url.json",
        "partage_isolation/library/objects/aarch64/libcuda.so.1",
        "partage_isolation/library/preload/Makefile",
        "partage_oci/programs/x86_64/partage-oci",
        "partage_oci/runtime/main.c",
    ],
)
def test_what_only_builders_need_is_left_out(path: str) -> None:
    assert not recipe.is_kept_of_wheels(path)


@pytest.mark.parametrize(
    "path",
    [
        "partage-0.1.0.dist-info/entry_points.txt",
        "numpy.libs/libscipy_openblas64_-1234.so",
        "partage_plugins/testing/trial.py",
        "numpy-2.4.6.dist-info/licenses/LICENSE.txt",
    ],
)
def test_what_runs_and_its_licences_are_kept(path: str) -> None:
    assert recipe.is_kept_of_wheels(path)


def test_each_machine_has_its_own_loader_and_the_same_libraries_otherwise() -> None:
    found = [recipe.libraries(machine) for machine in recipe.MACHINES.values()]
    loaders = {machine.loader for machine in recipe.MACHINES.values()}
    assert {libraries["libc6"][0] for libraries in found} == loaders
    others = [{name for names in libraries.values() for name in names} - loaders for libraries in found]
    assert others[0] == others[1]
