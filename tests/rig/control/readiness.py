"""Readiness checks over TLS, which `Component` repeats."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from rig.identity.people import Certified

_ANSWERS_WITHIN_S: Final = 3.0
_WORTH_TELLING: Final = 300

WhyNot = Callable[[], str | None]


def trusting(ca: Path, client: Certified | None = None) -> ssl.SSLContext:
    """A TLS context that trusts servers of that CA, with that client certificate."""
    context = ssl.create_default_context(cafile=ca)
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    return context


def answers(address: tuple[str, int], path: str, context: ssl.SSLContext) -> WhyNot:
    """Whether a GET of this path is answered with 200, and what came instead."""

    def why_not() -> str | None:
        connection = http.client.HTTPSConnection(*address, timeout=_ANSWERS_WITHIN_S, context=context)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            said = response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return f"https://{address[0]}:{address[1]}{path}: {error}"
        finally:
            connection.close()
        if response.status == HTTPStatus.OK:
            return None
        return f"{path} answered {response.status}: {said[:_WORTH_TELLING]}"

    return why_not
