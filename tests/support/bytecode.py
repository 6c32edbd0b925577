"""Where Python's compiled modules are kept for programs of the checkout on machines of the rig.

Such a program has an environment of its own. Without this it would compile everything that it imports at each start,
which takes three times as long as the start itself, or write beside the sources.
"""

from __future__ import annotations

from typing import Final

from rig.rig import CHECKOUT

BYTECODE: Final = {"PYTHONPYCACHEPREFIX": str(CHECKOUT / ".cache/python")}
"""The place that tools/environment.sh names, for their environment."""
