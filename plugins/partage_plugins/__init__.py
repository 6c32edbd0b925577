"""What plugin authors import.

`vocabulary` has the words, `hooks` the markers and the contracts, `per_node` the simple form, `errors` what to raise,
`testing` the conformance kit. `codecs` reads and writes what crosses between the parts; `sides` are the façades of the
hosts, over `registry` and `rules`; `host` runs node plugins in a child process.
Imports nothing else of partage. What brings pluggy is imported when it is asked for: a command needs the errors alone.
"""

from typing import TYPE_CHECKING, Any

from partage_plugins.errors import DecodeError, PartageError, Refused

if TYPE_CHECKING:
    from partage_plugins.hooks import hookimpl

__all__ = ["DecodeError", "PartageError", "Refused", "hookimpl"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  a module's attribute
    if name != "hookimpl":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from partage_plugins.hooks import hookimpl  # noqa: PLC0415  see above

    return hookimpl
