"""A settings type with a field of each kind, and how each source writes its values."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from partage_base.daemon.resolution import Resolved, TomlFile, resolve
from partage_base.daemon.settings import CommonSettings, Setting

FILE = "/etc/partage/partage.toml"


class Sample(CommonSettings, frozen=True, kw_only=True):
    """One field of each kind."""

    listen: Annotated[Path, Setting("Where it listens.")] = Path("/run/partage/crishim.sock")
    tries: Annotated[int, Meta(ge=1, le=1000), Setting("How often it tries.")] = 3
    wait_s: Annotated[float, Meta(ge=0), Setting("Seconds it waits.")] = 1.5
    free: Annotated[float, Setting("Any number.")] = 0.5
    guard: Annotated[bool, Setting("Whether it guards.")] = True
    enforce: Annotated[Literal["strict", "advisory"], Setting("How it enforces.")] = "strict"
    trusted: Annotated[tuple[str, ...], Setting("Namespaces that it trusts.")] = ("kube-system",)
    ports: Annotated[tuple[int, ...], Setting("Numbers.")] = ()
    kubeconfig: Annotated[Path | None, Setting("Where the cluster is; none is from within.")] = None
    pinned: Annotated[str | None, Meta(min_length=2), Setting("A name or none.")] = None


def resolved(
    *,
    tables: dict[str, object] | None = None,
    environment: dict[str, str] | None = None,
    flags: dict[str, str] | None = None,
) -> Resolved[Sample]:
    """Settings of a crishim that has `Sample`."""
    toml = TomlFile(FILE, tables or {})
    return resolve(Sample, "crishim", toml=toml, environment=environment or {}, flags=flags or {})
