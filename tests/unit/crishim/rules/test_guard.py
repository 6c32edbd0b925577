"""A container reaches only cards that it was granted or that kubelet gave it; where that is unknown, none."""

from __future__ import annotations

import base64
import shutil
from dataclasses import replace
from typing import Any

import pytest

from partage_base.cri import CriError, PeerAway, PeerRefused, RuntimeConfig
from partage_crishim.rules.guard import GuardPolicy
from support import wire
from unit.cri import gogo
from unit.crishim.rules.allocations import CARD, OTHER_CARD, allocation, card, grant, inventory, signed
from unit.crishim.rules.requests import UID, Create, Seen
from unit.crishim.rules.stage import Crishim, Stage, enforced

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
MOUNTED = "/var/run/nvidia-container-devices"
PLAIN = Create()
ME = ("default", "trainer", "main")


def asking(*values: str | bytes, **changes: Any) -> Create:
    return replace(PLAIN, env=[("A", "1"), *((VISIBLE, value) for value in values), ("B", "2")], **changes)


def guarded(crishim: Crishim, create: Create) -> Seen:
    return Seen(crishim.held_back(create).message)


class TestWithoutAGrant:
    @pytest.mark.parametrize(
        "value",
        [
            *("all", "0", "0,1", CARD, f"{CARD},{OTHER_CARD}", "nvidia.com/gpu=all", "none,all"),
            *("GPU-5a1e3c8e", "0:0", " all ", MOUNTED, b"\xff"),
        ],
    )
    def test_every_way_of_naming_cards_becomes_void(self, value: str | bytes, crishim: Crishim) -> None:
        seen = guarded(crishim, asking(value))
        assert seen.env == [(b"A", b"1"), (VISIBLE.encode(), b"void"), (b"B", b"2")]

    def test_with_every_duplicate(self, crishim: Crishim) -> None:
        for values in (("all", "void"), ("void", "all"), ("none", "all", "0")):
            assert guarded(crishim, asking(*values)).variable(VISIBLE) == b"void"

    @pytest.mark.parametrize("value", ["void", "none", ""])
    def test_who_asks_for_nothing_is_left_alone(self, value: str, stage: Stage, crishim: Crishim) -> None:
        crishim.passes(asking(value))
        crishim.passes(asking(value, container="other"))
        assert stage.resources.asked == 0

    def test_variables_that_open_configuration_are_emptied(self, crishim: Crishim) -> None:
        for name in ("NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES"):
            seen = guarded(crishim, replace(PLAIN, env=[(name, "all"), (name, "0")]))
            assert seen.variable(name) == b""

    @pytest.mark.parametrize(
        "path",
        [
            f"{MOUNTED}/all",
            f"{MOUNTED}/{CARD}",
            f"{MOUNTED}//x/../all",
            f"{MOUNTED}/cdi/v/all",
            f"{MOUNTED}all",  # NVIDIA's runtime compares prefixes, not path components
            f"{MOUNTED}cdi/nvidia.com/gpu/all",
            f"{MOUNTED}/{'./' * 2100}all",
        ],
    )
    def test_mounts_that_stand_for_cards_are_left_out(self, path: str, crishim: Crishim) -> None:
        create = asking(MOUNTED, mounts=[("/data", "/d"), (path, "/dev/null")])
        seen = guarded(crishim, create)
        assert seen.mounts == [(b"/data", b"/d")]
        assert seen.variable(VISIBLE) == b"void"

    def test_and_mounts_that_do_not_are_left_in(self, crishim: Crishim) -> None:
        others = (f"{MOUNTED}/imex/0", MOUNTED, "/var/run/nvidia-container/all", f"/x{MOUNTED}/all")
        crishim.passes(replace(PLAIN, mounts=[(path, "/dev/null") for path in others]))

    @pytest.mark.parametrize("prefix", ["nvidia.cdi.k8s.io", "cdi.k8s.io"])
    def test_annotations_of_the_pod_are_refused(self, prefix: str, crishim: Crishim) -> None:
        assert crishim.refusal(replace(PLAIN, annotations={f"{prefix}/mine": "nvidia.com/gpu=all"})) == (
            f"partage: annotation '{prefix}/mine' of the pod asks for cards past every allocation; ask for "
            "partage.dev/ resources instead, or have the namespace trusted"
        )
        crishim.passes(replace(PLAIN, annotations={f"x.{prefix}/mine": "nvidia.com/gpu=all"}))

    @pytest.mark.parametrize(
        "elsewhere",
        [
            {"annotations": {"x": b"\xff"}},
            {"labels": {"x": b"\xff"}},
            {"own_annotations": {"io.kubernetes.container.terminationMessagePath": b"/tmp/\xff"}},
        ],
    )
    def test_text_that_is_not_utf_8_hides_nothing(self, elsewhere: dict[str, Any], crishim: Crishim) -> None:
        """Kubelet up to 1.33 and containerd up to 2.1 do not check it."""
        assert guarded(crishim, asking("all", **elsewhere)).variable(VISIBLE) == b"void"
        crishim.passes(replace(PLAIN, **elsewhere))
        named = replace(PLAIN, annotations={"nvidia.cdi.k8s.io/x": "nvidia.com/gpu=all", "x": b"\xff"})
        assert "asks for cards past every allocation" in crishim.refusal(named)

    def test_a_request_as_older_kubelets_write_it_is_guarded_like_any_other(self, crishim: Crishim) -> None:
        seen, asked = Seen(crishim.held_back(gogo.CREATE).message), Seen(gogo.CREATE)
        assert seen.variable(VISIBLE) == b"void"
        assert (seen.annotations, wire.all_of(seen.raw, 3)) == (asked.annotations, wire.all_of(asked.raw, 3))
        assert b"/tmp/\xff" in seen.annotations.values()

    def test_a_sidecar_of_a_pod_with_an_allocation_is_guarded_like_any_other(self, crishim: Crishim) -> None:
        seen = guarded(crishim, asking("all", container="side", annotations=signed(allocation())))
        assert seen.variable(VISIBLE) == b"void"

    def test_a_container_with_a_grant_of_another_kind_is_guarded_too(self, stage: Stage, crishim: Crishim) -> None:
        stage.write_inventory(inventory(fpga={"boards": ["fpga0"]}))
        fpga = allocation() | {"containers": {"main": {"fpga": [{"board": "fpga0"}]}}}
        seen = guarded(crishim, asking("all", annotations=signed(fpga), mounts=[(f"{MOUNTED}/all", "/dev/null")]))
        assert (seen.variable(VISIBLE), seen.mounts) == (b"void", [])


class TestAGrant:
    """A grant does not change the rule: what plugins do not check is guarded as in any other container."""

    GRANTED = Create(annotations=signed(allocation()))

    @pytest.fixture(autouse=True)
    def _plugin_that_looks_at_nothing(self, stage: Stage) -> None:
        stage.fake.answer = enforced(env={VISIBLE: CARD})

    @pytest.mark.parametrize("path", [f"{MOUNTED}/all", f"{MOUNTED}all", f"{MOUNTED}/{'./' * 2100}all"])
    def test_mounts_that_stand_for_cards_are_left_out(self, path: str, crishim: Crishim) -> None:
        seen = crishim.rewrite(replace(self.GRANTED, mounts=[("/data", "/d"), (path, "/dev/null")]))
        assert (seen.mounts, seen.variable(VISIBLE)) == ([(b"/data", b"/d")], CARD.encode())

    def test_a_card_of_kubelets_that_carries_grants_is_refused(self, crishim: Crishim) -> None:
        refusal = crishim.refusal(replace(self.GRANTED, cdi=[f"nvidia.com/gpu={CARD}"]))
        assert "which carries grants of partage" in refusal

    def test_kubelet_is_not_asked_about_what_plugins_replace(self, stage: Stage, crishim: Crishim) -> None:
        seen = crishim.rewrite(replace(self.GRANTED, env=[(VISIBLE, "all"), (VISIBLE, "0")]))
        assert seen.variable(VISIBLE) == CARD.encode()
        assert stage.resources.asked == 0

    def test_in_a_trusted_namespace_it_is_trusted_as_well(self, stage: Stage) -> None:
        crishim = stage.crishim(guard=GuardPolicy(trusted=frozenset({"default"})))
        seen = crishim.rewrite(replace(self.GRANTED, mounts=[(f"{MOUNTED}/all", "/dev/null")]))
        assert seen.mounts == [(f"{MOUNTED}/all".encode(), b"/dev/null")]


class TestNvidiasRuntime:
    """Images can name all cards without any trace in the request."""

    @pytest.mark.parametrize(
        ("policy", "handler", "added"),
        [
            (GuardPolicy(), "", False),
            (GuardPolicy(), "runc", False),
            (GuardPolicy(), "nvidia", True),
            (GuardPolicy(), "nvidia-cdi", True),
            (GuardPolicy(nvidia_handlers=frozenset({"gpu"})), "gpu", True),
            (GuardPolicy(nvidia_handlers=frozenset()), "nvidia", False),
        ],
    )
    def test_void_is_added_where_it_runs_the_container(
        self,
        policy: GuardPolicy,
        handler: str,
        added: bool,  # noqa: FBT001
        stage: Stage,
    ) -> None:
        stage.runtime.handlers["sandbox-1"] = handler
        crishim = stage.crishim(guard=policy)
        if added:
            assert guarded(crishim, PLAIN).variable(VISIBLE) == b"void"
        else:
            crishim.passes(PLAIN)

    @pytest.mark.parametrize(
        ("default", "program", "handler", "added"),
        [
            ("mine", "/usr/local/bin/nvidia-container-runtime", "", True),
            ("nvidia", "/usr/bin/anything", "", True),
            ("runc", "/usr/local/bin/nvidia-container-runtime", "runc", True),
            ("mine", "/usr/bin/crun", "", False),
        ],
    )
    def test_what_the_runtime_says_of_a_handler_goes_before_its_name(
        self,
        default: str,
        program: str,
        handler: str,
        added: bool,  # noqa: FBT001
        stage: Stage,
    ) -> None:
        stage.runtime.setup = RuntimeConfig(cdi=True, default_handler=default, programs={default: program})
        stage.runtime.handlers["sandbox-1"] = handler
        if added:
            assert guarded(stage.crishim(), PLAIN).variable(VISIBLE) == b"void"
        else:
            stage.crishim().passes(PLAIN)

    @pytest.mark.parametrize("said", [RuntimeConfig(), PeerRefused("crio.sock", 12, "unknown")])
    def test_and_a_runtime_that_does_not_say_whom_it_runs_by_default(
        self, said: RuntimeConfig | PeerRefused, stage: Stage
    ) -> None:
        stage.runtime.setup = said
        assert guarded(stage.crishim(), PLAIN).variable(VISIBLE) == b"void"
        stage.runtime.handlers["sandbox-1"] = "runc"
        stage.crishim().passes(PLAIN)

    def test_and_where_the_runtime_is_away(self, stage: Stage, crishim: Crishim) -> None:
        stage.runtime.away = True
        assert guarded(crishim, PLAIN).variable(VISIBLE) == b"void"

    def test_a_sandbox_is_asked_about_once(self, stage: Stage, crishim: Crishim) -> None:
        crishim.passes(PLAIN)
        stage.runtime.gone.add(PLAIN.sandbox)
        crishim.passes(replace(PLAIN, container="other"))


class TestKubeletGaveIt:
    """Pods served by the device manager are unchanged."""

    @pytest.fixture
    def served(self, stage: Stage) -> Crishim:
        stage.resources.given[ME] = (CARD,)
        return stage.crishim()

    @pytest.mark.parametrize("value", [CARD, "0", f"nvidia.com/gpu={CARD}", f"k8s.device-plugin.nvidia.com/gpu={CARD}"])
    def test_what_it_names_is_kept(self, value: str, served: Crishim) -> None:
        served.passes(asking(value))
        served.passes(asking(value, value))

    def test_all_is_kept_where_all_was_given(self, stage: Stage, served: Crishim) -> None:
        assert guarded(served, asking("all")).variable(VISIBLE) == b"void"
        stage.resources.given[ME] = (CARD, OTHER_CARD)
        served.passes(asking("all"))

    def test_replicas_and_instances_are_their_cards(self, stage: Stage) -> None:
        stage.resources.given[ME] = (f"{CARD}::3", "MIG-41f7d2c0-6a4e-5b0e-9d6f-1c2b3a495867::0")
        stage.crishim().passes(asking(f"{CARD},MIG-41f7d2c0-6a4e-5b0e-9d6f-1c2b3a495867"))

    def test_another_card_is_not_kept(self, served: Crishim) -> None:
        for value in (OTHER_CARD, "1", f"{CARD},{OTHER_CARD}", "0,1"):
            assert guarded(served, asking(value)).variable(VISIBLE) == b"void"

    def test_a_users_own_value_beside_the_device_managers_gives_way_to_it(self, served: Crishim) -> None:
        for values in ((CARD, "all"), ("all", CARD), (CARD, OTHER_CARD, "all")):
            assert guarded(served, asking(*values)).variable(VISIBLE) == CARD.encode()

    def test_cards_by_mounts_are_kept(self, served: Crishim) -> None:
        served.passes(asking(MOUNTED, mounts=[(f"{MOUNTED}/{CARD}", "/dev/null")]))
        both = asking(MOUNTED, mounts=[(f"{MOUNTED}/{CARD}", "/dev/null"), (f"{MOUNTED}/all", "/dev/null")])
        assert guarded(served, both).mounts == [(f"{MOUNTED}/{CARD}".encode(), b"/dev/null")]

    def test_what_only_device_plugins_can_write_is_kept(self, served: Crishim) -> None:
        served.passes(replace(PLAIN, cdi=[f"nvidia.com/gpu={CARD}"]))
        served.passes(replace(PLAIN, own_annotations={"cdi.k8s.io/plugin_1": f"nvidia.com/gpu={CARD}"}))

    def test_another_pods_devices_confirm_nothing(self, stage: Stage) -> None:
        for other in (("other", "trainer", "main"), ("default", "other", "main"), ("default", "trainer", "other")):
            stage.resources.given = {other: (CARD,)}
            assert guarded(stage.crishim(), asking(CARD)).variable(VISIBLE) == b"void"

    def test_an_init_container_which_kubelet_does_not_list_is_found_in_its_own_record(self, stage: Stage) -> None:
        entry = {
            "PodUID": UID,
            "ContainerName": "init",
            "ResourceName": "nvidia.com/gpu",
            "DeviceIDs": {"-1": [CARD]},
            "AllocResp": base64.b64encode(b"x").decode(),
        }
        stage.write_checkpoint({"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": {}}, "Checksum": 1})
        crishim = stage.crishim()
        crishim.passes(asking(CARD, container="init"))
        assert guarded(crishim, asking(CARD, container="init", uid="another")).variable(VISIBLE) == b"void"
        assert guarded(crishim, asking("all", container="init")).variable(VISIBLE) == b"void"
        broken: object
        for broken in ("{", {"Data": None}, {"Data": {"PodDeviceEntries": None}}, []):
            stage.write_checkpoint(broken)
            assert guarded(crishim, asking(CARD, container="init")).variable(VISIBLE) == b"void"

    def test_without_kubelets_word_it_is_void_and_no_refusal(self, stage: Stage, served: Crishim) -> None:
        stage.resources.away = True
        assert guarded(served, asking(CARD)).variable(VISIBLE) == b"void"


class TestACardWithGrants:
    """A card is not used both by a container of kubelet's and by shares."""

    SENTENCE = (
        f"partage: kubelet gave this container card {CARD}, which carries grants of partage; reserve each card for one "
        "of both, and delete the pod to move it"
    )

    @pytest.fixture
    def shared(self, stage: Stage) -> Crishim:
        crishim = stage.crishim()
        crishim.rewrite(Create(uid="u2", annotations=signed(allocation(pod="u2"))))
        stage.resources.given[ME] = (CARD,)
        return crishim

    @pytest.mark.parametrize(
        "create",
        [
            asking(CARD),
            replace(PLAIN, cdi=[f"nvidia.com/gpu={CARD}"]),
            replace(PLAIN, cdi=["nvidia.com/gpu=all"]),
            replace(PLAIN, own_annotations={"cdi.k8s.io/x": f"nvidia.com/gpu={OTHER_CARD},nvidia.com/gpu={CARD}"}),
            replace(PLAIN, devices=[("/dev/nvidia0", "/dev/nvidia0")]),
        ],
        ids=["variable", "cdi", "cdi all", "annotation", "device"],
    )
    def test_is_refused_to_a_native_container(self, create: Create, shared: Crishim) -> None:
        assert shared.refusal(create) == self.SENTENCE

    def test_another_card_is_not(self, stage: Stage, shared: Crishim) -> None:
        stage.resources.given[ME] = (OTHER_CARD,)
        shared.passes(asking(OTHER_CARD))

    def test_after_the_grants_are_gone_it_is_not(self, stage: Stage, shared: Crishim) -> None:
        stage.runtime.listed.clear()
        shared.passes(asking(CARD))

    def test_what_is_known_counts_where_the_runtime_is_away(self, stage: Stage, shared: Crishim) -> None:
        stage.now_s += 3600
        stage.runtime.away = True
        assert shared.refusal(asking(CARD)) == stage.crishim().refusal(asking(CARD)) == self.SENTENCE
        shutil.rmtree(stage.root / "run/partage/crishim")
        stage.crishim().passes(asking(CARD))  # kubelet gave it, and no record says otherwise

    def test_an_instance_and_the_whole_of_it_are_one(self, stage: Stage) -> None:
        stage.write_inventory(inventory(card(CARD, 0), card("MIG-1", 1, parent=CARD, mig="1g.10gb")))
        crishim = stage.crishim()
        crishim.rewrite(Create(uid="u2", annotations=signed(allocation(grant("MIG-1"), pod="u2"))))
        stage.resources.given[ME] = (CARD,)
        assert "card MIG-1, which carries grants" in crishim.refusal(asking(CARD))


class TestWhereItIsOff:
    def all_pass(self, crishim: Crishim, **changes: Any) -> None:
        for create in (asking("all", **changes), replace(PLAIN, annotations={"nvidia.cdi.k8s.io/x": "y"}, **changes)):
            crishim.passes(create)

    def test_on_nodes_without_cards(self, stage: Stage) -> None:
        stage.no_inventory()
        self.all_pass(stage.crishim())
        stage.write_inventory({"v": 1, "kinds": {"fpga": {"boards": ["fpga0"]}}})
        self.all_pass(stage.crishim())
        stage.write_inventory({"v": 1, "kinds": {"gpu": {"driver": "1", "cuda": "1", "cards": []}}})
        self.all_pass(stage.crishim())

    def test_where_it_was_switched_off_and_in_trusted_namespaces(self, stage: Stage) -> None:
        self.all_pass(stage.crishim(guard=GuardPolicy(mode="off")))
        self.all_pass(stage.crishim(guard=GuardPolicy(trusted=frozenset({"monitoring"}))), namespace="monitoring")

    @pytest.mark.parametrize("sign", ["dev/nvidiactl", "run/nvidia/driver/dev/nvidiactl", "proc/driver/nvidia/version"])
    def test_not_where_a_driver_is_there_whatever_the_inventory_says(self, sign: str, stage: Stage) -> None:
        (stage.root / sign).parent.mkdir(parents=True)
        (stage.root / sign).touch()
        stage.write_inventory({"v": 1, "kinds": {}})
        assert guarded(stage.crishim(), asking("all")).variable(VISIBLE) == b"void"
        stage.no_inventory()
        assert guarded(stage.crishim(), asking("all")).variable(VISIBLE) == b"void"

    @pytest.mark.parametrize(
        "setup",
        [
            RuntimeConfig(default_handler="a", programs={"a": "runc", "b": "/usr/bin/nvidia-container-runtime"}),
            RuntimeConfig(default_handler="a", programs={"a": "/opt/nvidia-container-runtime.cdi"}),
            RuntimeConfig(default_handler="a", programs={"a": "runc", "nvidia": "/usr/bin/runc"}),
            RuntimeConfig(default_handler="elsewhere", programs={"a": "runc"}),
            RuntimeConfig(),
            PeerRefused("crio.sock", 12, "unknown"),
            PeerAway("containerd.sock", "is not there"),
        ],
    )
    def test_not_where_the_runtime_may_run_nvidias(self, setup: RuntimeConfig | CriError, stage: Stage) -> None:
        """NVIDIA's driver may be loaded at any time; until that is noticed, cards would be open."""
        stage.no_inventory()
        stage.runtime.setup = setup
        assert guarded(stage.crishim(), asking("all")).variable(VISIBLE) == b"void"

    def test_not_where_it_was_switched_on(self, stage: Stage) -> None:
        stage.no_inventory()
        assert guarded(stage.crishim(guard=GuardPolicy(mode="on")), asking("all")).variable(VISIBLE) == b"void"


def test_a_guard_that_breaks_keeps_the_door_shut_and_lets_the_container_start(
    stage: Stage, crishim: Crishim, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(stage.resources, "served", broken)
    assert guarded(crishim, asking(CARD)).variable(VISIBLE) == b"void"
    assert [told.what for told in stage.told] == ["defect", "guarded"]
