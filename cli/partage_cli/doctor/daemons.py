"""The node's daemons: whether each is running and working, by its socket, its lock and its liveness files."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partage_base.condition import Condition
from partage_base.condition_file import last_condition
from partage_base.keyring import KeyFolders, load_public_keys
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, names_in, status_of
from partage_cli.doctor.runtimes import runtime_at
from partage_cli.tables import age
from partage_plugins.api.places import ADVERTISER_LOCK, CRISHIM_CONDITION, KUBELET_SPOKE

_FRESH_S: Final = 20.0
_CLOCK_SLACK_S: Final = 2.0


def crishim(node: LocalNode) -> Iterator[Finding]:
    socket = node.path(node.crishim.listen)
    about = About("crishim", (str(socket),))
    answer = runtime_at(socket)
    if not isinstance(answer, Unseen):
        yield about.ok(f"answers, for {answer}")
    elif answer.is_missing:
        yield about.wrong(
            f"does not answer: {answer.why}",
            do="`systemctl status partage-crishim`; while it is away no container starts on this node",
        )
    else:
        yield about.unknown(answer.why, do="ask again as root")


def crishim_condition(node: LocalNode) -> Iterator[Finding]:
    """The faults that crishim reports; with them it still serves, but may reject all allocations."""
    path = node.path(CRISHIM_CONDITION)
    about = About("crishim-condition", (str(path),))
    condition = condition_of(node.root)
    if condition is not None:
        yield from in_condition(about, condition)
        return
    seen = age_of(path)
    if isinstance(seen, Unseen) and not seen.is_missing:
        yield about.unknown(str(seen), do="ask again as root")
        return
    since = "" if isinstance(seen, Unseen) else f" for {age(seen)}"
    yield about.wrong(
        f"crishim has not said{since} whether it honours allocations, so the node takes no shared pods",
        do="see crishim; where it runs, `df /run`: it cannot write there, or it is older than this program",
    )


def condition_of(root: Path) -> Condition | None:
    """What crishim reported in the last seconds."""
    return last_condition(root, within_s=_FRESH_S, clock=time.time)


def in_condition(about: About, condition: Condition) -> Iterator[Finding]:
    """One finding for each fault."""
    if not condition.faults:
        yield about.ok("crishim honours allocations")
    for fault in condition.faults:
        if fault.refuses:
            advice = "mend it; until then crishim refuses containers with an allocation and serves all others"
            yield about.wrong(fault.sentence, do=advice)
        else:
            yield about.warning(fault.sentence, do="mend it; no container waits for it")


def kubelet_speaks(node: LocalNode) -> Iterator[Finding]:
    """Kubelet has spoken through crishim in the last seconds."""
    path = node.path(KUBELET_SPOKE)
    yield spoke(About("kubelet-speaks", (str(path),)), age_of(path))


def spoke(about: About, age_s: float | Unseen) -> Finding:
    """Judge the age of kubelet's last call; kubelet asks for the runtime's status every five seconds."""
    if isinstance(age_s, Unseen):
        if not age_s.is_missing:
            return about.unknown(str(age_s), do="ask again as root")
        return about.wrong(
            "kubelet never spoke to crishim, so the node takes no shared pods",
            do="see kubelet-endpoint, and restart kubelet",
        )
    if not is_fresh(age_s):
        return about.wrong(
            f"kubelet last spoke to crishim {age(age_s)} ago, so the node takes no shared pods",
            do="see kubelet-endpoint; `systemctl status kubelet`",
        )
    return about.ok(f"kubelet spoke to crishim {age(age_s)} ago")


def advertiser(node: LocalNode) -> Iterator[Finding]:
    path = node.path(ADVERTISER_LOCK)
    about, runs = About("advertiser", (str(path),)), is_held(path)
    if isinstance(runs, Unseen):
        yield about.unknown(str(runs), do="ask again as root")
    elif runs:
        yield about.ok("runs")
    else:
        yield about.wrong(
            "does not run, so it is not known how the cards are",
            do="`systemctl status partage-advertiser`, or look at its pod on this node",
        )


def is_held(lock: Path) -> bool | Unseen:
    """Whether a process holds that lock; a missing file is not locked."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as error:
        return Unseen(lock, "may not be read as this user" if isinstance(error, PermissionError) else str(error))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def age_of(path: Path) -> float | Unseen:
    """Seconds since the file was last touched."""
    status = status_of(path)
    return status if isinstance(status, Unseen) else time.time() - status.st_mtime


def is_fresh(age_s: float) -> bool:
    """Whether a file that is touched every 5 s is recent."""
    return -_CLOCK_SLACK_S <= age_s <= _FRESH_S


def keys(node: LocalNode) -> Iterator[Finding]:
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


def private_keys(node: LocalNode) -> Iterator[Finding]:
    """No private keys are on this node."""
    folder = KeyFolders.at_root(node.root).private
    names = names_in(folder)
    if not isinstance(names, Unseen) and any(name.endswith(".key") for name in names):
        yield About("private-keys", (str(folder),)).warning(
            "private halves of signing keys lie on this node",
            do="keep them with the scheduler alone: who reads them can give away every card of the cluster",
        )
