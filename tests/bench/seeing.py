"""What it costs to look at a large cluster: 5,000 nodes of eight cards, and pods with parts of them.

Our scheduler places pods in turns: alone, and seen by a Prometheus's scrapes and by a page that ten browsers follow.
The figure is the scheduler's processor time for each pod, from a turn's first binding on; with and without, there are
45,000 pods on average. In between, at 30,000, pods that wait are created one by one; the figure is the time until every
browser of that view has been sent the change.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from bench.harness import Bench
from bench.scheduling.filling import OURS, fill_nodes, fill_pods
from bench.scheduling.placing import daemon, joined, turn
from bench.scheduling.racing import Race, whole
from partage_base.kube import ApiServer, pods_path
from partage_plugins.api.keys import GPU_MILLI
from partage_ui.views.catalogue import VIEWS
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.resources import SERVICE_ACCOUNTS
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import OUR_NAMESPACE, TEAM, ServiceAccount
from rig.identity.permissions import FOLDER

NODES, PODS, CHANGES = 5_000, 15_000, 20
"""As many pods are there before the first turn as each turn places."""
SMOKE_NODES, SMOKE_PODS, SMOKE_CHANGES = 20, 60, 2
SEEN: Final = (False, True, True, False)
"""By turn."""
BROWSERS: Final = 10
VIEWERS: Final = tuple(ServiceAccount(TEAM, f"viewer-{number}") for number in range(2))
"""Enough of them that none follows more pages than one person may."""
ACCOUNT: Final = ServiceAccount(OUR_NAMESPACE, "partage-ui")
METRICS: Final = "127.0.0.1:19481"
PAGE: Final = "127.0.0.1:19482"
SCRAPED_EVERY_S: Final = 15.0
"""A Prometheus's usual interval is as long or longer."""
SETTLED_S: Final = 5.0
PATIENCE_S: Final = 120.0
MOST_ADDED: Final = 1.05
MOST_CHANGE_S: Final = 2.0
_UNPLACEABLE: Final = str(9 * 1000)
"""Milli of one container: more than a node has."""


class Result(NamedTuple):
    alone: list[Race]
    seen: list[Race]
    scrapes: list[list[float]]
    """Seconds that each took, by turn."""
    changes_s: list[float]


class Browser:
    """Follows one page; knows the last state that it was sent."""

    def __init__(self) -> None:
        self.views = 0
        self.body = ""
        self.news = asyncio.Event()

    async def follow(self, session: aiohttp.ClientSession, view: str) -> None:
        kept = b""
        async with session.get(f"http://{PAGE}/live/{view}", timeout=aiohttp.ClientTimeout(total=None)) as stream:
            stream.raise_for_status()
            async for piece in stream.content.iter_any():
                *events, kept = (kept + piece).split(b"\n\n")
                for event in events:
                    if event.startswith(b"event: view"):
                        self.body, self.views = event.decode(), self.views + 1
                        self.news.set()
        raise AssertionError(f"the page ended its stream of {view}")

    async def until(self, text: str) -> float:
        while text not in self.body:
            self.news.clear()
            await self.news.wait()
        return time.perf_counter()


def prepare(cluster: Cluster) -> None:
    """The page's account as shipped, and people who may look at everything."""
    cluster.kubectl.run("apply", "-f", str(FOLDER / "ui/rbac.yaml"))
    for viewer in VIEWERS:
        cluster.api.create(SERVICE_ACCOUNTS.at(viewer.namespace), {"metadata": {"name": viewer.name}})
        cluster.kubectl.run(
            "create",
            "clusterrolebinding",
            viewer.name,
            "--clusterrole=cluster-admin",
            f"--serviceaccount={viewer.namespace}:{viewer.name}",
        )


@asynccontextmanager
async def page(kubeconfig: Path, root: Path) -> AsyncGenerator[None]:
    command = (sys.executable, "-m", "partage_ui", "--kubeconfig", str(kubeconfig), "--listen", PAGE)
    with (root / "ui.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        yield
    except BaseException:
        sys.stderr.write((root / "ui.log").read_text()[-4000:])
        raise
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def browsers(tokens: Sequence[str]) -> AsyncGenerator[list[Browser]]:
    """Ten of them, spread over all views, which have all been sent one."""
    async with asyncio.TaskGroup() as group:
        found, sessions = list[Browser](), list[aiohttp.ClientSession]()
        tasks = list[asyncio.Task[None]]()
        views = list(VIEWS)
        try:
            for token in tokens:
                sessions.append(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)))
                await _signed_in(sessions[-1], token)
            for number in range(BROWSERS):
                found.append(Browser())
                session = sessions[number % len(sessions)]
                tasks.append(group.create_task(found[-1].follow(session, views[number % len(views)])))
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(each.until("event: view") for each in found))
            yield found
        finally:
            for task in tasks:
                task.cancel()
            for session in sessions:
                await session.close()


async def _signed_in(session: aiohttp.ClientSession, token: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                async with session.post(f"http://{PAGE}/login", data={"token": token}) as answer:
                    if answer.status == 200 and "not known for sure" not in await answer.text():
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.5)


async def scrape(times_s: list[float]) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            began = time.perf_counter()
            try:
                async with session.get(f"http://{METRICS}/metrics") as answer:
                    answer.raise_for_status()
                    await answer.read()
                times_s.append(time.perf_counter() - began)
            except aiohttp.ClientConnectionError:  # between two turns there is no scheduler
                await asyncio.sleep(0.5)
                continue
            await asyncio.sleep(SCRAPED_EVERY_S)


@asynccontextmanager
async def looked_at(
    kubeconfig: Path, root: Path, tokens: Sequence[str]
) -> AsyncGenerator[tuple[list[float], list[Browser]]]:
    times_s = list[float]()
    async with page(kubeconfig, root), browsers(tokens) as following:
        scraping = asyncio.create_task(scrape(times_s))
        before = sum(each.views for each in following)
        try:
            yield times_s, following
        finally:
            scraping.cancel()
        if scraping.done() and not scraping.cancelled():
            scraping.result()
        assert sum(each.views for each in following) > before, "no browser was sent a change"


async def measured(control: ControlPlane, root: Path, nodes: int, pods: int, changes: int) -> Result:
    cluster = Cluster(control)
    await asyncio.to_thread(prepare, cluster)
    looking = cluster.as_account(ACCOUNT).kubectl.kubeconfig
    tokens = [cluster.token(viewer) for viewer in VIEWERS]
    cluster.close()
    access, admin = await asyncio.to_thread(joined, control, root)
    started = partial(daemon, access, root, "--metrics-address", METRICS)
    others = {"etcd": control.etcd.pid, "kube-apiserver": control.apiserver.pid, "this bench": os.getpid()}
    result = Result([], [], [], [])
    async with ApiServer(admin, user_agent="bench", connections=32, deadline_s=60) as server:
        await fill_nodes(server, nodes)
        await fill_pods(server, range(pods))
        await turn(server, started, OURS, pods, others)
        for number, is_seen in enumerate(SEEN, start=1):
            await fill_pods(server, range(number * pods, (number + 1) * pods))
            if is_seen:
                async with looked_at(looking, root, tokens) as (scrapes, _):
                    result.seen.extend(await turn(server, started, OURS, pods, others))
                    result.scrapes.append(scrapes)
            else:
                result.alone.extend(await turn(server, started, OURS, pods, others))
            if not result.changes_s:
                async with looked_at(looking, root, tokens) as (_, following):
                    with started():
                        await asyncio.sleep(SETTLED_S)
                        result.changes_s.extend(
                            [await change_s(server, following, f"waits-{each:03}") for each in range(changes)]
                        )
    return result


async def change_s(server: ApiServer, following: Sequence[Browser], name: str) -> float:
    """Until all browsers of the view of waiting pods show a new one."""
    waiting = following[:: len(VIEWS)]
    pod = a_pod(name, scheduler="partage-scheduler", limits={GPU_MILLI: _UNPLACEABLE})
    await server.create(pods_path(TEAM), pod, dict[str, Any])
    began = time.perf_counter()
    async with asyncio.timeout(PATIENCE_S):
        ended = await asyncio.gather(*(each.until(name) for each in waiting))
    return max(ended) - began


def main() -> int:
    bench = Bench.from_argv("seeing", libraries=["msgspec", "numpy", "aiohttp", "uvloop"])
    nodes, pods, changes = (SMOKE_NODES, SMOKE_PODS, SMOKE_CHANGES) if bench.smoke else (NODES, PODS, CHANGES)
    with control_plane(FOR_BENCHMARKS, say=lambda _line: None) as control, tempfile.TemporaryDirectory() as root:
        result = bench.run(measured(control, Path(root), nodes, pods, changes))
    scrapes = [each for times_s in result.scrapes for each in times_s]
    bench.engaged("the scheduler was scraped in each turn", all(result.scrapes))
    alone, seen = whole(result.alone), whole(result.seen)
    for name, races in (("alone", result.alone), ("seen", result.seen)):
        for number, race in enumerate(races, start=1):
            bench.figure(
                f"turn {number}: {name}, us of the scheduler for each pod", round(race.cpu_us["the scheduler"])
            )
    for name, race in (("alone", alone), ("seen", seen)):
        bench.figure(f"{name}: pods a second", round(race.rate, 1))
    bench.figure("scrapes", len(scrapes))
    bench.figure("a scrape, ms, the longest", round(1e3 * max(scrapes)))
    bench.figure("a change on the page, s, median", round(statistics.median(result.changes_s), 2))
    added = seen.cpu_us["the scheduler"] / alone.cpu_us["the scheduler"]
    bench.bar("the scheduler's processor time for each pod, of alone", added, at_most=MOST_ADDED, unit="times")
    bench.bar("a change is on the page, the longest", max(result.changes_s), at_most=MOST_CHANGE_S, unit="s")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
