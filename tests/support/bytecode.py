"""The cache of Python bytecode for programs of the checkout on machines of the rig.

Such a program has an environment of its own. Without this it would compile all imports at each start, which takes three
times as long as the start itself, or write beside the sources.
"""

from __future__ import annotations

from typing import Final

from rig.rig import CHECKOUT

BYTECODE: Final = {"PYTHONPYCACHEPREFIX": str(CHECKOUT / ".cache/python")}
"""The folder that tools/environment.sh sets, for their environment."""
