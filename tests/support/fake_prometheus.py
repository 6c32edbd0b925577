"""A Prometheus that answers as it is told."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def fake_prometheus(
    answer: Mapping[str, float], body: bytes = b"", *, at_s: float = 0.0
) -> AsyncGenerator[tuple[str, list[str]]]:
    """A server that answers each query by the text in it; yields its address and the queries."""
    asked: list[str] = []

    async def query(request: web.Request) -> web.Response:
        asked.append(text := str((await request.post())["query"]))
        value = next(value for words, value in answer.items() if words in text)
        labels = {"namespace": "team-a", "pod": "gone-0"} if "sum by" in text else {}
        data = {"resultType": "vector", "result": [{"metric": labels, "value": [at_s, str(value)]}]}
        return web.Response(body=body or json.dumps({"status": "success", "data": data}).encode())

    app = web.Application()
    app.router.add_post("/api/v1/query", query)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()
