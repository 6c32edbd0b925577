"""Pods, grants, images and events as people read them; times in docker's words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from partage_cli.machine.pods.pod import ContainerPort
from partage_cli.machine.wire.messages import ContainerStatus, Event, Grant, GrantStatus, Image, PodStatus
from partage_cli.tables import amount, printable, short_id, table

_NONE: Final = "-"
_AMOUNTS: Final = ("SHARE", "LIMIT", "MEMORY", "USED")
_SHORT_CONTAINER: Final = 12
_SHORT_UID: Final = 8
_SHORT_IMAGE: Final = 19
_DIGEST: Final = "sha256:"
_NS: Final = 1_000_000_000
_LONG: Final = (
    (365 * 2 * 86400, 365 * 86400, "years"),
    (30 * 2 * 86400, 30 * 86400, "months"),
    (14 * 86400, 7 * 86400, "weeks"),
    (48 * 3600, 86400, "days"),
    (2 * 3600, 3600, "hours"),
    (3600, 0, "About an hour"),
    (120, 60, "minutes"),
    (60, 0, "About a minute"),
    (2, 1, "seconds"),
    (1, 0, "1 second"),
)


def pods_table(pods: Sequence[PodStatus], now_ns: int, *, wide: bool) -> str:
    header = ["NAME", "IMAGE", "STATUS", *_AMOUNTS, "CARD", "PORTS"]
    if wide:
        header += ["GOT", "ADDRESS", "RESTARTS", "CREATED", "NAMESPACE", "UID"]
    return table(header, ([*_row(pod, now_ns), *(_more(pod, now_ns) if wide else ())] for pod in pods))


def grants_table(grants: Sequence[GrantStatus]) -> str:
    header = ["NAME", "STATUS", *_AMOUNTS, "CARD", "CONTAINERS", "DEVICE"]
    rows = (
        [
            printable(each.name),
            "Revoked" if each.is_revoked else "In use" if each.containers else "Unused",
            *_amounts(each.grants),
            _cards(each.grants),
            ",".join(container[:_SHORT_CONTAINER] for container in each.containers) or _NONE,
            each.device,
        ]
        for each in grants
    )
    return table(header, rows)


def grant_line(grant: GrantStatus, *, keep: bool) -> str:
    """As `train has 30 % and 4Gi of card 0 until its last container ends`."""
    share, _, memory, _ = _amounts(grant.grants)
    until = f"it is revoked: partage revoke {grant.name}" if keep else "its last container ends"
    return f"{printable(grant.name)} has {share} and {memory} of card {_cards(grant.grants)} until {until}"


def status(pod: PodStatus, now_ns: int) -> str:
    """As docker's `Up 3 minutes`, `Exited (1) 2 hours ago`."""
    why = next((each.why for each in pod.containers if each.why), "")
    return _state(pod, now_ns) + (f": {printable(why)}" if why else "")


def duration(seconds: float) -> str:
    """As docker words how long something took: `4 minutes`, `About an hour`."""
    for least, unit, word in _LONG:
        if seconds >= least:
            return f"{int(seconds // unit)} {word}" if unit else word
    return "Less than a second"


def images_table(images: Iterable[Image]) -> str:
    rows = [
        (printable(name), image.id.removeprefix(_DIGEST)[:12], amount(image.bytes))
        for image in images
        for name in image.names or ("<none>",)
    ]
    return table(("IMAGE", "ID", "SIZE"), sorted(rows))


def event_line(event: Event, at: str) -> str:
    """`2026-11-23T19:30:00+00:00 die train: exit code 1`."""
    code = "" if event.exit_code is None else f"exit code {event.exit_code}"
    told = "; ".join(filter(None, (code, event.text, *(f"{name}={value}" for name, value in event.attributes.items()))))
    return printable(f"{at} {event.kind} {event.name}".rstrip() + (f": {told}" if told else ""))


def ports(given: Iterable[ContainerPort]) -> str:
    """In docker's words, as `0.0.0.0:8080->80/tcp`."""
    return ", ".join(
        f"{port.host_ip or '0.0.0.0'}:{port.host_port}->{port.container_port}/{port.protocol.lower()}"  # noqa: S104
        for port in given
        if port.host_port
    )


def _row(pod: PodStatus, now_ns: int) -> list[str]:
    main = [each for each in pod.containers if not each.init]
    grants = _grants(main)
    return [
        printable(pod.name),
        _image(main),
        status(pod, now_ns),
        *_amounts(grants),
        _cards(grants),
        ports(pod.ports) or _NONE,
    ]


def _amounts(grants: Sequence[Grant]) -> tuple[str, str, str, str]:
    return (
        _percent(sum(grant.share_milli for grant in grants), grants),
        _percent(sum(grant.limit_milli for grant in grants), grants),
        amount(sum(grant.memory_bytes for grant in grants)) if grants else _NONE,
        amount(_sum(grant.used_bytes for grant in grants)),
    )


def _more(pod: PodStatus, now_ns: int) -> list[str]:
    got = [grant.got for grant in _grants(pod.containers) if grant.got is not None]
    return [
        f"{sum(got) * 100:.0f} %" if got else _NONE,
        pod.address or _NONE,
        str(sum(each.restarts for each in pod.containers)),
        f"{_since(pod.created_ns, now_ns)} ago",
        pod.namespace,
        pod.uid[:_SHORT_UID],
    ]


def _grants(containers: Iterable[ContainerStatus]) -> list[Grant]:
    """Those of a budget once, however many containers use it."""
    found: dict[tuple[bool, str, int], Grant] = {}
    for container in containers:
        for place, grant in enumerate(container.grants):
            found.setdefault((grant.budget is None, grant.budget or container.name, place), grant)
    return list(found.values())


def _state(pod: PodStatus, now_ns: int) -> str:
    if pod.phase == "starting":
        return "Created"
    if pod.phase == "running":
        started = [each.started_ns for each in pod.containers if each.state == "running" and each.started_ns]
        return f"Up {_since(min(started), now_ns)}" if started else "Up"
    code = _code(pod)
    finished = [each.finished_ns for each in pod.containers if each.finished_ns]
    ago = f" {_since(max(finished), now_ns)} ago" if finished else ""
    word = "Restarting" if pod.phase == "restarting" else "Exited"
    return (word if code is None else f"{word} ({code})") + ago


def _code(pod: PodStatus) -> int | None:
    """While it waits for its next start the pod has none: then the first of its containers that is not 0, or 0."""
    codes = [each.exit_code for each in pod.containers if each.exit_code is not None]
    return pod.exit_code if pod.exit_code is not None else next(filter(None, codes), codes[0] if codes else None)


def _since(at_ns: int, now_ns: int) -> str:
    return duration(max(0, now_ns - at_ns) / _NS)


def _image(containers: Sequence[ContainerStatus]) -> str:
    if not containers:
        return _NONE
    more = f" +{len(containers) - 1}" if len(containers) > 1 else ""
    image = containers[0].image
    return printable(image[:_SHORT_IMAGE] if image.startswith(_DIGEST) else image) + more


def _percent(milli: int, grants: Sequence[Grant]) -> str:
    return f"{milli / 10:g} %" if grants else _NONE


def _cards(grants: Iterable[Grant]) -> str:
    return ",".join(dict.fromkeys(map(_card, grants))) or _NONE


def _card(grant: Grant) -> str:
    return short_id(grant.card) if grant.index is None else str(grant.index)


def _sum(amounts: Iterable[int | None]) -> int | None:
    """None where none is known."""
    known = [each for each in amounts if each is not None]
    return sum(known) if known else None
