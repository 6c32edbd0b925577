"""The import cost of the package: nothing that only some of its users need."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = """
import sys
from partage_base.kube import *
heavy = [name for name in sys.modules if name.split(".")[0] in {"pydantic", "requests", "numpy", "yaml"}]
assert not heavy, heavy
"""


@pytest.mark.slow
def test_importing_the_package_imports_no_yaml() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True)
