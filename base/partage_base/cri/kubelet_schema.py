"""What one who speaks as kubelet says and hears, beyond the fields that a proxy looks at; in a pool of its own.

crishim reads every create with the smaller messages of `schema`, which stay as they are, and so does its speed. Numbers
of fields that stand there are not said again here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_base.cri.schema import MESSAGES, classes

_MORE: Final = {
    "VersionRequest": "1 bytes version",
    "StatusResponse": "1 RuntimeStatus status",
    "RuntimeStatus": "1 RuntimeCondition* conditions",
    "RuntimeCondition": "1 bytes type, 2 bool status, 3 bytes reason, 4 bytes message",
    "RunPodSandboxRequest": "1 PodSandboxConfig config, 2 bytes runtime_handler",
    "RunPodSandboxResponse": "1 bytes pod_sandbox_id",
    "PodSandboxConfig": "2 bytes hostname, 3 bytes log_directory, 4 DnsConfig dns_config, 5 PortMapping* port_mappings",
    "PodSandboxMetadata": "4 int attempt",
    "DnsConfig": "1 bytes* servers, 2 bytes* searches, 3 bytes* options",
    "PortMapping": "1 int protocol, 2 int container_port, 3 int host_port, 4 bytes host_ip",
    "SecurityContext": "6 bool privileged, 9 SecurityProfile seccomp",
    "SecurityProfile": "1 int profile_type",
    "NamespaceOption": "1 int network, 3 int ipc",
    "Number": "1 int value",
    "PodSandboxReference": "1 bytes pod_sandbox_id",
    "PodSandboxStatusResponse": "1 PodSandboxStatus status",
    "PodSandboxStatus": "5 PodSandboxNetwork network",
    "PodSandboxNetwork": "1 bytes ip",
    "ListedSandbox": "3 int state, 4 int created_at, 5 Pair* labels, 6 Pair* annotations",
    "ContainerConfig": (
        "3 bytes* command, 4 bytes* args, 5 bytes working_dir, 9 Pair* labels, 11 bytes log_path, 12 bool stdin, "
        "13 bool stdin_once, 14 bool tty"
    ),
    "LinuxContainerResources": ("1 int cpu_period, 2 int cpu_quota, 3 int cpu_shares, 4 int memory_limit_in_bytes"),
    "ContainerSecurityContext": (
        "5 Number run_as_user, 7 bool readonly_rootfs, 12 Number run_as_group, 13 bytes* masked_paths, "
        "14 bytes* readonly_paths, 15 SecurityProfile seccomp"
    ),
    "Capabilities": "2 bytes* drop_capabilities",
    "CreateContainerResponse": "1 bytes container_id",
    "ContainerReference": "1 bytes container_id",
    "ListedContainer": "4 ImageSpec image, 7 int created_at",
    "ContainerStatusResponse": "1 ContainerStatus status",
    "ContainerStatus": (
        "3 int state, 5 int started_at, 6 int finished_at, 7 int exit_code, 10 bytes reason, 11 bytes message, "
        "15 bytes log_path"
    ),
    "ExecRequest": "1 bytes container_id, 2 bytes* cmd, 3 bool tty, 4 bool stdin, 5 bool stdout, 6 bool stderr",
    "AttachRequest": "1 bytes container_id, 2 bool stdin, 3 bool tty, 4 bool stdout, 5 bool stderr",
    "StreamResponse": "1 bytes url",
    "ImageRequest": "1 ImageSpec image",
    "PullImageResponse": "1 bytes image_ref",
    "ImageStatusResponse": "1 StoredImage image",
    "StoredImage": "1 bytes id, 2 bytes* repo_tags, 3 bytes* repo_digests, 4 int size, 8 bool pinned",
    "ListImagesResponse": "1 StoredImage* images",
}


def _whole() -> Iterator[tuple[str, str]]:
    for name in {**MESSAGES, **_MORE}:
        yield name, ", ".join(filter(None, (MESSAGES.get(name, ""), _MORE.get(name, ""))))


kubelet_message: Final = classes("partage.cri.kubelet", dict(_whole()))
"""The class of a message by its name."""
