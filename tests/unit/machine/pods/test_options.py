"""Flags of `run`: what they make of a pod, and what of them is refused with what to say instead."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.machine.pods.document import read_pod, restart_in, yaml_of
from partage_cli.machine.pods.options import Options, OptionWrong, env_lines, named_after_image, pod_of, restart_of
from partage_cli.machine.pods.pod import Container, ContainerPort, EmptyDir, HostPath, SecurityContext
from partage_plugins.codecs.native import read_requests
from partage_plugins.vocabulary.names import ContainerName, Namespace, PodName, PodUid
from partage_plugins.vocabulary.pods import Pod as Seen
from partage_plugins.vocabulary.pods import PodContainer, PodRef


def container(**said: Any) -> Container:
    return pod_of(Options(image="image", **said)).spec.containers[0]


def test_an_image_alone_is_a_pod_without_a_card_that_runs_once() -> None:
    pod = pod_of(Options(image="busybox"))
    assert pod.spec.containers == (Container(name="main", image="busybox"),)
    assert pod.spec.restart_policy == "Never"
    assert pod.metadata.annotations == {}


@pytest.mark.parametrize(
    ("said", "limits", "limit"),
    [
        ({"share": 300}, {"partage.dev/gpu-milli": 300}, None),
        ({"share": 300, "limit": 500}, {"partage.dev/gpu-milli": 300}, "500"),
        ({"memory": "4Gi"}, {"partage.dev/gpu-memory": "4Gi"}, None),
        ({"cards": 2}, {"partage.dev/gpus": 2, "partage.dev/gpu-milli": 2000}, None),
        ({"cards": 2, "share": 600}, {"partage.dev/gpus": 2, "partage.dev/gpu-milli": 600}, None),
        ({"cards": 2, "memory": "8Gi"}, {"partage.dev/gpus": 2, "partage.dev/gpu-memory": "8Gi"}, None),
        ({"cpus": "1.5", "ram": "2Gi"}, {"cpu": "1.5", "memory": "2Gi"}, None),
    ],
)
def test_amounts_are_written_as_the_native_dialect_reads_them(
    said: dict[str, Any], limits: dict[str, object], limit: str | None
) -> None:
    pod = pod_of(Options(image="image", **said))
    assert pod.spec.containers[0].resources.limits == limits
    assert pod.metadata.annotations.get("partage.dev/limit-milli") == limit
    shown = PodContainer(name=ContainerName("main"), limits={name: str(value) for name, value in limits.items()})
    ref = PodRef(namespace=Namespace("default"), name=PodName("p"), uid=PodUid("u"))
    asked = read_requests(Seen(ref=ref, annotations=pod.metadata.annotations, containers=(shown,)))
    assert bool(asked) == any("/" in name for name in limits)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"arguments": ("a", "b")}, ((), ("a", "b"))),
        ({"entrypoint": "/sh", "arguments": ("-c", "x")}, (("/sh",), ("-c", "x"))),
        ({"entrypoint": "", "arguments": ("x",)}, (("x",), ())),
    ],
)
def test_entrypoint_and_arguments_are_dockers(said: dict[str, Any], expected: tuple[object, object]) -> None:
    made = container(**said)
    assert (made.command, made.args) == expected


def test_a_name_alone_takes_the_users_value_and_a_later_value_wins() -> None:
    made = container(
        env_lines=env_lines("# no\n\n  A=file\nB=b=b\n"), env=("A=flag", "HOME", "GONE"), environment={"HOME": "/root"}
    )
    assert [(each.name, each.value) for each in made.env] == [("A", "flag"), ("B", "b=b"), ("HOME", "/root")]


def test_volumes_are_paths_of_the_machine_or_folders_of_the_pod() -> None:
    pod = pod_of(Options(image="i", volumes=("/a:/b", "./c:/d:ro", "..:/e", "/f"), folder="/home/u"))
    assert [volume.host_path for volume in pod.spec.volumes] == [
        HostPath(path="/a"),
        HostPath(path="/home/u/c"),
        HostPath(path="/home"),
        None,
    ]
    assert pod.spec.volumes[3].empty_dir == EmptyDir()
    mounts = pod.spec.containers[0].volume_mounts
    assert [(mount.mount_path, mount.read_only) for mount in mounts] == [
        ("/b", False),
        ("/d", True),
        ("/e", False),
        ("/f", False),
    ]
    assert [mount.name for mount in mounts] == [volume.name for volume in pod.spec.volumes]


@pytest.mark.parametrize(
    ("said", "port"),
    [
        ("8080:80", ContainerPort(container_port=80, host_port=8080)),
        ("127.0.0.1:53:53/udp", ContainerPort(container_port=53, host_port=53, host_ip="127.0.0.1", protocol="UDP")),
        ("[::1]:1:2/tcp", ContainerPort(container_port=2, host_port=1, host_ip="::1")),
    ],
)
def test_ports_are_dockers(said: str, port: ContainerPort) -> None:
    assert container(publish=(said,)).ports == (port,)


def test_a_user_is_numbers() -> None:
    assert container(user="1000:2000", privileged=True).security_context == SecurityContext(
        privileged=True, run_as_user=1000, run_as_group=2000
    )
    assert container(user="7").security_context == SecurityContext(run_as_user=7)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"publish": ("80",)}, "HOST:CONTAINER"),
        ({"publish": ("80:0",)}, "1-65535"),
        ({"publish": ("1-9:1-9",)}, "HOST:CONTAINER"),
        ({"publish": ("80:80",), "network": "host"}, "--network host"),
        ({"volumes": ("data:/x",)}, "no named volumes"),
        ({"volumes": ("/a:b",)}, "whole path"),
        ({"volumes": ("/a:/b:z",)}, "HERE:THERE:ro"),
        ({"volumes": (":/b",)}, "HERE:THERE"),
        ({"volumes": ("~/a:/b",)}, "whole path"),
        ({"user": "www-data"}, "in numbers"),
        ({"env": ("=x",)}, "NAME=VALUE"),
        ({"env": ("A\0=x",)}, "NAME=VALUE"),
        ({"labels": ("=x",)}, "NAME=VALUE"),
        ({"limit": 500}, "say --share"),
        ({"entrypoint": ""}, "a command after the image"),
        ({"name": "Not A Name"}, "metadata.name"),
        ({"stop_timeout": 9999}, "terminationGracePeriodSeconds"),
        ({"workdir": "/" + "x", "image": ""}, "image"),
    ],
)
def test_what_can_not_be_is_refused_with_what_to_say_instead(said: dict[str, Any], words: str) -> None:
    said = {**said} if "image" in said else {"image": "image", **said}
    with pytest.raises(OptionWrong, match=words) as wrong:
        pod_of(Options(**said))
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("no", ("no", 0)),
        ("on-failure", ("on-failure", 0)),
        ("on-failure:5", ("on-failure", 5)),
        ("always", ("always", 0)),
        ("unless-stopped", ("unless-stopped", 0)),
    ],
)
def test_restart_policies_are_dockers(said: str, meant: tuple[str, int]) -> None:
    assert restart_of(said) == meant


@pytest.mark.parametrize("said", ["", "never", "on-failure:0", "on-failure:-1", "always:3", "on-failure:", "Always"])
def test_other_restart_policies_are_refused(said: str) -> None:
    with pytest.raises(OptionWrong, match="unless-stopped"):
        restart_of(said)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("busybox", "busybox"),
        ("registry:5000/team/App_1:1.2", "app-1"),
        ("x@sha256:abc", "x"),
        ("a/___", "pod"),
    ],
)
def test_a_document_is_named_after_its_image(image: str, name: str) -> None:
    assert named_after_image(image) == name


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
PATHS = st.from_regex(r"/[a-z0-9.]{1,8}(/[a-z]{1,4})?", fullmatch=True)
PORTS = st.integers(1, 65535)


@given(
    st.fixed_dictionaries(
        {"image": NAMES},
        optional={
            "arguments": st.lists(WORDS, max_size=3),
            "share": st.integers(0, 4000),
            "memory": st.sampled_from(["4Gi", "512Mi", "1e9"]),
            "cards": st.integers(1, 8),
            "name": NAMES,
            "interactive": st.booleans(),
            "tty": st.booleans(),
            "restart": st.sampled_from(["no", "on-failure", "always"]),
            "env": st.lists(st.builds("{}={}".format, NAMES, WORDS), max_size=3),
            "volumes": st.lists(st.builds("{}:{}:ro".format, PATHS, PATHS) | PATHS, max_size=3),
            "publish": st.lists(st.builds("{}:{}/udp".format, PORTS, PORTS), max_size=2),
            "user": st.builds("{}:{}".format, PORTS, PORTS),
            "entrypoint": NAMES,
            "hostname": NAMES,
            "labels": st.lists(st.builds("{}={}".format, NAMES, WORDS), max_size=2),
            "cpus": st.sampled_from(["1.5", "500m"]),
            "ram": st.sampled_from(["2Gi"]),
            "privileged": st.booleans(),
            "pull": st.sampled_from(["missing", "always", "never"]),
            "stop_timeout": st.integers(0, 3600),
        },
    )
)
def test_what_flags_make_is_the_same_after_yaml(said: dict[str, Any]) -> None:
    pod = pod_of(Options(**said))
    assert read_pod(yaml_of(pod).encode()) == (pod, ())
    assert restart_in(pod) == said.get("restart", "no")
