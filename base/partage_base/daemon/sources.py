"""Where the settings of a daemon come from; and by which ones it goes that must live even where they can't be read.

Such a daemon keeps the settings of its last good start below the node's root. It goes by those, all of them or none:
half an old set and half a new one was never meant. Where there are none that can be read, as after a boot, it
goes by the defaults and whatever is good of what it is told now: one key that is misspelt must not hide where the
container runtime listens.
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
    """The file, the environment and the flags of one daemon; each reading is a new look at them."""

    settings_type: type[S]
    daemon: str
    config: Path | None
    flags: Mapping[str, str]
    usage: str = ""
    """What is wrong with a command line of which nothing could be taken."""

    def read(self) -> Resolved[S]:
        """The settings; raises `BadConfiguration` with every mistake."""
        if self.usage:
            raise BadConfiguration(self.usage)
        return self._resolved(read_toml(self.file, required=self.config is not None))

    def last(self) -> S:
        """What to go by where they can't be read; never raises for what stands in a source."""
        with contextlib.suppress(BadConfiguration):
            kept = read_toml(self.kept, required=True)
            return resolve(self.settings_type, self.daemon, toml=kept, environment={}, flags={}).settings
        return self._salvaged()

    def keep(self, settings: S) -> None:
        """Remembers them for `last`; raises `OSError`, and then those of before are remembered."""
        origins = dict.fromkeys(fields_of(self.settings_type), _KEPT_ORIGIN)
        text = as_toml(Resolved(settings, origins), self.daemon).encode()
        self.kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.kept, text)

    @property
    def file(self) -> Path:
        """The one that was named; else below the root, so that a node inside a folder has a file of its own."""
        return self.config or self._root / DEFAULT_PATH

    @property
    def kept(self) -> Path:
        """Where the settings of the last good start are."""
        return self._root / _KEPT.format(self.daemon)

    @property
    def _root(self) -> Path:
        """As a flag or a variable names it; what the file says of it counts only once the file was read."""
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
            with contextlib.suppress(ValueError):  # it does not go with those before it
                self.settings_type(**values, **{name: value})
                values[name] = value
        return self.settings_type(**values)


DEFAULT_PATH: Final = Path("etc/partage/partage.toml")  # below the root
_ENOUGH_BYTES: Final = 1 << 20


def read_toml(path: Path, *, required: bool) -> TomlFile:
    """The file at `path`; an empty one where it is missing and not `required`. Raises `BadConfiguration`."""
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
    except (ValueError, RecursionError) as error:  # of tomllib: its own, too long an integer, too deep a table
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
