"""Where the settings of a daemon come from; and by which ones it goes that must live even where they can't be read.

Such a daemon keeps the settings of its last good start below the node's root. It goes by those, all of them or none:
half an old set and half a new one is what nobody ever meant. Where there are none that can be read, as after a boot, it
goes by the defaults and whatever is good of what it is told now: one key that is misspelt must not hide where the
container runtime listens.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.fields import fields_of
from partage_base.daemon.printing import as_toml
from partage_base.daemon.resolving import Resolved, allowed_values, resolve
from partage_base.daemon.settings import CommonSettings
from partage_base.daemon.toml import DEFAULT_PATH, TomlFile, read_toml
from partage_base.files import write_whole

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
