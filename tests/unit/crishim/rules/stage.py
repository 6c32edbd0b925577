"""A node in a folder: real admission, files, locks and keys; the test scripts kubelet and containerd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from partage_base.cri import CHECKPOINT, RuntimeConfig
from partage_crishim.admission import AuditEvent
from partage_crishim.decisions import CREATE_CONTAINER, Code, Decision, Ending, InterceptedCall, Pass, Refuse, Rewrite
from partage_crishim.grants import GrantPolicy, default_roots
from partage_crishim.parts import Parts, Policy
from partage_crishim.rules.guard import GuardPolicy
from partage_plugins.api import (
    Adjustment,
    Kind,
    PluginName,
    Promise,
)
from partage_plugins.framework.node import Adjusted
from partage_plugins.host import PluginHost
from support.fake_host import FakeHost
from support.fake_runtime import FakePodResources, FakeRuntime
from unit.crishim.rules.allocations import KEY, NODE, inventory
from unit.crishim.rules.requests import UID, Create, Seen
from unit.keyring.samples import write_public

ENFORCED: Mapping[Kind, tuple[Promise, ...]] = {Kind("gpu"): ("memory", "share", "limit")}
RUNC = RuntimeConfig(
    cdi=True, spec_folders=("/etc/cdi", "/var/run/cdi"), default_handler="runc", programs={"runc": "/usr/bin/runc"}
)


def enforced(**adjustment: Any) -> Adjusted:
    """An adjustment of one plugin that enforces every limit."""
    made = Adjustment(enforces=ENFORCED, **adjustment)
    paths = [f"mounts {each.container_path}" for each in made.mounts]
    paths += [f"devices {each.container_path}" for each in made.devices]
    return Adjusted(adjustment=made, owners={path: (PluginName("gpu"),) for path in paths})


@dataclass(kw_only=True)
class Stage:
    """A node, and the crishims on it."""

    root: Path
    runtime: FakeRuntime = field(default_factory=FakeRuntime)
    resources: FakePodResources = field(default_factory=FakePodResources)
    host: PluginHost = field(default_factory=lambda: FakeHost(enforced()))
    told: list[AuditEvent] = field(default_factory=list[AuditEvent])
    faults: list[Exception] = field(default_factory=list[Exception])
    now_s: float = 1000.0

    def __post_init__(self) -> None:
        self.runtime.setup = RUNC
        self.runtime.pods.add(UID)
        self.write_inventory(inventory())
        write_public(self.root / "etc/partage/keys.d", KEY)

    @property
    def fake(self) -> FakeHost:
        assert isinstance(self.host, FakeHost)
        return self.host

    def write_inventory(self, document: object) -> None:
        path = self.root / "run/partage/inventory.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document))

    def no_inventory(self) -> None:
        (self.root / "run/partage/inventory.json").unlink()

    def write_checkpoint(self, document: object) -> None:
        path = self.root / CHECKPOINT
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))

    def create(self, request: bytes, create: Create, *, exited: bool = False) -> str:
        """Create the container as a runtime would; return its id."""
        id_ = f"c-{create.uid}-{create.container}-{create.attempt}"
        annotations = {key.decode(): value.decode() for key, value in Seen(request).annotations.items()}
        self.runtime.put(
            id_, annotations, pod=create.uid, container=create.container, sandbox=create.sandbox, exited=exited
        )
        every = ("CAP_SYS_ADMIN", "CAP_SYS_PTRACE") if create.privileged else ()
        self.runtime.powers[id_] = ("CAP_KILL", *every, *(f"CAP_{name}" for name in create.capabilities))
        return id_

    def crishim(self, *, guard: GuardPolicy | None = None, **grant_policy: Any) -> Crishim:
        """A crishim on this node; two of them share the node and nothing else."""
        grants = GrantPolicy(roots=default_roots(self.root), **grant_policy)
        return Crishim(self, Policy(guard=guard or GuardPolicy(), grants=grants))


class Crishim(Parts):
    """The admission and the collector of one process."""

    def __init__(self, stage: Stage, policy: Policy) -> None:
        def clock() -> float:
            stage.now_s += 0.001
            return stage.now_s

        self.stage = stage
        super().__init__(
            stage.root,
            NODE,
            policy,
            keys=stage.root / "etc/partage/keys.d",
            runtime=stage.runtime.client,
            resources=stage.resources,
            host=stage.host,
            tell=stage.told.append,
            took=lambda _: None,
            trouble=stage.faults.append,
            clock=clock,
        )

    async def decided(self, create: Create | bytes, method: str = CREATE_CONTAINER) -> Decision:
        message = create if isinstance(create, bytes) else create.bytes()
        return await self.admission(InterceptedCall(method, message))

    def decision(self, create: Create | bytes, method: str = CREATE_CONTAINER) -> Decision:
        return asyncio.run(self.decided(create, method))

    def held_back(self, create: Create | bytes) -> Rewrite:
        """A rewritten request that is not forwarded yet."""
        decision = self.decision(create)
        assert isinstance(decision, Rewrite), decision
        return decision

    def rewrite(self, create: Create) -> Seen:
        """The rewritten request, forwarded and created."""
        decision = self.held_back(create)
        self.stage.create(decision.message, create)
        decision.ended(Ending.DONE)
        return Seen(decision.message)

    def refusal(self, create: Create | bytes) -> str:
        decision = self.decision(create)
        assert isinstance(decision, Refuse), decision
        assert decision.code is Code.FAILED_PRECONDITION
        assert decision.sentence.isprintable()
        assert len(decision.sentence) < 600
        return decision.sentence

    def passes(self, create: Create | bytes) -> None:
        """The request is forwarded unchanged: only other decisions than Pass can carry other bytes."""
        assert isinstance(self.decision(create), Pass)

    def collect(self) -> None:
        asyncio.run(self.collector.once())
