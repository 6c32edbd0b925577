"""A leader publishes on its Lease what its decisions depend on; the annotation of anyone else is ignored."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from partage_base.kube import ApiServer, Lease, LeaseSpec, Meta
from partage_plugins.api.keys import SCHEDULER
from partage_scheduler.api.election import Elector
from partage_scheduler.core import plugins
from partage_scheduler.published import MOST_BYTES, of_lease, plugin_variables, published
from support.fake_api import FakeApi
from support.scheduler_stage import LEASES, OURS, settings_below

PATH = f"{LEASES}/partage-scheduler"


async def led(server: ApiServer, identity: str, annotations: dict[str, str]) -> Elector:
    """An elector that became the leader and renews no more."""
    elector = Elector(server, namespace=OURS, name="partage-scheduler", identity=identity, annotations=annotations)
    run = asyncio.create_task(elector.run())
    await elector.gained()
    run.cancel()
    await asyncio.wait([run])
    return elector


async def test_what_decisions_depend_on_stands_on_the_lease_of_the_leader(
    api: FakeApi, server: ApiServer, tmp_path: Path
) -> None:
    registry = plugins()
    settings = settings_below(tmp_path, scheduler_name="partage-scheduler", claims=True, silent_after_s=50.0)
    environment = {"PARTAGE_NVIDIA_GPU": "hami", "PARTAGE_SCHEDULER_CLAIMS": "true", "HOME": "/root"}
    await led(server, "one", published(settings, registry, environment, "one"))
    said = of_lease(await server.get(PATH, Lease))
    assert said is not None
    assert (said.claims, said.silent_after_s, said.extends) == (True, 50.0, False)
    assert said.variables == {"PARTAGE_NVIDIA_GPU": "hami"}
    assert said.plugins == tuple(registry.names)


async def test_what_a_former_leader_said_is_not_believed(api: FakeApi, server: ApiServer, tmp_path: Path) -> None:
    one = await led(server, "one", published(settings_below(tmp_path), plugins(), {}, "one"))
    await one.release()
    lease = await server.get(PATH, Lease)
    assert of_lease(lease) is None
    await led(server, "two", {})  # of a version that publishes nothing
    lease = await server.get(PATH, Lease)
    assert SCHEDULER in lease.metadata.annotations
    assert of_lease(lease) is None


def test_nothing_but_variables_of_plugins_is_said_or_taken_over(tmp_path: Path) -> None:
    environment = {
        "PATH": "/evil",
        "LD_PRELOAD": "/evil.so",
        "PARTAGE_GPU_POLICY": "spread",
        "PARTAGE_FPGA": "a\0b",
        "PARTAGE_NODE_NAME": "n1",
        "PARTAGE_PLUGINS_TRACE": "1",
        "PARTAGE_EXTENDER_SERVICE_HOST": "10.0.0.1",
    }
    assert plugin_variables(environment) == {"PARTAGE_GPU_POLICY": "spread"}
    text = published(settings_below(tmp_path), plugins(), {}, "one")[SCHEDULER]
    forged = text.replace('"variables":{}', '"variables":{"LD_PRELOAD":"/evil.so","PARTAGE_GPU_POLICY":"spread"}')
    said = of_lease(a_lease("partage-scheduler", "one", forged))
    assert said is not None
    assert said.variables == {"PARTAGE_GPU_POLICY": "spread"}


def a_lease(name: str, holder: str, text: str) -> Lease:
    return Lease(metadata=Meta(name=name, annotations={SCHEDULER: text}), spec=LeaseSpec(holder_identity=holder))


def test_a_node_that_poses_as_a_scheduler_is_not_believed() -> None:
    """A node's account may write only the Lease of the node's name, with that name as its holder."""
    assert of_lease(a_lease("n1", "n1", '{"by":"n1","scheduler_name":"n1"}')) is None
    assert of_lease(a_lease("n1", "n1", '{"by":"n1","scheduler_name":"partage-scheduler"}')) is None
    assert of_lease(a_lease("cards", "one", '{"by":"one","scheduler_name":"cards"}')) is not None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"by":1}', '{"v":1}', "[" * 2000])
def test_what_is_no_such_document_is_nothing(text: str) -> None:
    assert of_lease(a_lease("partage-scheduler", "one", text)) is None


def test_what_is_too_large_for_a_lease_is_not_said(tmp_path: Path) -> None:
    environment = {"PARTAGE_GPU_EXCLUSION_NAMESPACES": "x" * MOST_BYTES}
    assert published(settings_below(tmp_path), plugins(), environment, "one") == {}
