"""Components that are files of Debian packages, each in one version that its digest verifies. Data only.

They use the machine's own libraries; few systems have the versions named here.
"""

from __future__ import annotations

from typing import Final

from rig.programs.recipes import Archived, Package


def _driver(version: str, release: str, *, libcuda: tuple[str, str], libnvidia_ml: tuple[str, str]) -> Archived:
    """User-mode libraries of NVIDIA's driver, which answer many calls without a card; each with package and digest."""
    number = version.partition("-")[0]
    packages = (("libcuda", *libcuda), ("libnvidia-ml", *libnvidia_ml))
    return Archived(
        f"driver-{number.partition('.')[0]}",
        release,
        "non-free",
        version,
        tuple(
            Package(package, digest, f"usr/lib/x86_64-linux-gnu/nvidia/*/{library}.so.{number}", f"{library}.so.1")
            for library, package, digest in packages
        ),
    )


DRIVERS: Final = (
    _driver(
        "470.256.02-1~deb12u1",
        "bookworm",
        libcuda=("libnvidia-tesla-470-cuda1", "0ef309cde7850f977b54e9914346a8a258fb716b474f76bb61539c239b492858"),
        libnvidia_ml=("libnvidia-tesla-470-ml1", "14b876d2da6fc2b3271c2170a4e69f9ce06b67d608016b7bc1c9119883dc95c2"),
    ),
    _driver(
        "535.261.03-1",
        "bookworm",
        libcuda=("libcuda1", "de1e9ca34164a5983b3f752e6699cf1ad924790f1a843b7d582bab6f99206e1e"),
        libnvidia_ml=("libnvidia-ml1", "c729da6ab729309dc3f481fe4d38f04ea03b0793154b0962b60117d2f37d082e"),
    ),
    _driver(
        "550.163.01-2",
        "trixie",
        libcuda=("libcuda1", "8feff97aac61d6f27ded96a3c25b9e68025a680476e6072ff7eaf10623509135"),
        libnvidia_ml=("libnvidia-ml1", "01c1b67d511d7f52c6aa60e14ed56a8eb725d5dc85784a08214d6cb0f4fd1f89"),
    ),
)
_ARM_LIBRARIES: Final = ("ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0")
EMULATOR: Final = Archived(
    "emulator-aarch64",
    "bookworm",
    "main",
    "1:7.2+dfsg-7+deb12u18+b3",
    (
        Package(
            "qemu-user-static",
            "c3e3ba2bd87f8c5b9a5da5ef21b5a3b82d7c63b89dd448d9ddaa4eabc5b6e402",
            "usr/bin/qemu-aarch64-static",
            "qemu-aarch64",
        ),
    ),
)
ARM_LIBC: Final = Archived(
    "libc-aarch64",
    "bookworm",
    "main",
    "2.36-8cross1",
    tuple(
        Package(
            "libc6-arm64-cross",
            "91936cbbee75771c360ed16513f6e734a25ca5517fe7c3e13dfd7835d7553186",
            f"usr/aarch64-linux-gnu/lib/{name}",
            name,
        )
        for name in _ARM_LIBRARIES
    ),
)
"""For the emulator: programs of another architecture run here, one process at a time."""


def _of_bookworm(name: str, version: str, digest: str, *inside: str) -> Archived:
    """Files of a package, under the names that others use for them."""
    return Archived(
        name, "bookworm", "main", version, tuple(Package(name, digest, each, _name(each)) for each in inside)
    )


def _name(inside: str) -> str:
    """`libgpgme.so.11` from `usr/lib/*/libgpgme.so.11.*`."""
    return inside.rpartition("/")[2].removesuffix(".*")


_CRUN: Final = (
    _of_bookworm(
        "crun",
        "1.8.1-1+deb12u1",
        "34bdcf1a097ec34da2e7b77b65fa351134702af775174af22555b16421709c51",
        "usr/bin/crun",
    ),
    _of_bookworm(
        "libyajl2",
        "2.1.0-3+deb12u2",
        "b512a6efbe735e7c731185a1b3ea477ff306f0c3f6aa2970e85b12f01fe8063b",
        "usr/lib/*/libyajl.so.2.*",
    ),
)
PODMAN: Final = (
    _of_bookworm(
        "podman",
        "4.3.1+ds1-8+deb12u1+b3",
        "881ab556a1df5b911359c83a647597eb36c156a8615e754436e520a6ae0661ab",
        "usr/bin/podman",
    ),
    _of_bookworm(
        "conmon",
        "2.1.6+ds1-1",
        "2d4111853199dd8c7cbcda3da04f37d9b7f3a7b08dc1cee546a1e5518de8a596",
        "usr/bin/conmon",
    ),
    _of_bookworm(
        "libgpgme11",
        "1.18.0-3+b1",
        "dc075584050dc5c8ac27563fc222e8c1ea71128a019a6d129d5823e47ac1e55e",
        "usr/lib/*/libgpgme.so.11.*",
    ),
    _of_bookworm(
        "libassuan0",
        "2.5.5-5",
        "5912430927da16ccc831459679207fdbb9dfc5a206f2bab8d6f36d5a1ab53e25",
        "usr/lib/*/libassuan.so.0.*",
    ),
    _of_bookworm(
        "libsubid4",
        "1:4.13+dfsg1-1+deb12u2",
        "5c1c214484e57bcfaff4136e6cdbe4e8108776c7159ce7c9087218896a5eb12d",
        "usr/lib/*/libsubid.so.4.*",
    ),
    _of_bookworm(
        "catatonit",
        "0.1.7-1+b2",
        "3ee3137f8499a0b9a77172f57acf73f6da5bd1efd477fb307bb96399b338fc64",
        "usr/bin/catatonit",
    ),
    *_CRUN,
)
"""With its monitor, the pause process of its pods, and its default runtime.

The installed package would start services.
"""
DOCKER: Final = (
    _of_bookworm(
        "docker.io",
        "20.10.24+dfsg1-1+deb12u1+b6",
        "daf8ff8f7aa53e8533d38e386fcc2a11e8f3891210776fb78a84b98feb4eea0e",
        "usr/sbin/dockerd",
        "usr/bin/docker",
    ),
    Archived(
        "tini",
        "bookworm",
        "main",
        "0.19.0-1+b3",
        (
            Package(
                "tini",
                "7d1947665fa40e55f218fefad773dc6de66458d0b39eaa292cdcadfc7c996632",
                "usr/bin/tini-static",
                "docker-init",
            ),
        ),
    ),
)
"""The daemon, the command line, and PID 1 of containers with `--init`. The installed package would be a service."""
