"""What `partage up` decided, kept so that a second `up`, `down` and the services go by the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from partage_base.files import write_whole
from partage_cli.machine.places import MACHINE_FILE
from partage_cli.machine.setup.errors import NotReadable, Unfit

SIMULATED: Final = "SIMULATED CARDS: nothing is computed on them"
"""On every screen of such a machine."""
_PROXIES: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"})
"""Programs read them in lower case too."""
_DELETE, _DELETE_ESCAPED = "\x7f", "\\u007f"
"""The one character that JSON's texts may hold as it is and TOML's may not."""
_LONGEST_PROXY: Final = 4096
MOST_BYTES: Final = 64 << 10
_HEAD: Final = "# Written by `partage up`. `partage down --purge` removes it and all that it names.\n"
AbsolutePath = Annotated[str, Meta(pattern=r"\A/")]


class Programs(Struct, frozen=True, kw_only=True):
    """Which of the machine's programs are used."""

    containerd: AbsolutePath
    """Its shim and `ctr` lie beside it."""
    runc: AbsolutePath
    cni: AbsolutePath
    """The folder of the network plugins."""


class Decision(Struct, frozen=True, kw_only=True):
    v: Literal[1] = 1
    simulated: str = ""
    """The model of the simulated cards; empty: the cards are real."""
    cards: int = 0
    """How many are simulated."""
    network: str
    """Of the bridge, as 10.88.0.0/16."""
    group: str = ""
    """Whose members may speak to the manager, and are then as good as root; empty: root alone."""
    attach: Literal["raw", "auto"] = "raw"
    """`auto` is CDI, by what NVIDIA's spec says; `raw` is by hand, which MIG instances can't be."""
    programs: Programs
    proxies: Mapping[str, str] = {}
    """Variables by which registries are reached."""
    made_keys: tuple[str, ...] = ()
    """Ids of the keys that were made here, and not found."""
    installed: tuple[str, ...] = ()
    """Debian's packages that were installed for it."""


def read_decision(root: Path) -> Decision | None:
    """None where there is none; raises `NotReadable`."""
    path = root / MACHINE_FILE
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise NotReadable(f"{path} is longer than {MOST_BYTES} bytes; remove it, then `partage up` again")
        return msgspec.toml.decode(text, type=Decision)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotReadable(f"{path}: {error}; mend it, or remove it and `partage up` again") from None


def is_simulated(root: Path) -> bool:
    """Whether `partage up` made this machine's cards; raises `NotReadable`."""
    decision = read_decision(root)
    return decision is not None and bool(decision.simulated)


def chosen_proxies(caller: Mapping[str, str], before: Mapping[str, str]) -> Mapping[str, str]:
    """The caller's, where its environment names one; an empty value takes it back. Raises `Unfit`. Pure."""
    named = {name: value for name, value in sorted(caller.items()) if name.upper() in _PROXIES}
    for name, value in named.items():
        if not value.isprintable() or len(value) > _LONGEST_PROXY:
            raise Unfit(f"variable {name} can't be kept: it has a control character, or is very long; unset or mend it")
    return {name: value for name, value in named.items() if value} if named else before


def write_decision(root: Path, decision: Decision) -> None:
    path = root / MACHINE_FILE
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_whole(path, text_of(decision).encode(), mode=0o644, synced=True)


def text_of(decision: Decision) -> str:
    """As TOML, of which JSON's texts, numbers and lists are a part."""
    values = msgspec.to_builtins(decision)
    tables = {name: values.pop(name) for name in ("programs", "proxies")}
    lines = _lines(values)
    for name, fields in tables.items():
        lines += ["", f"[{name}]", *_lines(fields)]
    return _HEAD + "\n".join(lines) + "\n"


def _lines(values: dict[str, object]) -> list[str]:
    texts = {name: msgspec.json.encode(value).decode() for name, value in values.items()}
    return [f"{name} = {text.replace(_DELETE, _DELETE_ESCAPED)}" for name, text in texts.items()]
