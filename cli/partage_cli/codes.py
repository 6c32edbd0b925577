"""A short code for each kind of error that ends a command; docs/troubleshooting.md explains them. Pure.

Exception classes are given by name, not imported: a command loads only what it needs. A class without a code of its own
has that of its nearest base class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class ErrorCode(NamedTuple):
    """One code with the text of its row in docs/troubleshooting.md."""

    code: str
    means: str
    advice: str


_BROKEN: Final = ErrorCode("PTG401", "The node's broker gives no answer.", "`systemctl status partage-broker`")
_ROOT: Final = ErrorCode("PTG404", "A daemon answers root alone.", "run it with `sudo`")
_DELIVERY: Final = ErrorCode(
    "PTG506", "The cluster delivers no keys or settings to its nodes.", "`partage keys ensure`"
)
_REPLAY: Final = ErrorCode("PTG602", "A replay ended before its end.", "report it, with what was replayed")
CODES: Final[Mapping[str, ErrorCode]] = {
    "partage_cli.main.RemovedCommand": ErrorCode("PTG101", "The command is gone.", "type what the line says"),
    "click.exceptions.ClickException": ErrorCode("PTG102", "The command can't run so.", "as the line says"),
    "builtins.OSError": ErrorCode(
        "PTG103", "The system refused a file or a program.", "right, room and path; perhaps `sudo`"
    ),
    "partage_plugins.errors.PartageError": ErrorCode("PTG200", "Another expected error.", "as the line says"),
    "partage_plugins.errors.Refused": ErrorCode("PTG201", "The answer is no.", "as the line says"),
    "partage_plugins.errors.DecodeError": ErrorCode(
        "PTG202", "Something from outside is not as its contract says.", "mend what the line names"
    ),
    "partage_plugins.errors.SignatureRefused": ErrorCode("PTG203", "A signature does not hold.", "[keys](keys.md)"),
    "partage_plugins.errors.PluginError": ErrorCode("PTG204", "A plugin did what it may not.", "[plugins](plugins.md)"),
    "partage_base.daemon.errors.BadConfiguration": ErrorCode(
        "PTG205", "Settings can't be as they are.", "[what is refused](configuration.md#what-is-refused)"
    ),
    "partage_base.daemon.errors.DaemonError": ErrorCode(
        "PTG206", "A daemon could not start or go on.", "its log says why"
    ),
    "partage_base.kube.errors.KubeError": ErrorCode("PTG300", "The API server could not be asked.", "as the line says"),
    "partage_base.kube.errors.BadAccess": ErrorCode(
        "PTG301", "Nothing says where the API server is and who asks.", "`--kubeconfig`, or `$KUBECONFIG`"
    ),
    "partage_base.kube.errors.BadName": ErrorCode("PTG302", "No object can have that name.", "correct the name"),
    "partage_base.kube.errors.Unreachable": ErrorCode(
        "PTG303", "The API server gives no answer.", "is it up, and reachable from here?"
    ),
    "partage_base.kube.errors.MalformedResponse": ErrorCode(
        "PTG304", "What answers is no API server, or says too much.", "is there a proxy or a login page?"
    ),
    "partage_base.kube.errors.StatusError": ErrorCode(
        "PTG305", "The API server says no.", "its own words are in the line"
    ),
    "partage_base.kube.errors.NotAllowed": ErrorCode(
        "PTG306", "The API server does not let you.", "renew the credentials, or grant the right by RBAC"
    ),
    "partage_base.kube.errors.NotFound": ErrorCode(
        "PTG307", "There is no such object or resource.", "is partage installed, and `--namespace` right?"
    ),
    "partage_base.kube.errors.Conflict": ErrorCode(
        "PTG308", "Somebody else changed the object meanwhile.", "try again"
    ),
    "partage_base.kube.errors._Busy": ErrorCode("PTG309", "The API server is overloaded or broken.", "try again later"),
    "partage_isolation.wire.client.ControlError": _BROKEN,
    "partage_isolation.wire.client.OnlyForRoot": _ROOT,
    "partage_oci.client.AgentError": ErrorCode("PTG402", "The machine's agent gives no answer.", "`partage up`"),
    "partage_oci.client.OnlyForRoot": _ROOT,
    "partage_base.cri.errors.CriError": ErrorCode(
        "PTG403", "The container runtime gives no answer.", "`systemctl status containerd`"
    ),
    "partage_isolation.errors.BrokerError": ErrorCode(
        "PTG405", "The broker can't do that.", "[isolation](isolation.md)"
    ),
    "partage_scheduler.errors.SchedulerError": ErrorCode(
        "PTG406", "The scheduler can't do that.", "[the scheduler](scheduler.md)"
    ),
    "partage_cli.installation.errors.InstallationError": ErrorCode(
        "PTG501", "The node can't be changed so.", "[install](install.md); `partage node status`"
    ),
    "partage_cli.machine.setup.errors.SetupError": ErrorCode(
        "PTG502", "This machine's services do not start.", "`partage doctor`"
    ),
    "partage_base.keyring.errors.KeyringError": ErrorCode(
        "PTG503", "A key can't be used, or not be taken away.", "[keys](keys.md)"
    ),
    "partage_isolation.library.errors.LibraryError": ErrorCode(
        "PTG504", "The preload library can't be built or installed.", "[install](isolation.md#install)"
    ),
    "partage_cli.docker.program.NotBuilt": ErrorCode(
        "PTG505", "`partage-oci` can't be compiled.", "install a C compiler, or a release"
    ),
    "partage_cli.rollout.installer.deliveries.NoKeys": _DELIVERY,
    "partage_cli.rollout.installer.deliveries.TooMuch": _DELIVERY,
    "partage_simgpu.errors.SimulationError": ErrorCode("PTG601", "Simulated cards can't be so.", "[simgpu](simgpu.md)"),
    "partage_cli.simulation.measures.MisCounted": _REPLAY,
    "partage_cli.simulation.runs.ReplayEnded": _REPLAY,
    "partage_cli.usage.sampled.PrometheusError": ErrorCode(
        "PTG603", "A Prometheus can't be asked, or says no.", "`--prometheus http://HOST:9090`"
    ),
}


def code_of(kind: type[BaseException]) -> ErrorCode | None:
    """The code of the nearest class in the MRO that has one; None for an unexpected exception, which is a defect."""
    names = (f"{each.__module__}.{each.__qualname__}" for each in kind.__mro__)
    return next((CODES[name] for name in names if name in CODES), None)


def rows() -> list[ErrorCode]:
    """All codes without duplicates, sorted by number."""
    return sorted(set(CODES.values()))
