"""The API server's address and our credentials, which rotate while a daemon runs for months.

Searched in this order: the file that is named, $KUBECONFIG, the service account of the pod that we run in, and
~/.kube/config. The source is checked off the event loop every half minute: all of it is read again when one of its
files changed, and a plugin is run again when its credentials are about to expire. After the API server answered 401,
everything is read again. A renewal that fails or hangs does no harm as long as the present credentials are accepted.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from partage_base.kube.configuration import read_account, read_kubeconfig
from partage_base.kube.credentials import Credentials, Reading
from partage_base.kube.errors import BadAccess

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has its token and the cluster's CA certificate."""
LOOK_EVERY_S: Final = 30.0
LOOK_AFTER_REFUSAL_S: Final = 5.0
"""Minimum interval after a 401: a plugin may ask a person, or a server that limits requests."""
PATIENCE_S: Final = 1.0
"""How long a call waits for a due renewal before it uses the present credentials."""
PATIENCE_AFTER_REFUSAL_S: Final = 5.0
"""The same after the present credentials were rejected; then the call fails, and a later one may succeed."""

Signature = tuple[tuple[int, int, int] | None, ...]
_log = structlog.get_logger()


class Access:
    """Credentials that stay current. Made by `find`; any number of `ApiServer`s of a process may share it."""

    def __init__(
        self, source: str, read: Callable[[], Reading], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Reads once, in the caller's thread; raises `BadAccess`. `source` names the source for people."""
        self.source = source
        self._read = read
        self._clock = clock
        self._reading = read()
        self._signature = _signature(self._reading.files)
        self._looked_at = clock()
        self._looking: Future[None] | None = None
        self._is_refused = False
        self._failure: BadAccess | None = None

    @classmethod
    def find(
        cls,
        kubeconfig: Path | None,
        *,
        token: str = "",
        environ: Mapping[str, str] = os.environ,
        account: Path = ACCOUNT,
        clock: Callable[[], float] = time.monotonic,
    ) -> Access:
        """Reads everything once; blocks while an exec plugin runs. Raises `BadAccess`.

        With `token`: the same API server, called with that token alone.
        """
        if paths := str(kubeconfig or "") or environ.get("KUBECONFIG", ""):
            return cls(f"kubeconfig {paths}", lambda: read_kubeconfig(paths, environ, token=token), clock=clock)
        if "KUBERNETES_SERVICE_HOST" in environ:
            return cls(
                f"service account in {account}", lambda: read_account(account, environ, token=token), clock=clock
            )
        usual = Path(environ.get("HOME", "/root"), ".kube/config")
        if not usual.exists():
            raise BadAccess(
                f"nothing says where the API server is: no $KUBECONFIG, no pod, no {usual}; name a kubeconfig"
            )
        return cls(f"kubeconfig {usual}", lambda: read_kubeconfig(str(usual), environ, token=token), clock=clock)

    async def current(self) -> Credentials:
        """The current credentials; raises `BadAccess` if the API server rejected the last ones and none are newer."""
        looking, begins = self._looking, False
        if looking is None and self._is_due():
            looking, begins = self._begin(), True
        if looking is not None and (begins or self._is_refused):
            patience_s = PATIENCE_AFTER_REFUSAL_S if self._is_refused else PATIENCE_S
            await asyncio.wait([asyncio.wrap_future(looking)], timeout=patience_s)
            if self._is_refused and not looking.done():
                raise BadAccess(f"{self.source}: refused, and new ones take long; does a plugin wait for somebody?")
        if self._is_refused and self._failure is not None:
            raise self._failure
        return self._reading.credentials

    def refused(self, credentials: Credentials) -> None:
        """The API server answered 401 to `credentials`: the next call reads everything again."""
        if credentials is self._reading.credentials:
            self._is_refused = True

    def _is_due(self) -> bool:
        return self._clock() - self._looked_at >= (LOOK_AFTER_REFUSAL_S if self._is_refused else LOOK_EVERY_S)

    def _begin(self) -> Future[None]:
        """Starts a daemon thread, which does not delay the end of the process: a plugin may hang forever."""
        done: Future[None] = Future()
        self._looking = done
        threading.Thread(target=self._look, args=(done,), name="kube-credentials", daemon=True).start()
        return done

    def _look(self, done: Future[None]) -> None:
        try:
            self._reading = self._again()
            self._is_refused, self._failure = False, None
        except BadAccess as failure:
            self._failure = failure
            _log.warning(
                "the credentials for the API server could not be renewed", source=self.source, why=str(failure)
            )
        finally:
            self._looked_at = self._clock()
            self._looking = None
            done.set_result(None)

    def _again(self) -> Reading:
        reading, signature = self._reading, _signature(self._reading.files)
        if self._is_refused or signature != self._signature:
            reading = self._read()
            self._signature = signature
            return reading
        credentials = reading.renewed()
        return reading if credentials == reading.credentials else replace(reading, credentials=credentials)


def _signature(files: tuple[Path, ...]) -> Signature:
    """Changes when a file is replaced, rewritten or removed."""
    return tuple(_stamp(file) for file in files)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
