"""Credentials from an exec plugin of a kubeconfig, which is run as kubectl runs it.

They are kept until they are about to expire. The plugin may prompt a person if the kubeconfig allows it and there is a
terminal; otherwise its stderr goes into the error. It has no deadline: a person may be logging in.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from partage_base.kube.errors import BadAccess
from partage_base.kube.kubeconfig import ExecConfig
from partage_base.thread_safety import thread_safe
from partage_plugins.text import printable

EXPIRES_SOON_S: Final = 60.0
"""Two check intervals of `Access`: credentials are renewed before a call meets their expiry."""
MOST_BYTES: Final = 1 << 20
LONGEST_WORDS: Final = 512
_PIECE: Final = 1 << 16
_V1: Final = "client.authentication.k8s.io/v1"
_V1BETA1: Final = "client.authentication.k8s.io/v1beta1"
_MODES: Final = ("Never", "IfAvailable", "Always")


@dataclass(frozen=True)
class Given:
    """A plugin's credentials: a token, a certificate with its key, or both."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires_s: float | None = None
    """Seconds since the epoch."""


class _CredentialStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: Literal["ExecCredential"]
    status: _CredentialStatus


class ExecPlugin:
    def __init__(
        self,
        config: ExecConfig,
        cluster: Mapping[str, Any],
        environ: Mapping[str, str],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`cluster` is passed to a plugin that has `provideClusterInfo`. Raises `BadAccess`."""
        self._config = config
        self._mode = _mode(config)
        self._cluster = cluster if config.provide_cluster_info else None
        self._environ = {**environ, **{each.name: each.value for each in config.env or ()}}
        self._now = now
        self._given: Given | None = None

    def current(self) -> Given:
        """The last credentials while they are valid; else blocks until the plugin has ended. Raises `BadAccess`."""
        given = self._given
        if given is None or (given.expires_s is not None and self._now() + EXPIRES_SOON_S >= given.expires_s):
            self._given = given = self._asked()
        return given

    def _asked(self) -> Given:
        interactive = self._mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self._mode == "Always" and not interactive:
            raise self._failed("it has to ask a person, and there is no terminal here")
        info = {"kind": "ExecCredential", "apiVersion": self._config.api_version, "spec": self._spec(interactive)}
        environ = {**self._environ, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        try:
            printed = self._printed(environ, interactive=interactive)
        except (OSError, ValueError) as error:  # ValueError: a NUL byte in an argument
            hint = f". {self._config.install_hint}" if self._config.install_hint else ""
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise self._failed(f"{why}{hint}") from error
        return self._read(printed)

    def _spec(self, interactive: bool) -> dict[str, object]:  # noqa: FBT001  (a field of theirs)
        return {"interactive": interactive, **({} if self._cluster is None else {"cluster": self._cluster})}

    def _printed(self, environ: Mapping[str, str], *, interactive: bool) -> bytes:
        with subprocess.Popen(  # noqa: S603  (that a kubeconfig names programs is what it is for)
            [self._config.command, *(self._config.args or ())],
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.PIPE,
            env=environ,
        ) as process:
            printed, words = _both(process)
            if len(printed) > MOST_BYTES:
                process.kill()
                raise self._failed(f"it printed more than {MOST_BYTES} bytes")
        if process.returncode:
            raise self._failed(f"exit code {process.returncode}: {_line(words) or 'it said nothing'}")
        return printed

    def _read(self, printed: bytes) -> Given:
        try:
            said = msgspec.json.decode(printed, type=thread_safe(_Credential))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self._failed(f"it printed no ExecCredential: {error}") from None
        if said.api_version != self._config.api_version:
            raise self._failed(f"it speaks {_line(said.api_version)}, and the kubeconfig {self._config.api_version}")
        status = said.status
        token, certificate, key = status.token, status.client_certificate_data, status.client_key_data
        if not token and not certificate:
            raise self._failed("it gave neither a token nor a certificate")
        if bool(certificate) != bool(key):
            raise self._failed("it gave one of certificate and key without the other")
        until = status.expiration_timestamp
        return Given(
            token or "", (certificate or "").encode(), (key or "").encode(), until.timestamp() if until else None
        )

    def _failed(self, why: str) -> BadAccess:
        return BadAccess(f"its plugin {self._config.command} gave no credentials: {why}")


def _mode(config: ExecConfig) -> str:
    if config.api_version not in (_V1, _V1BETA1):
        raise BadAccess(
            f"its plugin {config.command} has apiVersion {config.api_version}; allowed: {_V1} and {_V1BETA1}"
        )
    mode = config.interactive_mode or ("IfAvailable" if config.api_version == _V1BETA1 else "")
    if mode not in _MODES:
        raise BadAccess(f"its plugin {config.command} has interactiveMode {mode!r}; allowed: {', '.join(_MODES)}")
    return mode


def _both(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Its stdout, up to a byte too many, and the end of its stderr."""
    printed, words = bytearray(), bytearray()
    with selectors.DefaultSelector() as pipes:
        for pipe, kept in ((process.stdout, printed), (process.stderr, words)):
            if pipe is not None:
                pipes.register(pipe, selectors.EVENT_READ, kept)
        while pipes.get_map() and len(printed) <= MOST_BYTES:
            for key, _ in pipes.select():
                piece = os.read(key.fd, _PIECE)
                key.data.extend(piece)
                if not piece:
                    pipes.unregister(key.fileobj)
            del words[: -4 * LONGEST_WORDS]
    return bytes(printed), bytes(words)


def _line(text: str | bytes) -> str:
    """The end of `text`: that is where a program writes the reason."""
    words = text if isinstance(text, str) else text.decode(errors="replace")
    return printable(" ".join(words.split()), " ")[-LONGEST_WORDS:]
