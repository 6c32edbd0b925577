"""What is expected to go wrong with simulated GPUs, as one tree.

PartageError
└── SimulationError
    ├── NotBuilt        the C programs could not be compiled: what is missing, or what the compiler said
    ├── ProfileRefused  a card is described wrongly, or does not exist: which file, which word, what is allowed
    ├── NodeFailed      simgpud does not start, stop or answer: which node, and where its log is
    └── ControlRefused  simgpud understood a command and says no
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class SimulationError(PartageError):
    """Base of everything expected around simulated GPUs."""


class NotBuilt(SimulationError):
    """The C programs could not be compiled."""


class ProfileRefused(SimulationError):
    """A card is described wrongly, or there is none of that name."""


class NodeFailed(SimulationError):
    """A simulated node does not start, stop or answer."""


class ControlRefused(SimulationError):
    """simgpud says no to a command."""
