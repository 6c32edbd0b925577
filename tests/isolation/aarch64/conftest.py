"""The library as released for aarch64 and the tests' programs: cross-compiled, and run in an emulator."""

from __future__ import annotations

import pytest

from isolation.aarch64.emulator import EmulatedStage, Emulator, compiler, emulator, library
from isolation.library.stage import made


@pytest.fixture(scope="package")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return emulator(tmp_path_factory.mktemp("machine"))


@pytest.fixture(scope="package")
def stage(machine: Emulator, tmp_path_factory: pytest.TempPathFactory) -> EmulatedStage:
    here = made(tmp_path_factory.mktemp("loading"), compiler=compiler(), library=library())
    return EmulatedStage(here.programs, here.driver, here.place, machine)
