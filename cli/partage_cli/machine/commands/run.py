"""``partage run``: a pod of flags or of a document, in front of its user or on its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import click
import msgspec

from partage_cli.machine.commands.connection import NotRun, manager, say
from partage_cli.machine.commands.foreground import Foreground
from partage_cli.machine.commands.progress import ProgressLine
from partage_cli.machine.commands.signals import Signals
from partage_cli.machine.pods.options import Options, OptionWrong, env_lines, named_after_image, pod_of, restart_of
from partage_cli.machine.pods.pod import Pod
from partage_cli.machine.pods.record import Restart
from partage_cli.machine.wire.client import Denied, conversation
from partage_cli.machine.wire.messages import Done, DoneRun, PodStatus, Rm, Run
from partage_cli.main import SUBCOMMANDS
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary.limits import MAX_ANNOTATION_BYTES

_MOST_ENV_BYTES: Final = 1 << 20
_ALSO_WITH_FILE: Final = frozenset(("file", "detach", "remove", "wait", "restart", "pull", "name", "dry_run", "output"))


@click.command(
    name="run",
    short_help=SUBCOMMANDS["run"].summary,
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  partage run --share 300 --memory 4Gi pytorch/pytorch -- python train.py
  partage run -it --rm --share 100 nvidia/cuda:13.0.0-base-ubuntu24.04 bash
  partage run -d --name web --share 200 --limit 500 --restart always -p 8080:80 vllm/vllm-openai
  partage run -f pod.yaml
  partage run --share 300 --dry-run -o yaml pytorch/pytorch > pod.yaml
""",
)
@click.argument("image", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--share", type=click.IntRange(0), metavar="MILLI", help="Guarantee it so many thousandths of a card.")
@click.option("--limit", type=click.IntRange(0), metavar="MILLI", help="Never more than these.  [default: all]")
@click.option("--memory", metavar="QUANTITY", help="Of the card, as 4Gi: a hard limit.  [default: as the share]")
@click.option(
    "--cards", type=click.IntRange(1), metavar="NUMBER", help="On so many cards; the rest is of all together."
)
@click.option("--name", default="", help="[default: made up]")
@click.option("-d", "--detach", is_flag=True, help="Leave it on its own, and print its name.")
@click.option("-i", "--interactive", is_flag=True, help="Pass on what is typed.")
@click.option("-t", "--tty", is_flag=True, help="Give it a terminal; Ctrl-P Ctrl-Q lets go of it.")
@click.option("--rm", "remove", is_flag=True, help="Remove it once it has ended.")
@click.option("--wait", is_flag=True, help="Where it does not fit, wait for its turn.")
@click.option(
    "--restart", default="no", show_default=True, metavar="POLICY", help="on-failure[:N], always, unless-stopped."
)
@click.option("-e", "--env", multiple=True, metavar="NAME[=VALUE]")
@click.option("--env-file", "env_files", multiple=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("-v", "--volume", "volumes", multiple=True, metavar="HERE:THERE[:ro]")
@click.option("-p", "--publish", multiple=True, metavar="[IP:]HOST:CONTAINER[/udp]")
@click.option("-w", "--workdir", default="", metavar="FOLDER")
@click.option("-u", "--user", default="", metavar="UID[:GID]")
@click.option("--entrypoint", metavar="PROGRAM", help="Instead of the image's.")
@click.option("--hostname", default="", metavar="NAME")
@click.option("-l", "--label", "labels", multiple=True, metavar="NAME=VALUE")
@click.option("--cpus", metavar="NUMBER", help="At most so many processors, as 1.5.")
@click.option("--ram", metavar="QUANTITY", help="At most so much main memory, as 2Gi.")
@click.option("--privileged", is_flag=True, help="As good as root on this machine.")
@click.option(
    "--pull",
    type=click.Choice(["missing", "always", "never"]),
    help="[default: missing; of --file, as it says]",
)
@click.option("--network", type=click.Choice(["bridge", "host"]), default="bridge", show_default=True)
@click.option(
    "--stop-timeout",
    type=click.IntRange(0, 3600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="Until a stop kills.",
)
@click.option("-f", "--file", type=click.Path(allow_dash=True), help="A pod in YAML instead of an image; - is stdin.")
@click.option("--dry-run", is_flag=True, help="Print the pod instead of running it.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="Of --dry-run.")
@click.pass_context
def command(context: click.Context, /, **said: Any) -> int:  # noqa: ANN401  (click's)
    """Run IMAGE with a share of this machine's cards, or without one.

    MILLI are thousandths of a card's time. In the foreground its exit code is the container's, and 125 where it was
    not run. What it asks for in words is an ordinary pod: --dry-run prints it, and Kubernetes runs it unchanged.
    """
    try:
        question = _of_flags(said) if said["file"] is None else _of_file(said, given=_given(context))
        if said["dry_run"]:
            _print(question, said["output"])
            return 0
        return _run(context.obj, question, detach=said["detach"])
    except OptionWrong as wrong:
        raise click.UsageError(str(wrong)) from None
    except BrokenPipeError:
        raise
    except (PartageError, OSError) as error:
        raise NotRun(str(error)) from None


def _given(context: click.Context) -> frozenset[str]:
    """What was said, and is no default."""
    source = click.core.ParameterSource.COMMANDLINE
    return frozenset(name for name in context.params if context.get_parameter_source(name) is source)


def _of_flags(said: Mapping[str, Any]) -> Run:
    if not said["image"]:
        raise OptionWrong("Missing argument 'IMAGE', or --file for a pod in YAML.")
    if said["tty"] and said["interactive"] and not (said["detach"] or said["dry_run"] or sys.stdin.isatty()):
        raise OptionWrong("--tty: the input is no terminal; leave it out, or say --detach")
    restart, most_restarts = _restart(said)
    arguments: Sequence[str] = said["arguments"]
    named: dict[str, Any] = {name: said[name] for name in Options.__struct_fields__ if name in said}
    named |= {
        "arguments": arguments[1:] if arguments[:1] == ("--",) else arguments,
        "restart": restart,
        "env_lines": [line for path in said["env_files"] for line in env_lines(_env_file(path))],
        "environment": os.environ,
        "folder": os.getcwd(),  # noqa: PTH109  (a path of its user's, which may go through links)
    }
    if said["dry_run"] and not said["name"]:
        named["name"] = named_after_image(said["image"])
    return Run(pod=pod_of(Options(**named)), restart=restart, most_restarts=most_restarts, **_how(said))


def _of_file(said: Mapping[str, Any], given: frozenset[str]) -> Run:
    """What the document says, but for what is said beside it."""
    from partage_cli.machine.pods.document import read_pod, restart_in  # noqa: PLC0415  YAML is for documents

    if given - _ALSO_WITH_FILE:
        other = ", ".join(sorted(given - _ALSO_WITH_FILE))
        raise OptionWrong(f"--file: the document says all of the pod; {other} belongs into it")
    pod, notes = read_pod(_document(said["file"]))
    for note in notes:
        say(note)
    restart, most_restarts = _restart(said) if "restart" in given else (restart_in(pod), 0)
    metadata = msgspec.structs.replace(pod.metadata, name=said["name"] or pod.metadata.name)
    pod = msgspec.structs.replace(pod, metadata=metadata)
    return Run(pod=pod, restart=restart, most_restarts=most_restarts, **_how(said))


def _how(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"wait": said["wait"], "remove": said["remove"], "pull": said["pull"]}


def _restart(said: Mapping[str, Any]) -> tuple[Restart, int]:
    restart = restart_of(said["restart"])
    if said["remove"] and restart[0] != "no":
        raise OptionWrong("--rm: excludes --restart, which starts again what has ended")
    return restart


def _run(root: Path, question: Run, *, detach: bool) -> int:
    with Signals() as signals:
        with manager(root) as talk:
            # In front it is removed once all that it wrote was shown.
            asked = msgspec.structs.replace(question, remove=question.remove and detach)
            with ProgressLine() as progress:
                pod = talk.told(asked, DoneRun, progress=progress.tell).pod
            signals.kept = not detach
        if detach:
            click.echo(pod.name)
            return 0
        code = _in_front(root, pod, signals, question.pod)
    if question.remove:
        _remove(root, pod)
    return code


def _in_front(root: Path, pod: PodStatus, signals: Signals, asked: Pod) -> int:
    if not any(each.stdin for each in asked.spec.containers):
        return Foreground(root, pod, signals).run()
    from partage_cli.machine.commands.terminal import in_front  # noqa: PLC0415  streams take as long as all the rest

    return in_front(root, pod, signals, asked.spec.containers)


def _remove(root: Path, pod: PodStatus) -> None:
    with conversation(root) as (talk, _):
        try:
            talk.told(Rm(name=pod.uid, force=True), Done)
        except Denied as denied:
            if denied.code != "unknown-name":
                raise


def _print(question: Run, output: Literal["yaml", "json"]) -> None:
    from partage_cli.machine.pods.document import json_of, yaml_of  # noqa: PLC0415  YAML is for documents

    if question.restart == "unless-stopped" or question.most_restarts:
        say("note: a pod can't say this restart policy in full; say it to `partage run -f` again")
    click.echo(yaml_of(question.pod) if output == "yaml" else json_of(question.pod), nl=False)


def _document(name: str) -> bytes:
    """One byte more than is read of a document, so that a longer one is refused."""
    if name == "-":
        return sys.stdin.buffer.read(MAX_ANNOTATION_BYTES + 1)
    with Path(name).open("rb") as file:
        return file.read(MAX_ANNOTATION_BYTES + 1)


def _env_file(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MOST_ENV_BYTES + 1)
    if len(data) > _MOST_ENV_BYTES:
        raise OptionWrong(f"--env-file {path}: is longer than {_MOST_ENV_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise OptionWrong(f"--env-file {path}: is no text in UTF-8") from None
