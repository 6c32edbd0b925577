"""Expected errors of simulated GPUs, as one tree.

PartageError
└── SimulationError
    ├── NotBuilt        the C programs could not be compiled: what is missing, or the compiler's output
    ├── ProfileRefused  a card's description is invalid, or does not exist: which file, which word, what is allowed
    ├── NodeFailed      simgpud does not start, stop or respond: which node, and where its log is
    └── ControlRefused  simgpud understood a command and rejected it
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class SimulationError(PartageError):
    """Base of all expected errors of simulated GPUs."""


class NotBuilt(SimulationError):
    """The C programs could not be compiled."""


class ProfileRefused(SimulationError):
    """A card's description is invalid, or there is none of that name."""


class NodeFailed(SimulationError):
    """A simulated node does not start, stop or respond."""


class ControlRefused(SimulationError):
    """simgpud rejected a command."""
