"""Which runtime endpoint kubelet uses, among all the places that can set it. Pure.

In ascending precedence: kubelet's default, its configuration file, the drop-ins of its ``--config-dir`` in the order of
their names, its flag. The running process was started with the settings of that time, and the next one will be started
with the current settings: both are judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from partage_cli.doctor.findings import About, Finding

CHECK: Final = "kubelet-endpoint"
DEFAULT_ENDPOINT: Final = "unix:///run/containerd/containerd.sock"
FLAG: Final = "container-runtime-endpoint"
FIELD: Final = "containerRuntimeEndpoint"
RESTART: Final = "systemctl restart kubelet"


@dataclass(frozen=True)
class Say:
    """A place that sets the endpoint, with its value."""

    where: str
    endpoint: str
    by_flag: bool = False


@dataclass(frozen=True)
class Setup:
    """How a kubelet is started, as far as it affects the endpoint."""

    says: tuple[Say, ...] = ()
    """In ascending precedence."""
    unseen: tuple[str, ...] = ()
    """Places that may set the endpoint and could not be read."""
    config: str = "kubelet's configuration"
    """Path of the configuration file."""

    @property
    def in_force(self) -> Say | None:
        """The setting in force; None if an unreadable place might override it."""
        last = self.says[-1] if self.says else None
        if last is not None and last.by_flag:
            return last
        return None if self.unseen else last or Say("kubelet's default", DEFAULT_ENDPOINT)


@dataclass(frozen=True)
class EndpointFacts:
    wanted: str
    """crishim's socket."""
    now: Setup | None
    """Of the running process; None if none is visible."""
    next: Setup | None
    """Of the next start; None if nothing says how kubelet is started."""


def judged(facts: EndpointFacts) -> Finding:
    """Whether kubelet speaks to crishim, and which file to change if not."""
    about = About(CHECK, tuple(_told(facts)))
    setup = facts.now or facts.next
    if setup is None:
        return about.unknown(
            "no kubelet runs here and no kubelet.service says how it starts", do="ask on the node itself"
        )
    says = setup.in_force
    if says is None:
        return about.unknown(f"cannot read {', '.join(setup.unseen)}", do="mend that, or ask again as root")
    if not _is(says, facts.wanted):
        return about.wrong(
            f"kubelet speaks to {says.endpoint} and not to crishim, as {says.where} says",
            do=_remedy(facts, setup, says),
        )
    if facts.now is None:
        return about.warning("kubelet is set to speak to crishim and does not run", do="systemctl start kubelet")
    return _with_next(about, facts, says)


def path_of(endpoint: str) -> str:
    """The path of an endpoint's socket; /var/run is /run on every machine with a kubelet."""
    path = endpoint.strip().removeprefix("unix://")
    return path.removeprefix("/var") if path.startswith("/var/run/") else path


def _with_next(about: About, facts: EndpointFacts, says: Say) -> Finding:
    following = None if facts.next is None else facts.next.in_force
    if facts.next is None or following is None or _is(following, facts.wanted):
        return about.ok(f"kubelet speaks to crishim, as {says.where} says")
    return about.warning(
        f"kubelet speaks to crishim until its next start, then to {following.endpoint}, as {following.where} says",
        do=_change(following, facts.next, facts.wanted),
    )


def _remedy(facts: EndpointFacts, setup: Setup, says: Say) -> str:
    if facts.now is None or facts.next is None:
        return f"{_change(says, setup, facts.wanted)}, then {RESTART}"
    following = facts.next.in_force
    if following is not None and _is(following, facts.wanted):
        return f"{RESTART}: its files already say crishim"
    return f"{_change(following or says, facts.next, facts.wanted)}, then {RESTART}"


def _change(says: Say, setup: Setup, wanted: str) -> str:
    if says.by_flag:
        weaker = next((each for each in reversed(setup.says) if not each.by_flag), None)
        if weaker is not None and _is(weaker, wanted):
            return f"take --{FLAG} out of {says.where}: a flag beats {weaker.where}, which names crishim"
        return f"set --{FLAG}=unix://{wanted} in {says.where}"
    return f"set {FIELD}: unix://{wanted} in {says.where if setup.says else setup.config}"


def _is(says: Say, wanted: str) -> bool:
    return path_of(says.endpoint) == path_of(wanted)


def _told(facts: EndpointFacts) -> list[str]:
    told: list[str] = []
    for setup, when in ((facts.now, "now"), (facts.next, "at its next start")):
        if setup is not None:
            told += [f"{when}: {each.where}: {each.endpoint}" for each in setup.says]
            told += [f"{when}: {where}: cannot be read" for where in setup.unseen]
            told += [f"{when}: {DEFAULT_ENDPOINT}, kubelet's default"] if not setup.says and not setup.unseen else []
    return told
