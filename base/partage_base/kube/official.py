"""Reads configuration as the official client does: the only module that imports it, and only when something is read.

It costs 40 MiB and a second.

Used of it are the readers of kubeconfig files (merging, exec plugins, auth providers), of a pod's service account, and
of proxy settings. What they leave to wish for is mended here: each mistake becomes one line; certificates that a
kubeconfig embeds lie in files only while they are read; what a plugin's failure left in the log goes into the error.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast

import structlog

from partage_base.kube.credentials import Credentials, Reading
from partage_base.kube.errors import BadAccess

if TYPE_CHECKING:
    from kubernetes.client import Configuration

_log = structlog.get_logger()
_NOISE: Final = "Invalid kube-config file. "
_PROXIES: Final = ("http://", "https://")


def read_account(folder: Path, environ: Mapping[str, str]) -> Reading:
    """The service account of the pod that this process is in; raises `BadAccess`."""
    from kubernetes.client import Configuration  # noqa: PLC0415  (see above)
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415

    token, authority = folder / "token", folder / "ca.crt"
    with _one_line("this pod's service account", f"look at {folder} and at automountServiceAccountToken"):
        configuration = Configuration()
        loader = cast("Any", InClusterConfigLoader)(
            token_filename=str(token), cert_filename=str(authority), environ=environ
        )
        loader.load_and_set(configuration)
        return _reading(configuration, (token, authority))


def read_kubeconfig(paths: str) -> Reading:
    """One kubeconfig file, or several with colons between them; raises `BadAccess`."""
    from kubernetes.client import Configuration  # noqa: PLC0415  (see above)
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415

    what = f"kubeconfig {paths}"
    with (
        _one_line(what, "correct it"),
        TemporaryDirectory(prefix="partage-kube-") as folder,
        _overheard() as words,
    ):
        merger = cast("Any", KubeConfigMerger)(paths)
        if merger.config is None:
            raise BadAccess(f"{what}: there is no such file; name one that exists")
        if not merger.config.safe_get("current-context"):
            raise BadAccess(f"{what} has no current-context; set one with: kubectl config use-context NAME")
        loader = cast("Any", KubeConfigLoader)(merger.config, temp_file_path=folder, config_base_path=None)
        user = _user(merger.config, loader.current_context)
        configuration = Configuration(host="")
        loader.load_and_set(configuration)
        if not configuration.host:
            raise BadAccess(f"{what}: its cluster has no server; say its address")
        if "exec" in user and not (configuration.api_key or configuration.cert_file):
            why = "; ".join(words) or "it said nothing"
            raise BadAccess(f"{what}: its plugin {user['exec'].get('command')} gave no credentials: {_line(why)}")
        return _reading(configuration, _files(merger.paths, user, configuration, folder))


def _user(config: Any, context: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ANN401  (an untyped class of theirs)
    name = context["context"].get("user")
    found = config["users"].get_with_name(name, safe=True) if name else None
    return found["user"].value if found and found.value.get("user") else {}


def _files(
    kubeconfigs: list[str], user: Mapping[str, Any], configuration: Configuration, temporary: str
) -> tuple[Path, ...]:
    """Whatever was read, but for what was written only to be read."""
    near = Path(kubeconfigs[0]).parent
    named = [configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file]
    if "tokenFile" in user:
        named.append(str(near / user["tokenFile"]))
    lasting = [Path(name) for name in named if name and not name.startswith(temporary)]
    return (*map(Path, kubeconfigs), *lasting)


def _reading(configuration: Configuration, files: tuple[Path, ...]) -> Reading:
    url = str(configuration.host).rstrip("/")
    credentials = Credentials(
        url=url,
        tls=_tls(configuration, url) if url.startswith("https://") else None,
        server_name=configuration.tls_server_name or None,
        proxy=_proxy(configuration, url),
        authorization=_authorization(configuration),
    )
    return Reading(credentials, files, lambda: _renewed(configuration))


def _tls(configuration: Configuration, url: str) -> ssl.SSLContext:
    """Verifies as configured; authorities of older clusters lack what Python 3.13 would insist on."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        _log.warning("the API server's certificate is not verified: insecure-skip-tls-verify is set", url=url)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _proxy(configuration: Configuration, url: str) -> str | None:
    from kubernetes.client.rest import should_bypass_proxies  # noqa: PLC0415  (see above)

    proxy = configuration.proxy
    if not proxy or should_bypass_proxies(url, configuration.no_proxy or ""):
        return None
    if not proxy.startswith(_PROXIES):
        shown = proxy.rpartition("@")[2]  # without the password
        raise BadAccess(f"the proxy {shown} for {url}: only http:// and https:// will do")
    return str(proxy)


def _renewed(configuration: Configuration) -> str | None:
    with _one_line("the credentials", "correct the kubeconfig"), _overheard() as words:
        configuration.get_api_key_with_prefix("BearerToken")  # asking is what makes it ask the plugin
        if words:
            raise BadAccess(f"the credentials can't be renewed: {_line('; '.join(words))}")
        return _authorization(configuration)


def _authorization(configuration: Configuration) -> str | None:
    """The header's value, which older versions keep under another name."""
    value = configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization")
    if not value:
        return None
    if not (value := value.strip()).isascii() or not value.isprintable():
        raise BadAccess("the token has characters that no token has; look at the file that it comes from")
    return str(value)


@contextmanager
def _one_line(what: str, advice: str) -> Generator[None]:
    """Whatever a reader raises about what it reads, as one line: it does not say which errors those are."""
    try:
        yield
    except BadAccess:
        raise
    except Exception as error:
        raise BadAccess(f"{what}: {_line(str(error) or type(error).__name__)}; {advice}") from error


@contextmanager
def _overheard() -> Generator[list[str]]:
    """What this thread tells the root logger: how the official client reports a plugin that failed."""
    words: list[str] = []
    thread, root, silent = threading.get_ident(), logging.getLogger(), logging.NullHandler()

    def passes(record: logging.LogRecord) -> bool:
        if record.thread == thread:
            words.append(record.getMessage())
        return record.thread != thread

    root.addHandler(silent)  # without any, the first word of all would install one for good
    root.addFilter(passes)
    try:
        yield words
    finally:
        root.removeFilter(passes)
        root.removeHandler(silent)


def _line(text: str) -> str:
    return " ".join(text.removeprefix(_NOISE).split())
