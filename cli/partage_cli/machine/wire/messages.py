"""Questions to the manager and its answers, as types and as lines of JSON. Pure.

A connection begins with the manager's `Hello`. Then each line from the client is one question; the manager answers it
by any number of lines that tell of progress, and one last line: `Done…`, or `No`. A client that closes its side while a
question is open gives it up: who waits in the queue leaves it, a log is followed no longer. What runs goes on.

Readers ignore fields that they do not know, and every field that is added later has a default: manager and clients may
be of different versions. `v` is of the question's form, and changes only where an older manager would do wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from partage_cli.machine.pods.pod import ContainerPort, Pod, PullWhen
from partage_cli.machine.pods.record import Restart
from partage_plugins.errors import DecodeError

if TYPE_CHECKING:
    from partage_plugins.codecs.decoder import Reader

MANAGER_SOCKET: Final = "run/partage/manager.sock"
"""Below the root."""
END: Final = b"\n"
MAX_QUESTION_BYTES: Final = 64 << 10
MAX_ANSWER_BYTES: Final = 16 << 20
MAX_CONNECTIONS: Final = 32

Name = Annotated[str, Meta(min_length=1, max_length=253)]
"""Of a pod, or the first characters of its uid, at least six."""
Phase = Literal["starting", "running", "restarting", "exited", "stopped"]
"""`restarting` waits for its back-off; `stopped` was ended by a person, `exited` by itself."""
Code = Literal[
    "bad-question", "unknown-name", "name-taken", "no-room", "refused", "not-ready", "image", "runtime", "too-many"
]


class Ask(Struct, frozen=True, kw_only=True, tag_field="do"):
    v: Literal[1] = 1


class Run(Ask, frozen=True, kw_only=True, tag="run"):
    """Place, create and start a pod. Ends with `DoneRun` when its containers were started."""

    pod: Pod
    restart: Restart = "no"
    most_restarts: Annotated[int, Meta(ge=0)] = 0
    remove: bool = False
    wait: bool = False
    """Where it does not fit, wait for its turn; first come, first served among those who wait."""
    pull: PullWhen | None = None
    """Of all its images; None: as each container says."""


class Start(Ask, frozen=True, kw_only=True, tag="start"):
    """A pod that has ended: placed again, with the same name and record."""

    name: Name


class Ps(Ask, frozen=True, kw_only=True, tag="ps"):
    all: bool = False
    """Those that have ended too."""
    names: tuple[Name, ...] = ()
    """Only these; each must be there."""


class Stop(Ask, frozen=True, kw_only=True, tag="stop"):
    name: Name
    grace_s: Annotated[int, Meta(ge=0, le=3600)] | None = None
    """None: as the pod says."""


class Rm(Ask, frozen=True, kw_only=True, tag="rm"):
    name: Name
    force: bool = False
    """Also one that runs."""


class Wait(Ask, frozen=True, kw_only=True, tag="wait"):
    """Until it has ended and is not started again."""

    name: Name


class Logs(Ask, frozen=True, kw_only=True, tag="logs"):
    name: Name
    container: str = ""
    """Empty: the only one, or the first."""
    follow: bool = False
    """Until the pod has ended."""
    tail: Annotated[int, Meta(ge=0)] | None = None


class Exec(Ask, frozen=True, kw_only=True, tag="exec"):
    name: Name
    container: str = ""
    argv: Annotated[tuple[str, ...], Meta(min_length=1)]
    tty: bool = False
    stdin: bool = False


class Attach(Ask, frozen=True, kw_only=True, tag="attach"):
    name: Name
    container: str = ""
    output: bool = True
    """Without it, and without a terminal, the end of the connection is the end of the container's input."""


class Signal(Ask, frozen=True, kw_only=True, tag="signal"):
    """To the first process of each container, as a terminal's Ctrl-C is passed on."""

    name: Name
    number: Annotated[int, Meta(ge=1, le=64)]


class Inspect(Ask, frozen=True, kw_only=True, tag="inspect"):
    name: Name


class Pull(Ask, frozen=True, kw_only=True, tag="pull"):
    """Ends with `DoneImages` of that one."""

    image: Annotated[str, Meta(min_length=1)]


class Load(Ask, frozen=True, kw_only=True, tag="load"):
    """Ends with `DoneImages` of those that it brought."""

    path: Annotated[str, Meta(pattern=r"\A/")]
    """Of an archive on this machine, as `docker save` writes it, or an OCI layout."""


class Images(Ask, frozen=True, kw_only=True, tag="images"):
    pass


class Events(Ask, frozen=True, kw_only=True, tag="events"):
    """What happens from now on, without an end."""


class Info(Ask, frozen=True, kw_only=True, tag="info"):
    """Of the machine: cards, what is given and what is free."""


class Allow(Ask, frozen=True, kw_only=True, tag="grant"):
    """A budget for containers of another engine, which have it together. Ends with `DoneGrants` of that one."""

    name: Annotated[str, Meta(pattern=r"\A([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?\Z")] = ""
    """Empty: one is made up."""
    share: Annotated[int, Meta(ge=0)] | None = None
    limit: Annotated[int, Meta(ge=0)] | None = None
    memory: str | None = None
    """A quantity, as 4Gi."""
    cards: Annotated[int, Meta(ge=1)] | None = None
    keep: bool = False
    """Until it is revoked; without this it ends with its last container."""


class Revoke(Ask, frozen=True, kw_only=True, tag="revoke"):
    """No other container gets it. Ends with `DoneGrants`: of none, or of that one, which ends with its containers."""

    name: Name
    force: bool = False
    """Kill its containers."""


class ListGrants(Ask, frozen=True, kw_only=True, tag="grants"):
    """Grants that have not ended yet."""


class Grant(Struct, frozen=True, kw_only=True):
    """Of a card, to one container."""

    card: str
    index: int | None = None
    share_milli: int = 0
    limit_milli: int = 1000
    memory_bytes: int = 0
    used_bytes: int | None = None
    """None: the broker does not tell."""
    got: float | None = None
    """Part of the card's time over the last ten seconds, 0 to 1."""
    budget: str | None = None
    """Of the pod; its containers have these grants together, and each is told the same of them."""


class ContainerStatus(Struct, frozen=True, kw_only=True):
    name: str
    image: str
    init: bool = False
    state: Literal["created", "running", "exited", "waiting"]
    exit_code: int | None = None
    started_ns: int | None = None
    finished_ns: int | None = None
    restarts: int = 0
    why: str = ""
    """Of a state that is not as it should be: a refusal, or why it was ended."""
    grants: tuple[Grant, ...] = ()


class PodStatus(Struct, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str
    phase: Phase
    created_ns: int
    restart: Restart
    address: str = ""
    """In the bridge's network; empty in the machine's own."""
    ports: tuple[ContainerPort, ...] = ()
    """Of the pod's containers: those that the machine passes on."""
    exit_code: int | None = None
    """The first of its containers' that is not 0, once all have ended."""
    containers: tuple[ContainerStatus, ...]


class GrantStatus(Struct, frozen=True, kw_only=True):
    """A budget for containers of other engines."""

    name: str
    uid: str
    device: str
    """The CDI device that brings it into a container."""
    is_revoked: bool = False
    """No other container gets it; it ends with those that have it."""
    grants: tuple[Grant, ...]
    containers: tuple[str, ...] = ()
    """That have it now, by their engine's ids."""


class CardStatus(Struct, frozen=True, kw_only=True):
    id: str
    index: int
    model: str
    memory_bytes: int
    health: str
    given_milli: int
    given_bytes: int
    used_bytes: int | None = None


class Image(Struct, frozen=True, kw_only=True):
    id: str
    names: tuple[str, ...]
    bytes: int


class Hello(Struct, frozen=True, kw_only=True, tag_field="is", tag="hello"):
    v: Literal[1] = 1
    manager: str
    """Its version."""
    simulated: bool
    """The cards are simulated: nothing is computed."""


class Progress(Struct, frozen=True, kw_only=True, tag_field="is", tag="progress"):
    """What a `run`, `pull` or `load` is doing now."""

    step: Literal["queue", "pull", "load", "place", "start"]
    text: str = ""
    done_bytes: int | None = None
    total_bytes: int | None = None


class LogLine(Struct, frozen=True, kw_only=True, tag_field="is", tag="log"):
    stream: Literal["stdout", "stderr"]
    at: str
    """As the runtime wrote it, RFC 3339 with nanoseconds."""
    data: bytes
    """In base64, and without its newline: who shows it writes one where the line does not go on."""
    part: bool = False


class Event(Struct, frozen=True, kw_only=True, tag_field="is", tag="event"):
    at_ns: int
    kind: Literal["create", "start", "die", "restart", "stop", "remove", "refuse", "card"]
    name: str = ""
    uid: str = ""
    text: str = ""
    exit_code: int | None = None
    attributes: Mapping[str, str] = {}


class Done(Struct, frozen=True, kw_only=True, tag_field="is", tag="done"):
    """Of a question that has no more to tell."""


class DonePods(Struct, frozen=True, kw_only=True, tag_field="is", tag="pods"):
    pods: tuple[PodStatus, ...]


class DoneRun(Struct, frozen=True, kw_only=True, tag_field="is", tag="ran"):
    pod: PodStatus


class DoneWait(Struct, frozen=True, kw_only=True, tag_field="is", tag="ended"):
    exit_code: int


class DoneStream(Struct, frozen=True, kw_only=True, tag_field="is", tag="stream"):
    url: str
    """Once, and soon: streams of the runtime's, on this machine, as kubelet and kubectl have them."""
    container: str
    tty: bool


class DoneInspect(Struct, frozen=True, kw_only=True, tag_field="is", tag="inspected"):
    pod: PodStatus
    record: Pod
    allocation: str = ""
    """As it was signed."""
    sandbox: str = ""
    containers: Mapping[str, str] = {}
    """Ids of the runtime by name."""
    logs: Mapping[str, str] = {}


class DoneImages(Struct, frozen=True, kw_only=True, tag_field="is", tag="images"):
    images: tuple[Image, ...]


class DoneInfo(Struct, frozen=True, kw_only=True, tag_field="is", tag="info"):
    runtime: str
    cards: tuple[CardStatus, ...]
    waiting: int = 0
    """Who waits for a turn."""


class DoneGrants(Struct, frozen=True, kw_only=True, tag_field="is", tag="grants"):
    grants: tuple[GrantStatus, ...]


class No(Struct, frozen=True, kw_only=True, tag_field="is", tag="no"):
    code: Code
    why: Annotated[str, Meta(min_length=1)]
    """A sentence that says what to do."""


Question = (
    Run
    | Start
    | Ps
    | Stop
    | Rm
    | Wait
    | Logs
    | Exec
    | Attach
    | Signal
    | Inspect
    | Pull
    | Load
    | Images
    | Events
    | Info
    | Allow
    | Revoke
    | ListGrants
)
Last = Done | DonePods | DoneRun | DoneWait | DoneStream | DoneInspect | DoneImages | DoneInfo | DoneGrants | No
Answer = Hello | Progress | LogLine | Event | Last

_encoder: Final = msgspec.json.Encoder()
_answers: Final = msgspec.json.Decoder[Answer](Answer)


def question_line(question: Question) -> bytes:
    return _encoder.encode(question) + END


def read_question(line: bytes) -> Question:
    """What a client sent; raises `DecodeError`."""
    return _questions().read(line.removesuffix(END))


def answer_line(answer: Answer) -> bytes:
    return _encoder.encode(answer) + END


def read_answer(line: bytes) -> Answer:
    """What the manager sent; raises `DecodeError`."""
    try:
        answer: Answer = _answers.decode(line.removesuffix(END))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = line[:80].decode(errors="replace")
        raise DecodeError("answer of the manager", path="$", value=shown, allowed=str(error)) from None
    return answer


@cache
def _questions() -> Reader[Question]:
    """For the manager alone: with codecs come signatures, whose import takes as long as all else of a command."""
    from partage_plugins.codecs.decoder import Reader  # noqa: PLC0415  (see above)

    return Reader[Question]("question to the manager", Question)  # type: ignore[arg-type]  # a union is no class
