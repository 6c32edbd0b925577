"""The contract with plugin authors.

`api` has the types, `hooks` the markers and the hooks' contracts, `per_node` a simple base class, `errors` the
exceptions to raise, `testing` the conformance kit. `codecs` encodes and decodes what the components exchange;
`framework` are the hosts' typed interfaces to plugins, over `registry` and `rules`; `host` runs node plugins in a child
process. Imports nothing else of partage. pluggy is imported only when `hookimpl` is accessed: a command needs only the
errors.
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
