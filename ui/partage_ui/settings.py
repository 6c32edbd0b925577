"""Settings of the page. Each default is right for our Deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from partage_base.daemon.settings import ADDRESS, CommonSettings, Setting


class UiSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of the daemon that serves the page of a cluster."""

    kubeconfig: Annotated[
        Path | None,
        Setting("File that says how to reach the API server; without it KUBECONFIG, then the pod's service account."),
    ] = None
    namespace: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z"),
        Setting("Namespace of partage, with the nodes' heartbeats and the advertisers' pods."),
    ] = "partage-system"
    scheduler_name: Annotated[
        str,
        Meta(pattern=r"\A[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z"),
        Setting("Pods of this scheduler are shown while they wait, whatever words they ask in."),
    ] = "partage-scheduler"
    listen: Annotated[
        str,
        Meta(pattern=ADDRESS, min_length=1),
        Setting("Where the page is served; by default to this machine alone.", allowed="host:port"),
    ] = "127.0.0.1:9480"
    tls_certificate: Annotated[
        Path | None,
        Setting("File with the certificate and its chain (PEM); without it the page is served without TLS."),
    ] = None
    tls_key: Annotated[
        Path | None,
        Setting("File with the certificate's private key (PEM); both are read again when they change."),
    ] = None
    secure_cookies: Annotated[
        bool,
        Setting(
            "Whether cookies are for TLS alone where something before the page ends TLS; with a certificate always."
        ),
    ] = False
    session_s: Annotated[
        float,
        Meta(ge=60, le=86400),
        Setting("Seconds after which a viewer signs in again; never longer than the token says of itself."),
    ] = 3600.0
    ask_brokers: Annotated[
        bool,
        Setting("Whether nodes' brokers are asked what is used, by pods/proxy; without it only promises are shown."),
    ] = True
    prometheus: Annotated[
        str,
        Meta(pattern=r"\A(https?://[^/?#@\s]+(/[^?#@\s]*)?)?\Z"),
        Setting(
            "A Prometheus that scrapes the nodes' brokers: namespaces then show the week's milli-hours and GiB-hours.",
            allowed="http://host:port, or https",
        ),
    ] = ""

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) is not (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key: name both, or none of them")
        try:
            urlsplit(self.prometheus).port  # noqa: B018  raises
        except ValueError as error:
            raise ValueError(f"prometheus: {self.prometheus!r} is no address: {error}; as http://host:9090") from None
