"""The page as a real browser renders it, beyond the server's answers."""

from __future__ import annotations

import asyncio

import pytest

from rig.programs import ensure
from support import broker
from support.browser import Tab, browser
from support.ui_stage import SENTENCE, UiApi, a_card, a_grant, held, serving, told_of

pytestmark = [pytest.mark.slow, pytest.mark.extended("starts a browser, which apt installs")]

HOSTILE = "<script>document.title='taken'<b>"


async def signed_in(tab: Tab, port: int) -> None:
    """Signs in as people do: types a token into the form and submits it."""
    await tab.does("Page.enable")
    await tab.opens(f"http://127.0.0.1:{port}/")
    await tab.says(
        "document.getElementById('token').value = 'of-ada'; document.querySelector('main form button').click()"
    )
    await tab.until("location.pathname === '/waiting' && document.readyState === 'complete'")


async def test_a_reason_is_seen_a_name_is_text_and_what_changes_arrives() -> None:
    chromium = (await asyncio.to_thread(ensure, "chromium"))["chromium"]
    async with UiApi() as api:
        card = a_card(0)
        grant = a_grant(card)
        api.people.add("of-ada", "ada", "*")
        api.add_node("n1", card)
        api.add_running("team-a", "serve-0", "n1", grant)
        api.tells["n1"] = told_of((card,), broker.container(broker.pod("serve-0"), held(grant, wanted=0.9, got=0.3)))
        api.add_waiting("team-a", "train-0")
        api.add_waiting("team-a", HOSTILE, why=f"{HOSTILE} keeps it")
        async with serving(api) as site, browser(chromium) as tab:
            await signed_in(tab, site.port)
            await tab.until(f"document.body.innerText.includes({SENTENCE!r})")
            assert f"{HOSTILE} keeps it" in await tab.text()
            assert await tab.says("document.title") == "Waiting · partage"
            assert await tab.says("document.querySelectorAll('script').length") == 1
            assert await tab.says("document.cookie") == ""  # scripts can't read it

            api.add_waiting("team-a", "late", why="a card was lost")
            await tab.until("document.body.innerText.includes('a card was lost')")
            await tab.until("document.getElementById('status').textContent.startsWith('3 pods wait')")

            await tab.says("document.getElementById('pause').click()")
            api.objects.delete("/api/v1/namespaces/team-a/pods/late")
            await tab.until("document.getElementById('pause').getAttribute('aria-pressed') === 'true'")
            assert "a card was lost" in await tab.text()
            await tab.says("document.getElementById('pause').click()")
            await tab.until("!document.body.innerText.includes('a card was lost')")


async def test_it_is_legible_in_the_dark_and_on_a_phone_and_by_the_keyboard() -> None:
    chromium = (await asyncio.to_thread(ensure, "chromium"))["chromium"]
    async with UiApi() as api:
        api.people.add("of-ada", "ada", "*")
        api.add_node("n1", *(a_card(index) for index in range(8)))
        api.tells["n1"] = told_of(())
        async with serving(api) as site, browser(chromium) as tab:
            await signed_in(tab, site.port)
            grounds = []
            for dark in (False, True):
                await tab.looks(dark=dark, width=400)
                await tab.opens(f"http://127.0.0.1:{site.port}/cards")
                await tab.until("document.querySelectorAll('tbody tr').length === 8")
                grounds.append(await tab.says("getComputedStyle(document.body).backgroundColor"))
                assert await tab.says("document.documentElement.scrollWidth <= innerWidth")
            assert grounds[0] != grounds[1]
            await tab.does("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
            assert await tab.says("document.activeElement.textContent") == "Skip to content"
            assert await tab.says(
                "[...document.querySelectorAll('svg')].every(each => each.getAttribute('aria-label'))"
            )
