"""What the package costs those who import it: nothing of the official client before something is read with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = """
import sys
from partage_base.kube import *
heavy = [name for name in sys.modules if name.split(".")[0] in {"kubernetes", "pydantic", "requests", "numpy", "yaml"}]
assert not heavy, heavy
"""


@pytest.mark.slow
def test_importing_the_package_does_not_import_the_official_client() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True)
