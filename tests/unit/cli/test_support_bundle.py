"""`partage support-bundle` contains what helps to find a fault, and no secret from any source."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import micro_time
from partage_cli.support import here
from partage_cli.support.archive import MOST_FILE_BYTES, Bundle
from partage_cli.support.log_lines import kept_lines
from partage_cli.support.redaction import plain
from partage_plugins.api.keys import SCHEDULER
from support import kubeconfigs
from support.broker import FakeBroker, container, held, pod, told
from support.fake_api import FakeApi, Say
from support.objects import node_body, pod_body
from unit.cli.doctor.made import Made, inventory
from unit.cli.nodes.test_command import LEASES
from unit.cli.program import partage

PLANTED: Final = "pl4nted-Hunter2"
SIGNED: Final = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbDRudGVkIn0.c2lnbmF0dXJl"
KEY: Final = f"-----BEGIN PRIVATE KEY-----\n{PLANTED}\n-----END PRIVATE KEY-----\n"
OURS: Final = "/api/v1/namespaces/partage-system"
AT: Final = "2026-11-28T10:00:00.000000Z"


def line(**fields: object) -> bytes:
    """A line of a daemon's log."""
    head = {"ts": AT, "level": "warning", "event": "the broker answers no more", "daemon": "crishim"}
    return json.dumps(head | fields).encode() + b"\n"


LOG: Final = b"".join(
    (
        line(pod="team-a/train-0", why=f"settings: log_level is '{PLANTED}'; allowed: one of debug, info"),
        line(command=f"run {PLANTED}", environment={"PASSWORD": PLANTED}, url=f"https://{PLANTED}@example"),
        line(why=f"no connection to https://user:{PLANTED}@example:443; Authorization: Bearer {PLANTED} {SIGNED}"),
        line(traceback=f'Traceback:\n  File "/x/a.py", line 7, in f\n    g("{PLANTED}")\nValueError: {PLANTED}\n'),
        f"panic: {PLANTED}\n".encode(),
        f"{AT} warning something happened why=\"a '{PLANTED}'\" url={PLANTED}\n".encode(),
    )
)


def plant(made: Made) -> None:
    """Puts secrets in every place of a node that the bundle reads, or beside it."""
    made.with_cards().with_key().with_kubeadm()
    made.write("etc/partage/signing.d/0123456789abcdef.key", KEY)
    crishim = f'[crishim]\nno_such = "{PLANTED}"\nlog_level = "debug"\n'
    scheduler = f'[scheduler]\nreserve_image = "{PLANTED}"\nin_flight = "{PLANTED}"\nretry_s = 3.0\n'
    made.write("etc/partage/partage.toml", f"# {PLANTED}\n{crishim}{scheduler}[{PLANTED}]\na = 1\n")
    made.write("etc/os-release", f'ID=debian\nVERSION_ID="12"\nSECRET={PLANTED}\n')
    made.write("kubeconfig", KEY)
    made.write("var/lib/kubelet/kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="--token={PLANTED}"\n')


def add_cluster(api: FakeApi) -> None:
    """Puts secrets in every kind of object that the bundle reads, or beside it."""
    hidden = {"x/secret": PLANTED}
    api.objects.create("/api/v1/nodes", node_body("n1", inventory(), {"x": PLANTED}, annotations=hidden))
    beat = {"renewTime": micro_time(datetime.now(UTC)), "leaseDurationSeconds": 40, "holderIdentity": "s1"}
    said = {"by": "s1", "version": "0.1.0", "scheduler_name": "partage-scheduler", "variables": {"PARTAGE_X": PLANTED}}
    lease = {"name": "partage-scheduler", "annotations": {SCHEDULER: json.dumps(said), **hidden}}
    api.objects.create(LEASES, {"metadata": lease, "spec": beat})
    api.objects.create(f"{OURS}/configmaps", {"metadata": {"name": "partage-keys"}, "data": {"note": PLANTED}})
    labels = {"app.kubernetes.io/part-of": "partage", "app.kubernetes.io/name": "partage-advertiser"}
    spec: dict[str, Any] = {"name": "main", "image": "x/partage-node:0.1.0", "env": [{"name": "P", "value": PLANTED}]}
    waits = {"reason": "CrashLoopBackOff", "message": f"back-off of '{PLANTED}'"}
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"waiting": waits}}]}
    pod = pod_body("advertiser-n1", labels, node="n1", annotations=hidden, containers=[spec], status=status)
    api.objects.create(f"{OURS}/pods", pod)
    event: dict[str, Any] = {
        "type": "Warning",
        "reason": "BrokerAway",
        "message": f"it said '{PLANTED}'",
        "eventTime": micro_time(datetime.now(UTC)),
    }
    event |= {"reportingComponent": "partage-advertiser", "involvedObject": {"kind": "Node", "name": "n1"}}
    api.objects.create("/api/v1/namespaces/default/events", {"metadata": {"name": "e1"}, **event})
    api.expect(Say(LOG), under=f"{OURS}/pods/advertiser-n1/log")


def made_bundle(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """The command's output, and the files in the bundle."""
    plant(made := Made(folder / "node"))
    config = folder / "config"
    found = folder / "bundle.tar.gz"

    async def whole() -> subprocess.CompletedProcess[str]:
        async with FakeApi() as api:
            add_cluster(api)
            kubeconfigs.write(config, server=api.url, user={"token": PLANTED})
            argv = ("support-bundle", "--output", str(found), "--kubeconfig", str(config), *words)
            return await asyncio.to_thread(partage, made.root, *argv)

    with FakeBroker(made.root, told(container(pod(), held()), findings=(f"it wrote '{PLANTED}'",))):
        done = asyncio.run(whole())
    return done, unpacked(found.read_bytes()) if found.exists() else {}


def unpacked(packed: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        members = {each.name.partition("/")[2]: tar.extractfile(each) for each in tar.getmembers()}
        return {name: member.read().decode() for name, member in members.items() if member is not None}


@pytest.mark.slow
def test_planted_secrets_are_in_none_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTAGE_SECRET", PLANTED)
    done, files = made_bundle(tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/bundle.tar.gz\n"), done.stderr
    lines = [(name, line) for name, text in {**files, "stderr": done.stderr}.items() for line in text.splitlines()]
    hidden = (SIGNED, "pl4nted", "PRIVATE KEY", "cGw0bnRlZC")
    assert [each for each in lines if any(secret in f"{each}" for secret in hidden)] == []
    assert (tmp_path / "bundle.tar.gz").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_what_helps_is_in_it(tmp_path: Path) -> None:
    _, files = made_bundle(tmp_path)
    contents = json.loads(files.pop("bundle.json"))
    assert contents["files"].keys() == files.keys()
    assert json.loads(files["here/settings.json"])["crishim"] == {"log_level": "debug", "(unknown keys)": 1}
    assert json.loads(files["here/settings.json"])["scheduler"]["retry_s"] == 3.0
    assert json.loads(files["here/top.json"])["containers"][0]["pod"]["name"] == "train-0"
    assert "CrashLoopBackOff" in files["cluster/pods.json"]
    assert "BrokerAway" in files["cluster/doctor.json"]
    assert json.loads(files["cluster/schedulers.json"])[0]["variables"] == ["PARTAGE_X"]
    (first, *_, text) = map(json.loads, files["cluster/logs/advertiser-n1.main.jsonl"].splitlines())
    assert (first["event"], first["pod"]) == ("the broker answers no more", "team-a/train-0")
    assert first["why"] == "settings: log_level is '…'; allowed: one of debug, info"
    assert text["event"] == "something happened"
    assert "1 lines are not" in contents["missing"]["cluster/logs/advertiser-n1.main.jsonl: some lines"]


@pytest.mark.slow
def test_a_file_that_is_there_stays_and_a_cluster_that_is_away_hides_no_other_part(tmp_path: Path) -> None:
    plant(made := Made(tmp_path / "node"))
    there = tmp_path / "there"
    there.write_text("mine")
    argv = ("support-bundle", "--kubeconfig", str(tmp_path / "none"), "--output")
    done = partage(made.root, *argv, str(there))
    assert (done.returncode, there.read_text()) == (1, "mine")
    assert "name another file with --output" in done.stderr
    done = partage(made.root, *argv, str(tmp_path / "new"))
    assert done.returncode == 0
    contents = json.loads(unpacked((tmp_path / "new").read_bytes())["bundle.json"])
    assert "here/doctor.json" in contents["files"]
    assert {"cluster", "here/top.json", "here/journal.jsonl"} <= contents["missing"].keys()


def test_a_defect_goes_by_its_places() -> None:
    kept = kept_lines(LOG.splitlines())
    (traceback,) = [each["traceback"] for each in map(json.loads, kept.text.splitlines()) if "traceback" in each]
    assert traceback == ["/x/a.py:7 f", "ValueError"]
    assert kept.left_out == 1


def test_a_file_that_is_too_large_is_named_and_not_taken() -> None:
    bundle = Bundle()
    bundle.add("here/a", b"0" * (MOST_FILE_BYTES + 1))
    bundle.add("../etc/passwd", b"")
    assert bundle.names == ("README.txt",)
    assert bundle.missing.keys() == {"here/a", "others"}


def test_a_journal_without_end_is_cut() -> None:
    assert sum(map(len, here.said_by(("yes", "x" * 99), within_s=60.0))) <= MOST_FILE_BYTES


@pytest.mark.parametrize(
    "text",
    [
        "node gpu-7 is not in force: kubelet does not speak through crishim",
        "card GPU-5a1e3c8e-0f0b-4d2a-9c11-0123456789ab of pod team-a/train-7d9f8c6b5d-x2x9z in /run/partage/containers",
        "container 0123456789abcdef0123456789abcdef, key 0f3a9c51d2e87b64: the broker's socket isn't the node's",
        "partage.dev/gpu-memory: containers.main.limits[partage.dev/gpu-milli] is 1500; allowed: a multiple of 1000",
    ],
)
def test_sentences_and_ids_stay(text: str) -> None:
    assert plain(text) == text


QUOTES: Final = (
    "'{}'",
    '"{}"',
    "token={}",
    "password: {}",
    "Bearer {}",
    "https://a:{}@host/",
    "secret = '{}'",
    "'it isn't {}'",
    "'{}…",
    "'{}",
)


@given(
    st.text("abcdefghijklmnopqrstuvwxyzABCDEF0123456789+-_", min_size=8, max_size=64).filter(
        lambda each: any(map(str.isdigit, each))
    ),
    st.sampled_from(QUOTES),
    st.sampled_from(("", "it is ", "why: ", "a, b and ")),
)
def test_what_is_quoted_or_named_as_a_secret_never_stays(secret: str, quoted: str, before: str) -> None:
    assert secret not in plain(f"{before}{quoted.format(secret)} and more")
