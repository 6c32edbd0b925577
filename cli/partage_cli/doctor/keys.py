"""The keys that allocations are believed by."""

from __future__ import annotations

from collections.abc import Iterator

from partage_base.keyring import KeyFolders, load_public_keys
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.looking import LocalNode, Unseen, names_in


def keys(node: LocalNode) -> Iterator[Finding]:
    """At least one verifies; and no private half lies where it need not."""
    folder = node.path(node.crishim.keys)
    about = About("keys", (str(folder),))
    names = names_in(folder)
    if isinstance(names, Unseen) and not names.is_missing:
        yield about.unknown(str(names), do="ask again as root")
        return
    loaded = load_public_keys(folder)
    if not loaded.keys:
        yield about.wrong("; ".join(map(str, loaded.faults)), do="copy the scheduler's public keys here: docs/keys.md")
    elif loaded.faults:
        yield about.warning("; ".join(map(str, loaded.faults)), do="mend or remove these files; other keys hold")
    else:
        yield about.ok(f"allocations are believed by {', '.join(sorted(loaded.keys))}")
    yield from _private(node)


def _private(node: LocalNode) -> Iterator[Finding]:
    folder = KeyFolders.at_root(node.root).private
    names = names_in(folder)
    if not isinstance(names, Unseen) and any(name.endswith(".key") for name in names):
        yield About("private-keys", (str(folder),)).warning(
            "private halves of signing keys lie on this node",
            do="keep them with the scheduler alone: who reads them can give away every card of the cluster",
        )
