"""NVIDIA's own driver libraries of several branches, and our library as installed on a node with them.

Nothing here needs a card: names are looked up, and the driver answers calls made before it is started.
"""

from __future__ import annotations

import pytest

from isolation.real_drivers.place import BRANCHES, Place, installed
from support.nvidia import driver_root


@pytest.fixture(scope="package", params=BRANCHES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    branch = str(request.param)
    return installed(driver_root(branch), tmp_path_factory.mktemp(branch))
