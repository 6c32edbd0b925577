"""The API server's address and our identity are searched in a fixed order, and read as kubectl reads them."""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from partage_base.kube import Access, ApiServer, BadAccess, Node, node_path
from partage_base.kube.configuration import MOST_BYTES
from partage_base.kube.credentials import Credentials
from rig.identity.certificates import Authority, Use
from rig.identity.people import Person
from support import kubeconfigs
from support.fake_api import FakeApi, Say
from support.kube import serving_context

NOBODY: Mapping[str, str] = {"HOME": "/nonexistent"}


def found(kubeconfig: Path | None = None, **environ: str) -> Credentials:
    return asyncio.run(Access.find(kubeconfig, environ={**NOBODY, **environ}).current())


def refused(kubeconfig: Path | None = None, **environ: str) -> str:
    with pytest.raises(BadAccess) as raised:
        Access.find(kubeconfig, environ={**NOBODY, **environ})
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("a cluster")


@pytest.fixture
def account(tmp_path: Path, authority: Authority) -> Path:
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("in-cluster\n")
    (folder / "ca.crt").write_bytes(authority.certificate)
    return folder


IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_named_file_comes_before_the_variable_the_pod_and_the_home(tmp_path: Path, account: Path) -> None:
    home = tmp_path / ".kube"
    home.mkdir()
    named = kubeconfigs.write(tmp_path / "named", server="https://named:1")
    variable = kubeconfigs.write(tmp_path / "variable", server="https://variable:1")
    usual = kubeconfigs.write(home / "config", server="https://home:1")

    def url(kubeconfig: Path | None, environ: Mapping[str, str]) -> str:
        access = Access.find(kubeconfig, environ={"HOME": str(tmp_path), **environ}, account=account)
        return asyncio.run(access.current()).url

    assert url(named, {"KUBECONFIG": str(variable), **IN_CLUSTER}) == "https://named:1"
    assert url(None, {"KUBECONFIG": str(variable), **IN_CLUSTER}) == "https://variable:1"
    assert url(None, IN_CLUSTER) == "https://10.96.0.1:443"
    assert url(None, {}) == "https://home:1"
    usual.unlink()
    assert "nothing says where the API server is" in refused(HOME=str(tmp_path))


def test_a_pod_is_who_its_service_account_is(account: Path) -> None:
    access = Access.find(None, environ={**IN_CLUSTER, "KUBERNETES_SERVICE_HOST": "fd00::1"}, account=account)
    credentials = asyncio.run(access.current())
    assert credentials.url == "https://[fd00::1]:443"
    assert credentials.authorization == "Bearer in-cluster"
    assert credentials.tls is not None
    assert credentials.tls.verify_mode is ssl.CERT_REQUIRED
    assert str(account) in access.source


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [("token", None, "token"), ("token", "", "empty"), ("ca.crt", None, "ca.crt"), ("ca.crt", "x", "ca.crt")],
)
def test_a_pod_without_a_whole_account_is_told_where_to_look(
    account: Path, file: str, content: str | None, said: str
) -> None:
    (account / file).unlink() if content is None else (account / file).write_text(content)
    with pytest.raises(BadAccess) as raised:
        Access.find(None, environ=IN_CLUSTER, account=account)
    assert said in str(raised.value)
    assert f"look at {account}" in str(raised.value)


def test_several_files_are_one(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    whole = json.loads(kubeconfigs.write(one, server="https://merged:1", user={"token": "t"}).read_text())
    one.write_text(json.dumps({key: value for key, value in whole.items() if key != "users"}))
    other.write_text(json.dumps({"users": whole["users"]}))
    credentials = found(KUBECONFIG=f"{one}:{tmp_path / 'missing'}:{other}")
    assert (credentials.url, credentials.authorization) == ("https://merged:1", "Bearer t")


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({}, None),
        ({"token": "t"}, "Bearer t"),
        ({"username": "me", "password": "secret"}, "Basic bWU6c2VjcmV0"),
        ({"tokenFile": "token"}, "Bearer from-file"),
        (kubeconfigs.plugin("echo", kubeconfigs.credential("from-plugin")), "Bearer from-plugin"),
        (kubeconfigs.plugin("sh", "-c", 'echo "$SAID"', SAID=kubeconfigs.credential("by-env")), "Bearer by-env"),
    ],
)
def test_a_user_proves_itself_as_its_kubeconfig_says(
    path: Path, user: dict[str, Any], authorization: str | None
) -> None:
    (path.parent / "token").write_text("from-file\n")
    assert found(kubeconfigs.write(path, user=user)).authorization == authorization


def test_a_token_is_never_shown(path: Path) -> None:
    assert "secret" not in repr(found(kubeconfigs.write(path, user={"token": "secret"})))


def test_the_cluster_says_name_proxy_and_path(path: Path) -> None:
    kubeconfigs.write(
        path,
        server="https://rancher.example/k8s/clusters/c-1/",
        cluster={"tls-server-name": "kubernetes", "proxy-url": "http://proxy.example:3128"},
    )
    credentials = found(path)
    assert credentials.url == "https://rancher.example/k8s/clusters/c-1"
    assert credentials.server_name == "kubernetes"
    assert credentials.proxy == "http://proxy.example:3128"


def test_a_proxy_of_the_environment_is_used_but_not_where_the_kubeconfig_names_one(path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://proxy.example:3128"}
    assert found(kubeconfigs.write(path), **environ).proxy == "http://proxy.example:3128"
    assert found(path, **environ, NO_PROXY="10.0.0.1,192.0.2.0/24").proxy is None
    own = {"proxy-url": "http://own.example:1"}
    assert found(kubeconfigs.write(path, cluster=own), **environ, NO_PROXY="*").proxy == "http://own.example:1"


def test_verification_is_given_up_only_as_told_and_not_silently(path: Path) -> None:
    with capture_logs() as logs:
        credentials = found(kubeconfigs.write(path, cluster={"insecure-skip-tls-verify": True}))
    assert credentials.tls is not None
    assert credentials.tls.verify_mode is ssl.CERT_NONE
    assert [line["log_level"] for line in logs] == ["warning"]
    assert found(kubeconfigs.write(path, server="http://127.0.0.1:8001")).tls is None


async def test_a_client_certificate_opens_the_door_and_no_file_with_its_key_stays(
    path: Path, tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    pair = authority.issue(Person("system:node:n1"), Use.CLIENT)
    context = serving_context(authority, tmp_path)
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    async with FakeApi(tls=context) as api:
        api.expect(Say(b"{}"), times=2)
        kubeconfigs.write(
            path,
            server=api.url,
            user={
                "client-certificate-data": kubeconfigs.embedded(pair.certificate),
                "client-key-data": kubeconfigs.embedded(pair.key),
            },
            cluster={"certificate-authority-data": kubeconfigs.embedded(authority.certificate)},
        )
        for _ in range(2):
            async with ApiServer(Access.find(path, environ=NOBODY), user_agent="t") as server:
                assert await server.get(node_path("n1"), Node) == Node()
    assert list(temporary.iterdir()) == []


WITHOUT = "there is no such file"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, WITHOUT),
        ("", "has no current-context"),
        ("a: [", "is no YAML: line 2, column 1"),
        ("users: [{name: u, user: {token: secret]", "is no YAML: line 1, column 39"),
        ("- a", "Expected `object"),
        ("7", "Expected `object"),
        ("\0", "is no YAML"),
        ("[" * 1_000_000, "is nested too deep"),
        ("{}", "has no current-context; set one with: kubectl config use-context NAME"),
        ('{"current-context": ""}', "has no current-context"),
        ('{"current-context": "x"}', "name x"),
        ('{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c"}}]}', "name c"),
        ('{"current-context": "x", "contexts": [{"name": "x", "context": {}}]}', "cluster"),
        ('{"current-context": "x", "contexts": [{"name": "x"}]}', "context"),
        ('{"current-context": "x", "contexts": 7}', "`$.contexts`"),
        ('{"contexts": [{"name": "x"}, {"name": "x"}]}', "two contexts of the name x"),
        ('{"users": [{"name": "u", "user": {"token": 7}}]}', "Expected `str`, got `int` - at `$.users[0].user.token`"),
    ],
)
def test_a_kubeconfig_that_says_too_little_is_told_so_in_one_line(path: Path, content: str | None, said: str) -> None:
    if content is not None:
        path.write_text(content)
    line = refused(path)
    assert line.startswith(f"kubeconfig {path}")
    assert said in line
    assert "secret" not in line


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"client-certificate": "no.crt", "client-key": "no.key"}, "no.crt"),
        ({"client-certificate-data": "!", "client-key-data": "!"}, "client-certificate-data is no base64"),
        ({"client-certificate-data": "eA=="}, "one of client-certificate and client-key without the other"),
        ({"client-certificate-data": "eA==", "client-key-data": "eA=="}, "PEM"),
        ({"tokenFile": "no-token"}, "no-token"),
        ({"token": "a\nb"}, "characters that no token has"),
        (kubeconfigs.plugin("/no/such/plugin"), "its plugin /no/such/plugin gave no credentials: No such file"),
        (kubeconfigs.plugin("sh", "-c", "echo please log in >&2; exit 3"), "exit code 3: please log in"),
        (kubeconfigs.plugin("echo", "garbage"), "it printed no ExecCredential"),
        (kubeconfigs.plugin("echo", "{}"), "it printed no ExecCredential"),
        (kubeconfigs.plugin("true"), "its plugin true gave no credentials"),
        (kubeconfigs.plugin("yes"), "it printed more than"),
        (kubeconfigs.plugin("echo", kubeconfigs.credential("")), "neither a token nor a certificate"),
        ({"token": "t", "as": "root"}, "acts as root"),
        ({"auth-provider": {"name": "gcp"}}, "the auth-provider gcp, which is no more"),
    ],
)
def test_a_user_without_proof_is_told_so_in_one_line(path: Path, user: dict[str, Any], said: str) -> None:
    assert said in refused(kubeconfigs.write(path, user=user))


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ({"certificate-authority": "no.crt"}, "no.crt"),
        ({"certificate-authority-data": "eA=="}, "holds no certificate"),
        ({"server": ""}, "its cluster has no server"),
        ({"proxy-url": "socks5://me:secret@proxy:1080"}, "the proxy proxy:1080 for https://"),
    ],
)
def test_a_cluster_that_can_not_be_called_is_told_so_in_one_line(
    path: Path, cluster: dict[str, Any], said: str
) -> None:
    line = refused(kubeconfigs.write(path, cluster=cluster))
    assert said in line
    assert "secret" not in line


def test_of_several_files_the_first_that_names_a_thing_is_believed(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    kubeconfigs.write(one, server="https://one:1", user={"token": "1"})
    kubeconfigs.write(other, server="https://other:1", user={"token": "2"})
    one.write_text(one.read_text().replace('"current-context": "x"', '"users-of-tomorrow": null'))
    credentials = found(KUBECONFIG=f"{one}:{other}")
    assert (credentials.url, credentials.authorization) == ("https://one:1", "Bearer 1")


def test_a_path_is_meant_from_the_file_that_it_stands_in(tmp_path: Path) -> None:
    """Not to the first of several files, nor to the working directory; the same holds for a plugin's path."""
    there = tmp_path / "there"
    there.mkdir()
    script = there / "plugin"
    script.write_text(f"#!/bin/sh\necho '{kubeconfigs.credential('from-there')}'")
    script.chmod(0o755)
    (tmp_path / "first").write_text("current-context: x")
    kubeconfigs.write(there / "second", user=kubeconfigs.plugin("./plugin"))
    assert found(KUBECONFIG=f"{tmp_path / 'first'}:{there / 'second'}").authorization == "Bearer from-there"


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({"token": "t", "tokenFile": "token"}, "Bearer from-file"),
        ({"token": "t", **kubeconfigs.plugin("false")}, "Bearer t"),
        ({"auth-provider": {"name": "oidc", "config": {"id-token": "i"}}}, "Bearer i"),
    ],
)
def test_of_two_proofs_the_one_that_kubectl_takes(path: Path, user: dict[str, Any], authorization: str) -> None:
    (path.parent / "token").write_text("from-file\n")
    assert found(kubeconfigs.write(path, user=user)).authorization == authorization


def test_a_plugin_is_told_of_the_cluster_where_it_wants_to_know(path: Path, authority: Authority) -> None:
    said = path.parent / "said"
    user = kubeconfigs.plugin("sh", "-c", f'echo "$KUBERNETES_EXEC_INFO" > {said}; {_GIVES}')
    user["exec"] |= {"provideClusterInfo": True, "interactiveMode": "IfAvailable"}
    cluster = {
        "certificate-authority-data": kubeconfigs.embedded(authority.certificate),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    }
    found(kubeconfigs.write(path, user=user, cluster=cluster))
    info = json.loads(said.read_text())
    assert info["kind"] == "ExecCredential"
    assert info["spec"]["interactive"] is False
    assert info["spec"]["cluster"] == {
        "server": "https://192.0.2.1:6443",
        "certificate-authority-data": kubeconfigs.embedded(authority.certificate),
        "config": {"audience": "a"},
    }


_GIVES = f"echo '{kubeconfigs.credential('t')}'"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"interactiveMode": "Always"}, "it has to ask a person, and there is no terminal here"),
        ({"interactiveMode": ""}, "interactiveMode ''; allowed: Never, IfAvailable, Always"),
        (
            {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
            "has apiVersion client.authentication.k8s.io/v1alpha1",
        ),
        ({"apiVersion": "client.authentication.k8s.io/v1beta1"}, "it speaks client.authentication.k8s.io/v1,"),
        ({"command": "no-such-plugin", "installHint": "get it from us"}, "No such file or directory. get it from us"),
    ],
)
def test_a_plugin_that_can_not_be_asked_is_told_so(path: Path, changes: dict[str, str], said: str) -> None:
    user = kubeconfigs.plugin("sh", "-c", _GIVES)
    user["exec"] |= changes
    assert said in refused(kubeconfigs.write(path, user=user))


def test_a_kubeconfig_without_an_end_is_not_read(path: Path) -> None:
    with path.open("wb") as opened:
        opened.truncate(MOST_BYTES + 1)
    assert f"has more than {MOST_BYTES} bytes" in refused(path)
