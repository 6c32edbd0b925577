"""A fake API server and its client, in the event loop of the requesting test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from partage_base.kube import ApiServer
from support.fake_api import FakeApi
from support.kube import access_to


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi() as api:
        yield api


@pytest.fixture
def of_client() -> dict[str, Any]:
    """Arguments for the client; tests override it."""
    return {}


@pytest.fixture
async def server(api: FakeApi, of_client: dict[str, Any]) -> AsyncIterator[ApiServer]:
    said: dict[str, Any] = {"user_agent": "partage-test/1", "most_answer_bytes": 1 << 20, **of_client}
    async with ApiServer(access_to(api.url), **said) as server:
        yield server
