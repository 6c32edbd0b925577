"""The sources of a daemon's settings, and the fallback of a daemon that must run if they can't be read.

Such a daemon saves the settings of its last good start below the node's root. It falls back to all of those or none,
since nobody meant half an old set with half a new one. If none can be read, as after a boot, it uses the defaults and
every valid value of the current sources: one misspelt key must not lose the address of the container runtime.
"""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.resolution import Resolved, TomlFile, allowed_values, resolve
from partage_base.daemon.settings import CommonSettings, Field, fields_of
from partage_base.files import write_whole
from partage_plugins.text import printable

S = TypeVar("S", bound=CommonSettings)

_KEPT: Final = "run/partage/{}/settings.toml"
_KEPT_ORIGIN: Final = "the last good start"


@dataclass(frozen=True)
class Sources(Generic[S]):
    """The file, the environment and the flags of one daemon; each call reads them again."""

    settings_type: type[S]
    daemon: str
    config: Path | None
    flags: Mapping[str, str]
    usage: str = ""
    """The error of a command line that could not be parsed."""

    def read(self) -> Resolved[S]:
        """The settings; raises `BadConfiguration` with every mistake."""
        if self.usage:
            raise BadConfiguration(self.usage)
        return self._resolved(read_toml(self.file, required=self.config is not None))

    def last(self) -> S:
        """The settings to fall back to; never raises for the content of a source."""
        with contextlib.suppress(BadConfiguration):
            kept = read_toml(self.kept, required=True)
            return resolve(self.settings_type, self.daemon, toml=kept, environment={}, flags={}).settings
        return self._salvaged()

    def keep(self, settings: S) -> None:
        """Saves them for `last`; raises `OSError`, and then keeps the former ones."""
        origins = dict.fromkeys(fields_of(self.settings_type), _KEPT_ORIGIN)
        text = as_toml(Resolved(settings, origins), self.daemon).encode()
        self.kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.kept, text)

    @property
    def file(self) -> Path:
        """The file that was named, else the one below the root, so that a node inside a folder has its own."""
        return self.config or self._root / DEFAULT_PATH

    @property
    def kept(self) -> Path:
        """Where the settings of the last good start are."""
        return self._root / _KEPT.format(self.daemon)

    @property
    def _root(self) -> Path:
        """The root from a flag or variable; the file's value counts only once the file was read."""
        variables = (f"PARTAGE_{self.daemon.upper()}_ROOT", "PARTAGE_ROOT")
        named = (self.flags.get("root"), *map(os.environ.get, variables))
        return Path(next(filter(None, named), "/"))

    def _resolved(self, toml: TomlFile) -> Resolved[S]:
        return resolve(self.settings_type, self.daemon, toml=toml, environment=os.environ, flags=self.flags)

    def _salvaged(self) -> S:
        toml = TomlFile(str(self.file))
        with contextlib.suppress(BadConfiguration):
            toml = read_toml(self.file, required=False)
        good = allowed_values(self.settings_type, self.daemon, toml=toml, environment=os.environ, flags=self.flags)
        with contextlib.suppress(ValueError):
            return self.settings_type(**good)
        values: dict[str, Any] = {}
        for name, value in good.items():
            with contextlib.suppress(ValueError):  # it conflicts with those before it
                self.settings_type(**values, **{name: value})
                values[name] = value
        return self.settings_type(**values)


DEFAULT_PATH: Final = Path("etc/partage/partage.toml")  # below the root
_ENOUGH_BYTES: Final = 1 << 20


def read_toml(path: Path, *, required: bool) -> TomlFile:
    """The file at `path`; an empty one if it is missing and not `required`. Raises `BadConfiguration`."""
    try:
        return TomlFile(str(path), tomllib.loads(_text(path)))
    except FileNotFoundError as error:
        if not required:
            return TomlFile(str(path))
        raise BadConfiguration(f"cannot read {path}: there is no such file; make it, or leave --config out") from error
    except OSError as error:
        raise BadConfiguration(f"cannot read {path}: {error.strerror}; is it a file that we may read?") from error
    except UnicodeDecodeError as error:
        raise BadConfiguration(
            f"cannot read {path}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
    except (ValueError, RecursionError) as error:  # of tomllib: its own, an integer too long, a table too deep
        raise BadConfiguration(f"cannot read {path} as TOML: {error}") from error


def _text(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(_ENOUGH_BYTES + 1)
    if len(raw) > _ENOUGH_BYTES:
        raise ValueError(f"it is longer than {_ENOUGH_BYTES} bytes; is it the right file?")
    return raw.decode()


def as_toml(resolved: Resolved[Any], daemon: str) -> str:
    """The daemon's table with every setting."""
    return "\n".join(_lines(resolved.settings, resolved, daemon)) + "\n"


def shown_default(field: Field, default: object) -> str:
    """A default for ``--help`` and tables."""
    return "none" if field.optional and default is None else _value(default)


def _lines(settings: CommonSettings, resolved: Resolved[Any], daemon: str) -> Iterator[str]:
    yield f"[{daemon}]"
    for name in fields_of(type(settings)):
        value, origin = getattr(settings, name), printable(resolved.origins[name])
        yield f'{name} = ""  # none; {origin}' if value is None else f"{name} = {_value(value)}  # {origin}"


def _value(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=_path_text).decode()


def _path_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} has no text form")
