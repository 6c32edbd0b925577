"""Reads the API server's address and our credentials from kubeconfig files, or from a pod's service account.

It follows kubectl, and does not use the Python client of Kubernetes (docs/decisions.md). It refuses what kubectl
refuses, and what our calls do not do: impersonation, and the auth providers that kubectl has moved into plugins.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog

from partage_base.files import write_all
from partage_base.kube.credentials import Credentials, Reading
from partage_base.kube.errors import BadAccess
from partage_base.kube.exec_plugin import ExecPlugin
from partage_base.kube.kubeconfig import Chosen, Cluster, User, chosen, decoded, merged
from partage_base.kube.proxies import proxy_of

MOST_BYTES: Final = 4 << 20
"""Limit for one file: the kubeconfig of a person with a thousand clusters is smaller."""
_EXTENSION: Final = "client.authentication.k8s.io/exec"
_PROXIES: Final = ("http://", "https://")
_log = structlog.get_logger()


def read_account(folder: Path, environ: Mapping[str, str], *, token: str = "") -> Reading:
    """The service account of this process's pod, or `token` instead of its own; raises `BadAccess`."""
    token_file, authority = folder / "token", folder / "ca.crt"
    with _told("this pod's service account", f"look at {folder} and at automountServiceAccountToken"):
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise BadAccess("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is empty")
        url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        credentials = Credentials(
            url=url,
            tls=_tls(_certificates(_content(authority), str(authority)), url),
            proxy=_of_environment(url, environ),
            authorization=_bearer(token or _token(token_file)),
        )
    return Reading(credentials, (token_file, authority), lambda: credentials)


def read_kubeconfig(paths: str, environ: Mapping[str, str], *, token: str = "") -> Reading:
    """One kubeconfig file, or several separated by colons; with its user, or with `token` instead.

    Raises `BadAccess`.
    """
    what = f"kubeconfig {paths}"
    files = tuple(Path(each) for each in paths.split(":") if each)
    with _told(what):
        texts = [(file, text) for file in files if (text := _content_if_any(file)) is not None]
        if not texts:
            raise BadAccess("there is no such file; name one that exists")
        found = chosen(merged(decoded(file, text) for file, text in texts))
        if token:
            found = replace(found, user=User(token=token))
        caller = _Caller(found, environ)
        credentials = caller.credentials()

    def renewed() -> Credentials:
        with _told(what):
            return caller.credentials()

    return Reading(credentials, (*files, *_named(found)), renewed)


class _Caller:
    """A kubeconfig's user and cluster. Files are read once; a plugin is run again before its credentials expire."""

    def __init__(self, found: Chosen, environ: Mapping[str, str]) -> None:
        cluster, user = found.cluster, found.user
        self._url = cluster.server.rstrip("/")
        self._insecure = cluster.insecure_skip_tls_verify
        self._authority = _authority(cluster)
        own = _authorization(user)
        self._plugin = None
        if user.exec is not None and own is None:
            self._plugin = ExecPlugin(user.exec, _shown_to_plugins(cluster, self._authority), environ)
        self._own_pair = self._pair = _pair(user)
        self._credentials = Credentials(
            url=self._url,
            tls=self._tls() if self._plugin is None else None,
            server_name=cluster.tls_server_name or None,
            proxy=_usable(cluster.proxy_url, self._url) if cluster.proxy_url else _of_environment(self._url, environ),
            authorization=own,
        )

    def credentials(self) -> Credentials:
        """The credentials; the same object as before if nothing changed, so that connections are kept."""
        if self._plugin is None:
            return self._credentials
        given = self._plugin.current()
        pair = given.certificate + b"\n" + given.key if given.certificate else self._own_pair
        if pair != self._pair or self._credentials.tls is None:
            self._pair = pair
            self._credentials = replace(self._credentials, tls=self._tls())
        authorization = _bearer(given.token) if given.token else None
        if authorization != self._credentials.authorization:
            self._credentials = replace(self._credentials, authorization=authorization)
        return self._credentials

    def _tls(self) -> ssl.SSLContext | None:
        if not self._url.startswith("https://"):
            return None
        return _tls(self._authority, self._url, pair=self._pair, insecure=self._insecure)


def _authorization(user: User) -> str | None:
    if user.impersonate:
        raise BadAccess(f"its user acts as {user.impersonate}, which kubectl alone does; name a user without `as`")
    if user.auth_provider is not None and user.exec is not None:
        raise BadAccess("its user has both an auth-provider and an exec plugin; take one out")
    if user.token_file:
        return _bearer(_token(Path(user.token_file)))
    if user.token:
        return _bearer(user.token)
    if user.username:
        return "Basic " + base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
    provider = user.auth_provider
    if provider is None:
        return None
    if provider.name == "oidc" and (token := (provider.config or {}).get("id-token")):
        return _bearer(token)  # kubectl renews it, and writes it back into this file
    raise BadAccess(
        f"its user logs in by the auth-provider {provider.name}, which is no more; let an exec plugin do it: "
        "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
    )


def _bearer(token: str) -> str:
    token = token.strip()
    if not token.isascii() or not token.isprintable():
        raise BadAccess("the token has characters that no token has; look at the file that it comes from")
    return f"Bearer {token}"


def _token(file: Path) -> str:
    token = _content(file).decode(errors="replace").strip()
    if not token:
        raise BadAccess(f"{file} is empty, and should hold a token")
    return token


def _authority(cluster: Cluster) -> str | None:
    if data := cluster.certificate_authority_data:
        return _certificates(_embedded(data, "certificate-authority-data"), "certificate-authority-data")
    file = cluster.certificate_authority
    return _certificates(_content(Path(file)), file) if file else None


def _certificates(pem: bytes, where: str) -> str:
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise BadAccess(f"{where} holds no certificate as PEM")
    return pem.decode("ascii", "ignore")


def _pair(user: User) -> bytes | None:
    """The client's certificate and key, concatenated."""
    certificate = _held(user.client_certificate_data, user.client_certificate, "client-certificate")
    key = _held(user.client_key_data, user.client_key, "client-key")
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise BadAccess("its user has one of client-certificate and client-key without the other")
    return certificate + b"\n" + key


def _held(data: str, file: str, what: str) -> bytes | None:
    if data:
        return _embedded(data, f"{what}-data")
    return _content(Path(file)) if file else None


def _embedded(data: str, what: str) -> bytes:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadAccess(f"its {what} is no base64") from None


def _tls(authority: str | None, url: str, *, pair: bytes | None = None, insecure: bool = False) -> ssl.SSLContext:
    """Verifies as configured, without the strict checks of Python 3.13, which CAs of older clusters fail."""
    try:
        context = ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError) as error:
        raise BadAccess(f"the certificates of the cluster's authority can't be read: {error}") from None
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        _log.warning("the API server's certificate is not verified: insecure-skip-tls-verify is set", url=url)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        _load_pair(context, pair)
    return context


def _load_pair(context: ssl.SSLContext, pair: bytes) -> None:
    """Loads them from a memfd, since `ssl` reads only files: no key is ever on a disk, not even after a crash."""
    descriptor = os.memfd_create("partage-kube")
    try:
        write_all(descriptor, pair)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")  # or it prompts at the terminal
    except ssl.SSLError as error:
        why = error.reason or "it is no PEM"
        raise BadAccess(f"its client certificate and key are no PEM of a pair: {why}") from None
    finally:
        os.close(descriptor)


def _of_environment(url: str, environ: Mapping[str, str]) -> str | None:
    try:
        proxy = proxy_of(url, environ)
    except ValueError as error:
        raise BadAccess(f"{url!r:.200} is no address of a server: {error}") from None
    return None if proxy is None else _usable(proxy, url)


def _usable(proxy: str, url: str) -> str:
    if not proxy.startswith(_PROXIES):
        shown = proxy.rpartition("@")[2]  # without the password
        raise BadAccess(f"the proxy {shown} for {url}: only http:// and https:// will do")
    return proxy


def _shown_to_plugins(cluster: Cluster, authority: str | None) -> dict[str, Any]:
    said: dict[str, Any] = {"server": cluster.server}
    if cluster.tls_server_name:
        said["tls-server-name"] = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        said["insecure-skip-tls-verify"] = True
    if authority is not None:
        said["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    if cluster.proxy_url:
        said["proxy-url"] = cluster.proxy_url
    for each in cluster.extensions or ():
        if each.name == _EXTENSION:
            said["config"] = each.extension
    return said


def _named(found: Chosen) -> list[Path]:
    """The files beside the kubeconfig that were read for it."""
    cluster, user = found.cluster, found.user
    files = [
        "" if cluster.certificate_authority_data else cluster.certificate_authority,
        "" if user.client_certificate_data else user.client_certificate,
        "" if user.client_key_data else user.client_key,
        user.token_file,
    ]
    return [Path(each) for each in files if each]


def _content(file: Path) -> bytes:
    content = _content_if_any(file)
    if content is None:
        raise BadAccess(f"{file}: there is no such file")
    return content


def _content_if_any(file: Path) -> bytes | None:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadAccess(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > MOST_BYTES:
        raise BadAccess(f"{file} has more than {MOST_BYTES} bytes")
    return content


@contextmanager
def _told(what: str, advice: str = "") -> Generator[None]:
    """Prefixes a `BadAccess` with its subject, in one line."""
    try:
        yield
    except BadAccess as error:
        line = " ".join(str(error).split())
        raise BadAccess(f"{what}: {line}; {advice}" if advice else f"{what}: {line}") from error
