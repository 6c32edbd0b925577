"""What plugin authors import.

`vocabulary` has the words, `hooks` the markers and the contracts, `per_node` the simple form, `errors` what to raise,
`testing` the conformance kit. `codecs` reads and writes what crosses between the parts; `sides` are the façades of the
hosts, over `registry` and `rules`; `host` runs node plugins in a child process.
Imports nothing else of partage.
"""

from partage_plugins.errors import DecodeError, PartageError, Refused
from partage_plugins.hooks import hookimpl

__all__ = ["DecodeError", "PartageError", "Refused", "hookimpl"]
