"""Which TLS callers are answered: those with a certificate of one authority and one of the configured names.

A caller can have pods bound, so network access is not enough, nor is a certificate of an authority that signs for
others too, as a cluster's own does for every kubelet. Certificates and authority are renewed by others while we run:
new files apply to new connections, and a new authority ends the existing ones, so that no caller remains that only the
old one vouched for.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import structlog

from partage_base.daemon.errors import BadConfiguration
from partage_scheduler.settings import CertificateFiles

_LOOK_EVERY_S: Final = 60.0
_log = structlog.get_logger()


class CallerTrust:
    def __init__(self, certificate_files: CertificateFiles, names: Collection[str]) -> None:
        """`names` are the common names of callers; raises `BadConfiguration`."""
        self._certificate_files, self._names = certificate_files, frozenset(names)
        self._stamps: tuple[tuple[int, int], ...] | None = None
        self._authority = b""
        self.context = self._read()
        """For new connections."""

    def against(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Why a caller with this certificate is refused."""
        subject = (certificate or {}).get("subject", ())
        names = [value for part in subject for field, value in part if field == "commonName"]
        if len(names) == 1 and names[0] in self._names:
            return None
        allowed = ", ".join(sorted(self._names))
        return f"the common name of your certificate is {', '.join(names) or 'empty'!r:.200}; allowed: {allowed}"

    async def keep_fresh(self, changed: Callable[[], None], *, every_s: float = _LOOK_EVERY_S) -> None:
        """Reads the files again when they change; calls `changed` if the callers' authority did."""
        while True:
            await asyncio.sleep(every_s)
            try:
                self._renew(changed)
            except (OSError, BadConfiguration) as error:
                _log.warning("extender certificates can't be reloaded; keeping the previous ones", why=str(error))

    def _renew(self, changed: Callable[[], None]) -> None:
        if self._certificate_files.stamps == self._stamps:
            return
        authority = self._authority
        self.context = self._read()
        _log.info("extender certificates reloaded", certificate=str(self._certificate_files.certificate))
        if self._authority != authority:
            changed()

    def _read(self) -> ssl.SSLContext:
        """All files or none: files that are being replaced may not match yet."""
        try:
            stamps, authority = self._certificate_files.stamps, self._certificate_files.callers.read_bytes()
        except OSError as error:
            raise BadConfiguration(f"the extender's certificates: {error}") from None
        context = _context_of(self._certificate_files)
        self._stamps, self._authority = stamps, authority
        return context


def _context_of(certificate_files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate_files.certificate, certificate_files.key)
    except OSError as error:  # includes ssl's own errors
        names = f"{certificate_files.certificate} with the key {certificate_files.key}"
        raise BadConfiguration(f"the extender's certificate, {names}: {error}") from None
    try:
        context.load_verify_locations(certificate_files.callers)
    except OSError as error:
        raise BadConfiguration(
            f"the authority of the extender's callers, {certificate_files.callers}: {error}"
        ) from None
    return context
