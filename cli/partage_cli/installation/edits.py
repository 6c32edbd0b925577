"""Where kubelet's runtime endpoint is set on this node, and the new content of those files. Pure.

There are three places, in kubelet's order of precedence: a flag, which is in an environment file of its service and
overrides the rest; a drop-in of its ``--config-dir``; its configuration file. The place that is in force now is the one
that is changed. From 1.34 on kubeadm keeps a node's own endpoint in a second file, and regenerates the first one from
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import msgspec

from partage_cli.doctor.endpoint import FIELD, FLAG, Say, Setup
from partage_cli.doctor.units import Word, last_use, split_leniently
from partage_cli.doctor.variables import environment_file
from partage_cli.installation.errors import UnfitNode

How = Literal["flag", "field", "dropin"]
DROPIN: Final = "zz-partage.conf"
INSTANCE_CONFIG: Final = "instance-config.yaml"
_VARIABLE: Final = "KUBELET_EXTRA_ARGS"
_HEAD: Final = "# Written by `partage node switch-on`; `partage node switch-off` removes it.\n"
_LINE: Final = re.compile(rf"^{FIELD}[ \t]*:.*$", re.MULTILINE)
_GIVEN: Final = re.compile(rf"(?P<flag>--{FLAG}(?:=|[ \t]+))(?P<value>[^\s\"']+)")
_ASSIGNED: Final = re.compile(rf"^(?P<name>[ \t]*{_VARIABLE}[ \t]*=[ \t]*)(?P<value>.*)$", re.MULTILINE)


class Spot(NamedTuple):
    """A file to change, and how."""

    path: str
    how: How


@dataclass(frozen=True)
class KubeletFiles:
    """The files that configure this kubelet."""

    config: str
    config_exists: bool
    config_dir: str = ""
    """Empty if it has none."""
    drop_ins: tuple[str, ...] = ()
    """File names in that folder."""
    instance_config: str = ""
    """kubeadm's second file, if it exists."""
    extra_args: str = ""
    """The environment file for additional flags, if kubelet's service reads one."""


def in_force(setup: Setup) -> Say:
    """Raises `UnfitNode` if a file that may have the endpoint can't be read."""
    if setup.in_force is None:
        raise UnfitNode(f"cannot read {', '.join(setup.unseen)}, so it is not known which runtime kubelet is given")
    return setup.in_force


def spots(setup: Setup, files: KubeletFiles) -> tuple[Spot, ...]:
    """The files to change for another endpoint of the next kubelet; raises `UnfitNode`."""
    says = in_force(setup)
    if says.by_flag:
        return (_of_flag(says),)
    if files.config_dir:
        if later := [name for name in files.drop_ins if name > DROPIN]:
            raise UnfitNode(f"{files.config_dir}/{later[0]} beats a drop-in named {DROPIN}; rename it")
        return (Spot(f"{files.config_dir}/{DROPIN}", "dropin"),)
    if files.config_exists:
        instance = (Spot(files.instance_config, "field"),) if files.instance_config else ()
        return (Spot(files.config, "field"), *instance)
    if files.extra_args:
        return (Spot(files.extra_args, "flag"),)
    raise UnfitNode(f"kubelet has no configuration file and its service reads no {_VARIABLE}; start it with --config")


def _of_flag(says: Say) -> Spot:
    if not says.where.startswith("/") or says.where.endswith((".service", ".conf")):
        raise UnfitNode(
            f"{says.where} has --{FLAG} baked in, and a flag beats every file; take it out there and set {FIELD} in "
            "kubelet's configuration, or share cards on this node by DRA or NRI"
        )
    return Spot(says.where, "flag")


def changed(spot: Spot, text: str | None, endpoint: str) -> str:
    """The file's new text; `text` is None if it does not exist. Raises `UnfitNode` if it can't be edited safely."""
    match spot.how:
        case "dropin":
            return (
                f"{_HEAD}apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{FIELD}: {endpoint}\n"
            )
        case "field":
            return _checked_field(spot.path, text or "", endpoint)
        case "flag":
            return _checked_flag(spot.path, text or "", endpoint)


def said(spot: Spot, text: str) -> str | None:
    """The endpoint in a file; None if it has none, or can't be parsed."""
    if spot.how == "flag":
        use = _flag_of(text)
        return None if use is None else use.text
    value = (_fields(text) or {}).get(FIELD)
    return value if isinstance(value, str) else None


def restored(spot: Spot, text: str, endpoint: str | None) -> str:
    """A file that others changed after us, with its former endpoint; None: it had none."""
    if endpoint is not None:
        return changed(spot, text, endpoint)
    if spot.how == "field":
        fields = _fields(text)
        if fields is None or FIELD not in fields:
            return text
        if text.lstrip().startswith("{"):
            return _as_json({name: value for name, value in fields.items() if name != FIELD})
        return re.sub(_LINE.pattern + r"\n?", "", text, flags=re.MULTILINE)
    return re.sub(rf"[ \t]*{_GIVEN.pattern}", "", text)


def _checked_field(path: str, text: str, endpoint: str) -> str:
    before = _fields(text)
    if before is None:
        raise UnfitNode(f"{path} is no configuration that is understood here; set {FIELD}: {endpoint} in it by hand")
    if text.lstrip().startswith("{"):
        after = _as_json({**before, FIELD: endpoint})
    else:
        line = f"{FIELD}: {endpoint}"
        after = _LINE.sub(line, text) if _LINE.search(text) else f"{text.rstrip()}\n{line}\n".lstrip("\n")
    if _fields(after) != {**before, FIELD: endpoint}:
        raise UnfitNode(f"{path} is not written as kubeadm writes it; set {FIELD}: {endpoint} in it by hand")
    return after


def _checked_flag(path: str, text: str, endpoint: str) -> str:
    if _GIVEN.search(text):
        after = _GIVEN.sub(lambda match: f"{match['flag']}{endpoint}", text)
    elif _ASSIGNED.search(text):
        after = _ASSIGNED.sub(lambda match: match["name"] + _longer(match["value"].rstrip(), endpoint), text)
    else:
        after = f"{text.rstrip()}\n{_VARIABLE}=--{FLAG}={endpoint}\n".lstrip("\n")
    use = _flag_of(after)
    if use is None or use.text != endpoint:
        raise UnfitNode(f"{path} is not understood; set --{FLAG}={endpoint} in it by hand")
    return after


def _longer(value: str, endpoint: str) -> str:
    """A variable's value with the flag appended."""
    flag = f"--{FLAG}={endpoint}"
    quote = value[:1] if len(value) > 1 and value[0] == value[-1] and value[0] in {'"', "'"} else ""
    inside = value[1:-1] if quote else value
    if not inside:
        return f"{quote}{flag}{quote}"
    quote = quote or '"'
    return f"{quote}{inside} {flag}{quote}"


def _flag_of(text: str) -> Word | None:
    """The flag's last use, in any variable."""
    found: Word | None = None
    for name, value in environment_file(text).items():
        found = last_use([Word(each, name) for each in split_leniently(value)], FLAG) or found
    return found


def _fields(text: str) -> Mapping[str, object] | None:
    """The fields of a configuration in YAML or JSON; None if it is invalid."""
    try:
        return msgspec.yaml.decode(text, type=dict[str, object]) if text.strip() else {}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _as_json(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, indent=1) + "\n"  # its escapes are valid in YAML, too
