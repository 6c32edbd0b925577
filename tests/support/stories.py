"""Async tests on a stage: the stage's parts are positional-only parameters, pytest's fixtures are the others."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from support.fake_api import FakeApi

Story = Callable[..., Coroutine[Any, Any, None]]


def played_by(tell: Callable[..., object], **options: Any) -> Callable[[Story], Callable[..., None]]:
    """`tell` sets the stage and awaits the story with its parts."""

    def decorate(story: Story) -> Callable[..., None]:
        @functools.wraps(story)
        def test(**fixtures: Any) -> None:
            tell(functools.partial(story, **fixtures), **options)

        parameters = inspect.signature(story).parameters.values()
        left = [each for each in parameters if each.kind is not inspect.Parameter.POSITIONAL_ONLY]
        test.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]  # pytest reads it
        return test

    return decorate


def with_api(story: Story) -> Callable[..., None]:
    """The stage is an API server."""

    def tell(played: Story) -> None:
        async def whole() -> None:
            async with FakeApi() as api:
                await played(api)

        asyncio.run(whole())

    return played_by(tell)(story)
