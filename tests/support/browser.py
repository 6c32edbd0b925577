"""A headless Chromium driven by its DevTools protocol, to test what users see instead of what was answered."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

from rig.client.wait import patient

_FLAGS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-extensions", "--disable-background-networking", "--disable-component-update", "--mute-audio"),
    "--remote-debugging-port=0",
)


class Tab:
    """One page, queried by JavaScript."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, itertools.count(1)

    async def does(self, method: str, **said: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": said})
        async for message in self._socket:
            answer = json.loads(message.data)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
        raise AssertionError("the browser has ended")

    async def says(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = await self.does("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def text(self) -> str:
        """The visible text, without what styles hide."""
        return str(await self.says("document.body?.innerText ?? ''"))

    async def opens(self, address: str) -> None:
        await self.does("Page.navigate", url=address)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def until(self, expression: str) -> None:
        """Wait until the expression is true in the page."""
        seen: list[Any] = []
        async with patient(expression, seen=lambda: seen[-1:]):
            while True:
                try:
                    if await self.says(expression):
                        return
                except AssertionError as gone:  # during a navigation
                    seen.append(str(gone))
                await asyncio.sleep(0.05)

    async def looks(self, *, dark: bool = False, width: int = 1280, height: int = 800) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.does("Emulation.setEmulatedMedia", features=[scheme])
        await self.does(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def picture(self) -> bytes:
        return base64.b64decode((await self.does("Page.captureScreenshot", format="png"))["data"])


@asynccontextmanager
async def browser(program: Path) -> AsyncGenerator[Tab]:
    """One tab of a browser with a fresh profile that is deleted afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            program,
            *_FLAGS,
            f"--user-data-dir={folder}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={"HOME": folder, "PATH": "/usr/bin:/bin"},
        )
        try:
            port = await _port(Path(folder, "DevToolsActivePort"), process)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tab = next(each for each in await answer.json() if each["type"] == "page")
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=64 << 20) as socket:
                    yield Tab(socket)
        finally:
            process.terminate()
            await process.wait()


async def _port(file: Path, process: asyncio.subprocess.Process) -> str:
    def said() -> str:
        return file.read_text() if file.exists() else ""

    async with patient("the browser listens", seen=lambda: process.returncode):
        while not (found := said().partition("\n")[0]):
            assert process.returncode is None, "the browser ended at once"
            await asyncio.sleep(0.05)
    return found
