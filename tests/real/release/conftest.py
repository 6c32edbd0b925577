"""A release of this checkout, made once for all tests of this folder."""

from __future__ import annotations

import pytest

from support.release_folder import ReleaseFolder, release_folder


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return release_folder(tmp_path_factory.mktemp("dist"))
