"""Where kubelet's endpoint is set, how the file changes, and that the restore gives the old content."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.doctor.endpoint import Say, Setup
from partage_cli.installation.edits import DROPIN, How, KubeletFiles, Spot, changed, restored, said, spots
from partage_cli.installation.errors import UnfitNode
from unit.installation.made import CONTAINERD, CRISHIM

CONFIG = "/var/lib/kubelet/config.yaml"
INSTANCE = "/var/lib/kubelet/instance-config.yaml"
EXTRA = "/etc/default/kubelet"
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
FILE = Setup((Say(CONFIG, CONTAINERD),))


def test_the_file_that_is_in_force_is_changed_and_kubeadms_own_beside_it() -> None:
    files = KubeletFiles(config=CONFIG, config_exists=True, instance_config=INSTANCE, extra_args=EXTRA)
    assert spots(FILE, files) == (Spot(CONFIG, "field"), Spot(INSTANCE, "field"))


def test_a_drop_in_is_preferred_to_a_file_that_others_write() -> None:
    files = KubeletFiles(config=CONFIG, config_exists=True, config_dir="/etc/d", drop_ins=("40-nodeadm.conf",))
    assert spots(FILE, files) == (Spot(f"/etc/d/{DROPIN}", "dropin"),)


def test_a_flag_beats_every_file_so_it_is_the_flag_that_is_changed() -> None:
    setup = Setup((Say(CONFIG, CONTAINERD), Say(FLAGS, CONTAINERD, by_flag=True)))
    files = KubeletFiles(config=CONFIG, config_exists=True, config_dir="/etc/d")
    assert spots(setup, files) == (Spot(FLAGS, "flag"),)


def test_kubelets_default_without_any_file_is_changed_by_a_flag() -> None:
    assert spots(Setup(), KubeletFiles(config=CONFIG, config_exists=False, extra_args=EXTRA)) == (Spot(EXTRA, "flag"),)


@pytest.mark.parametrize(
    ("setup", "files", "words"),
    [
        (Setup((Say("/lib/systemd/system/kubelet.service", CONTAINERD, by_flag=True),)), {}, "baked in"),
        (Setup((Say("the command line of kubelet, process 7", CONTAINERD, by_flag=True),)), {}, "baked in"),
        (FILE, {"config_dir": "/etc/d", "drop_ins": ("zzz.conf",)}, "rename it"),
        (Setup(), {"config_exists": False}, "start it with --config"),
        (Setup((), unseen=("/x",)), {}, "cannot read /x"),
    ],
)
def test_what_cannot_be_changed_is_refused_in_words(setup: Setup, files: dict[str, object], words: str) -> None:
    known = msgspec.convert({"config": CONFIG, "config_exists": True, **files}, KubeletFiles)
    with pytest.raises(UnfitNode, match=words):
        spots(setup, known)


ENVIRONMENTS = (
    "",
    "KUBELET_EXTRA_ARGS=\n",
    'KUBELET_EXTRA_ARGS=""\n',
    "KUBELET_EXTRA_ARGS=--v=2\n",
    "KUBELET_EXTRA_ARGS='--v=2 --x=y'\n",
    f'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint={CONTAINERD} --pod-infra-container-image=pause:3.10"\n',
    f"A=b\nKUBELET_EXTRA_ARGS=--container-runtime-endpoint {CONTAINERD}\n# end\n",
)
CONFIGS = (
    f"kind: KubeletConfiguration\ncontainerRuntimeEndpoint: {CONTAINERD}\nmaxPods: 5\n",
    f'containerRuntimeEndpoint: "{CONTAINERD}"  # the runtime\nkind: KubeletConfiguration\n',
    "kind: KubeletConfiguration",
    '{"kind": "KubeletConfiguration", "maxPods": 5}',
    f'{{"containerRuntimeEndpoint": "{CONTAINERD}"}}',
)
TEXTS: list[tuple[How, str]] = [*(("flag", each) for each in ENVIRONMENTS), *(("field", each) for each in CONFIGS)]


@pytest.mark.parametrize(("how", "text"), TEXTS)
def test_a_changed_file_names_crishim_and_restored_it_names_what_it_did(how: How, text: str) -> None:
    spot = Spot("/f", how)
    after = changed(spot, text, CRISHIM)
    assert said(spot, after) == CRISHIM
    assert changed(spot, after, CRISHIM) == after
    assert said(spot, restored(spot, after, said(spot, text))) == said(spot, text)


def test_what_others_wrote_since_is_kept_on_the_way_back() -> None:
    spot = Spot(CONFIG, "field")
    later = changed(spot, CONFIGS[0], CRISHIM) + "maxOpenFiles: 7\n"
    assert restored(spot, later, CONTAINERD) == CONFIGS[0] + "maxOpenFiles: 7\n"


@pytest.mark.parametrize(
    "text", ["- a list\n", "a: [\n", "a: b\n---\nc: d\n", "a: b\n...\n", "? {}\n: x\n", 'a: "\n  x"\n  y']
)
def test_a_configuration_that_is_not_understood_is_left_to_people(text: str) -> None:
    with pytest.raises(UnfitNode, match="by hand"):
        changed(Spot(CONFIG, "field"), text, CRISHIM)


FIELDS = st.dictionaries(
    st.text("abcXY:# -", min_size=1, max_size=6),
    st.one_of(st.integers(), st.booleans(), st.text(max_size=8), st.lists(st.text(max_size=4), max_size=3)),
    max_size=5,
)


@given(FIELDS, st.sampled_from((json.dumps, lambda fields: msgspec.yaml.encode(fields).decode())))
def test_no_other_field_changes_whatever_stands_in_the_file(
    fields: dict[str, object], written: Callable[[object], str]
) -> None:
    text = written(fields)
    try:
        after = changed(Spot(CONFIG, "field"), text, CRISHIM)
    except UnfitNode:
        return
    assert msgspec.yaml.decode(after) == {**msgspec.yaml.decode(text), "containerRuntimeEndpoint": CRISHIM}
