"""The page over a real socket: access, views, and live updates."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from partage_ui.connections import MOST_KNOWN
from partage_ui.reviews import MOST_LOGINS, MOST_NAMESPACES
from partage_ui.site import HEADERS, MOST_BODY_BYTES, Site
from partage_ui.viewers import MOST_STREAMS_OF_ONE
from rig.identity.certificates import Authority
from support import broker
from support.fake_api import Hang, Refuse
from support.kube import serving_context, until
from support.ui_stage import LEASES, PODS, SENTENCE, UiApi, a_card, a_grant, held, serving, told_of

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
async def cluster() -> AsyncIterator[UiApi]:
    async with UiApi() as api:
        card = a_card(0)
        api.people.add("of-ada", "ada", "*")
        api.people.add("of-bob", "bob", "team-b")
        api.add_node("n1", card)
        grant = a_grant(card)
        api.add_running("team-b", "serve-0", "n1", grant)
        api.tells["n1"] = told_of((card,), broker.container(broker.pod("serve-0", "team-b"), held(grant)))
        api.add_waiting("team-a", "train-0")
        yield api


class Browser:
    def __init__(self, session: aiohttp.ClientSession, site: Site) -> None:
        self.session, self.base = session, f"http://127.0.0.1:{site.port}"

    async def enters(self, token: str, **headers: str) -> aiohttp.ClientResponse:
        async with self.session.post(
            f"{self.base}/login", data={"token": token}, headers=headers, allow_redirects=False
        ) as answer:
            await answer.read()
            return answer

    async def reads(self, path: str) -> tuple[int, str]:
        async with self.session.get(self.base + path, allow_redirects=False) as answer:
            return answer.status, await answer.text()

    async def follows(self, path: str) -> AsyncGenerator[str]:
        """Yields each view that is sent."""
        async with self.session.get(f"{self.base}/live/{path}") as answer:
            assert answer.status == 200
            event = ""
            async for line in answer.content:
                text = line.decode().rstrip("\n")
                event += text
                if not text:
                    yield event
                    event = ""


@asynccontextmanager
async def browsing(site: Site) -> AsyncGenerator[Browser]:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield Browser(session, site)


async def known(site: Site) -> None:
    """Waits until everything has been read once."""
    await until(lambda: not site.board.facts.troubles and site.board.facts.told)


async def test_a_token_that_the_api_server_knows_opens_the_page(cluster: UiApi) -> None:
    async with serving(cluster) as site, browsing(site) as browser:
        assert await browser.reads("/waiting") == (303, "")
        answer = await browser.enters("of-ada")
        cookie = answer.headers["Set-Cookie"]
        assert (answer.status, answer.headers["Location"]) == (303, "/waiting")
        assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=3600"} <= set(cookie.split("; "))
        assert "of-ada" not in cookie
        await known(site)
        status, said = await browser.reads("/waiting")
        assert (status, SENTENCE in said) == (200, True)
        assert cluster.count("POST", TOKENS) == 1  # checked once


async def test_by_tls_the_cookie_is_for_tls_alone_and_who_speaks_without_keeps_nobody_out(
    cluster: UiApi, tmp_path: Path
) -> None:
    authority = Authority("people")
    trusted = ssl.create_default_context(cadata=authority.certificate.decode())
    async with serving(cluster, reads=False, tls=serving_context(authority, tmp_path)) as site:
        silent = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(3)]
        silent[0][1].write(b"GET / HTTP/1.1\r\n\r\n")
        jar = aiohttp.CookieJar(unsafe=True)
        connector = aiohttp.TCPConnector(ssl=trusted)
        async with aiohttp.ClientSession(cookie_jar=jar, connector=connector) as session:
            address = f"https://localhost:{site.port}"
            async with session.post(f"{address}/login", data={"token": "of-ada"}, allow_redirects=False) as answer:
                assert answer.headers["Set-Cookie"].startswith("__Host-partage=")
                assert "; Secure" in answer.headers["Set-Cookie"]
            async with session.get(f"{address}/cards") as answer:
                assert answer.status == 200
        for _, writer in silent:
            writer.close()


async def test_a_token_that_is_nobodys_opens_nothing_and_the_form_says_why(cluster: UiApi) -> None:
    async with serving(cluster, reads=False) as site, browsing(site) as browser:
        assert (await browser.enters("of-nobody")).status == 401
        assert (await browser.enters("")).status == 400
        assert (await browser.enters("x" * (MOST_BODY_BYTES + 1))).status == 400
        assert (await browser.reads("/cards"))[0] == 303
        assert (await browser.reads("/live/cards"))[0] == 401
        cluster.expect(Refuse(500), method="POST", under=TOKENS)
        assert (await browser.enters("of-ada")).status == 502


async def test_a_form_of_another_site_is_not_taken(cluster: UiApi) -> None:
    async with serving(cluster, reads=False) as site, browsing(site) as browser:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await browser.enters("of-ada", **headers)).status == 403
        assert (await browser.enters("of-ada", Origin=browser.base)).status == 303


async def test_too_many_who_sign_in_at_once_are_turned_away_and_the_api_server_is_not_flooded(cluster: UiApi) -> None:
    async with serving(cluster, reads=False) as site, browsing(site) as browser:
        cluster.expect(Hang(), method="POST", under=TOKENS, times=MOST_LOGINS)
        hanging = [asyncio.create_task(browser.enters("of-ada")) for _ in range(MOST_LOGINS)]
        await until(lambda: cluster.count("POST", TOKENS) == MOST_LOGINS)
        assert (await browser.enters("of-bob")).status == 503
        assert cluster.count("POST", TOKENS) == MOST_LOGINS
        cluster.release()
        assert {answer.status for answer in await asyncio.gather(*hanging)} == {303}


async def test_every_answer_forbids_frames_scripts_of_others_and_keeping(cluster: UiApi) -> None:
    async with serving(cluster, reads=False) as site, browsing(site) as browser:
        await browser.enters("of-ada")
        for path in ("/", "/login", "/waiting", "/live/waiting", "/static/page.js", "/nowhere"):
            async with browser.session.get(browser.base + path, allow_redirects=False) as answer:
                assert HEADERS.items() <= dict(answer.headers).items(), path
                assert path.startswith("/static") or answer.headers["Cache-Control"] == "no-store"
        _, page = await browser.reads("/waiting")
        assert " style=" not in page
        assert " on" not in page.replace(" on partage", "").partition("<main")[0].replace(" only", "")
        assert "'unsafe" not in HEADERS["Content-Security-Policy"]


async def test_a_namespace_shows_after_a_review_alone_which_is_remembered(cluster: UiApi) -> None:
    async with serving(cluster) as site, browsing(site) as browser:
        await known(site)
        await browser.enters("of-bob")
        for _ in range(3):
            _, said = await browser.reads("/waiting")
            assert "team-a" not in said
            assert "No pod waits" in said
        _, said = await browser.reads("/workloads")
        assert "serve-0" in said
        assert cluster.count("POST", REVIEWS) == 4  # all pods, nodes, and two namespaces


async def test_what_cannot_be_asked_is_not_shown(cluster: UiApi) -> None:
    async with serving(cluster) as site, browsing(site) as browser:
        await known(site)
        await browser.enters("of-ada")
        cluster.expect(Refuse(500), method="POST", under=REVIEWS)
        _, said = await browser.reads("/workloads")
        assert "What you may see could not be asked, so nothing is shown" in said
        assert "serve-0" not in said
        assert "serve-0" in (await browser.reads("/workloads"))[1]


async def test_among_very_many_namespaces_the_one_that_is_named_is_asked_about(cluster: UiApi) -> None:
    for number in range(MOST_NAMESPACES):
        cluster.add_waiting(f"other-{number:03}", "p")
    async with serving(cluster) as site, browsing(site) as browser:
        await known(site)
        await browser.enters("of-bob")
        _, said = await browser.reads("/workloads")
        assert "name yours" in said
        assert "serve-0" not in said
        assert "serve-0" in (await browser.reads("/workloads?namespace=team-b"))[1]
        assert cluster.count("POST", REVIEWS) == 3


async def test_a_change_is_sent_to_who_looks_and_nobody_asks_the_scheduler(cluster: UiApi) -> None:
    async with serving(cluster) as site, browsing(site) as browser:
        await known(site)
        await browser.enters("of-ada")
        async with aclosing(browser.follows("waiting")) as events:
            assert SENTENCE in await anext(events)
            cluster.add_waiting("team-a", "late", why="1 card is lost")
            async for event in events:
                if "1 card is lost" in event:
                    break
        await until(lambda: site.viewers.streams == 0)
    allowed = ("/api/v1/pods", "/api/v1/nodes", LEASES, PODS.format("partage-system"), REVIEWS, TOKENS)
    assert all(asked.path.startswith(allowed) for asked in cluster.asked)
    assert all(asked.method == "GET" or asked.path in {REVIEWS, TOKENS} for asked in cluster.asked)


async def test_streams_of_one_viewer_are_bounded_and_end_with_the_session(cluster: UiApi) -> None:
    async with serving(cluster, reads=False) as site, browsing(site) as browser:
        await browser.enters("of-ada")
        streams = [browser.follows("cards") for _ in range(MOST_STREAMS_OF_ONE)]
        for each in streams:
            await anext(each)
        assert (await browser.reads("/live/cards"))[0] == 503
        async with browser.session.post(f"{browser.base}/logout", allow_redirects=False) as answer:
            assert answer.status == 303
        site.board.put(site.board.facts)
        for each in streams:
            assert "event: end" in [event async for event in each][-1]
            await each.aclose()
        await until(lambda: site.viewers.streams == 0)
        assert (await browser.reads("/cards"))[0] == 303


async def test_a_stop_ends_streams(cluster: UiApi) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with serving(cluster, reads=False) as site:
            browser = Browser(session, site)
            await browser.enters("of-ada")
            events = browser.follows("cards")
            await anext(events)
        with contextlib.suppress(aiohttp.ClientError):
            async for _ in events:
                pass


async def test_connections_that_say_nothing_keep_no_viewer_out(cluster: UiApi) -> None:
    async with serving(cluster, reads=False) as site, browsing(site) as browser:
        silent = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(100)]
        assert (await browser.enters("of-ada")).status == 303
        assert (await browser.reads("/cards"))[0] == 200
        for _, writer in silent:
            writer.close()
        assert len(silent) < MOST_KNOWN


async def test_an_api_server_that_is_away_is_said_on_every_view_and_what_was_known_stays(cluster: UiApi) -> None:
    async with serving(cluster) as site, browsing(site) as browser:
        await known(site)
        await browser.enters("of-ada")
        await browser.reads("/waiting")
        await cluster.stop()
        await until(lambda: site.board.facts.troubles)
        _, said = await browser.reads("/waiting")
        assert "not known for sure" in said
        assert SENTENCE in said
        await cluster.start()
        await known(site)


async def test_what_is_asked_wrongly_is_answered_in_a_line(cluster: UiApi) -> None:
    async with serving(cluster, reads=False) as site, browsing(site) as browser:
        await browser.enters("of-ada")
        assert await browser.reads("/nowhere") == (
            404,
            "there are /waiting, /workloads, /cards, /idle, /namespaces, /health\n",
        )
        async with browser.session.delete(f"{browser.base}/waiting") as answer:
            assert answer.status == 405
        assert (await browser.reads("/static/../site.py"))[0] in {303, 404}
