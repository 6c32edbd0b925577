"""Our own minimal schema of the container runtime interface and of kubelet's pod resources, built in code.

It has only messages and fields that we read; protobuf preserves all others, nested ones too, so a newer kubelet loses
nothing. Text is declared `bytes`: the views decide field by field what is decoded as text, since CRI has turned a
string into bytes before (KeyValue.value) and may again. Maps are declared as their wire format, repeated pairs of key
and value, which preserves order and duplicates. Enums are plain integers. It is proto2, so that a field that was sent
with its default value is sent on.

Generated code would check the version of the installed protobuf, and pin it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {"bytes": _Field.TYPE_BYTES, "int": _Field.TYPE_INT64, "bool": _Field.TYPE_BOOL}

# Each field: number, type, name; `*` after the type: repeated.
_MESSAGES: Final = {
    "Pair": "1 bytes key, 2 bytes value",
    "CreateContainerRequest": "1 bytes pod_sandbox_id, 2 ContainerConfig config, 3 PodSandboxConfig sandbox_config",
    "PodSandboxConfig": (
        "1 PodSandboxMetadata metadata, 6 Pair* labels, 7 Pair* annotations, 8 LinuxPodSandboxConfig linux"
    ),
    "PodSandboxMetadata": "1 bytes name, 2 bytes uid, 3 bytes namespace",
    "LinuxPodSandboxConfig": "2 SecurityContext security_context",
    "ContainerConfig": (
        "1 ContainerMetadata metadata, 2 ImageSpec image, 6 KeyValue* envs, 7 Mount* mounts, 8 Device* devices, "
        "10 Pair* annotations, 15 LinuxContainerConfig linux, 17 CdiDevice* cdi_devices"
    ),
    "ContainerMetadata": "1 bytes name, 2 int attempt",
    "ImageSpec": "1 bytes image, 18 bytes user_specified_image",
    "KeyValue": "1 bytes key, 2 bytes value",
    "Mount": "1 bytes container_path, 2 bytes host_path, 3 bool readonly",
    "Device": "1 bytes container_path, 2 bytes host_path, 3 bytes permissions",
    "CdiDevice": "1 bytes name",
    "LinuxContainerConfig": "1 LinuxContainerResources resources, 2 ContainerSecurityContext security_context",
    # An adjustment's field of the same name sets each of these in a container.
    "LinuxContainerResources": "10 int memory_swap_limit_in_bytes",
    # A container's and a sandbox's security context number their fields differently.
    "ContainerSecurityContext": "1 Capabilities capabilities, 2 bool privileged, 3 NamespaceOption namespace_options",
    "SecurityContext": "1 NamespaceOption namespace_options",
    "Capabilities": "1 bytes* add_capabilities, 3 bytes* add_ambient_capabilities",
    "NamespaceOption": "2 int pid, 4 bytes target_id",
    "ListContainersResponse": "1 ListedContainer* containers",
    "ListedContainer": (
        "1 bytes id, 2 bytes pod_sandbox_id, 3 ContainerMetadata metadata, 6 int state, 8 Pair* labels, "
        "9 Pair* annotations"
    ),
    "ContainerStatusRequest": "1 bytes container_id, 2 bool verbose",
    "ContainerStatusResponse": "2 Pair* info",
    "StopContainerRequest": "1 bytes container_id, 2 int timeout",
    "StatusRequest": "1 bool verbose",
    "StatusResponse": "2 Pair* info",
    "VersionResponse": "2 bytes runtime_name, 3 bytes runtime_version",
    "ListPodSandboxRequest": "1 PodSandboxFilter filter",
    "PodSandboxFilter": "1 bytes id",
    "ListPodSandboxResponse": "1 ListedSandbox* items",
    "ListedSandbox": "1 bytes id, 2 PodSandboxMetadata metadata, 3 int state, 7 bytes runtime_handler",
    "ListImagesResponse": "1 StoredImage* images",
    "StoredImage": "2 bytes* repo_tags, 3 bytes* repo_digests, 8 bool pinned",
    "ListPodResourcesResponse": "1 PodResources* pod_resources",
    "PodResources": "1 bytes name, 2 bytes namespace, 3 ContainerResources* containers",
    "ContainerResources": "1 bytes name, 2 ContainerDevices* devices, 5 DynamicResource* dynamic_resources",
    "ContainerDevices": "1 bytes resource_name, 2 bytes* device_ids",
    "DynamicResource": "4 ClaimResource* claim_resources",
    "ClaimResource": "1 CdiDevice* cdi_devices, 2 bytes driver_name, 4 bytes device_name",
}


def classes(package: str, messages: Mapping[str, str]) -> Callable[[str], type[Message]]:
    """The class of each of these messages, by name, from a descriptor pool of their own."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto2")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field in filter(None, fields.split(",")):
            _add_field(message, package, *field.split())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


def _add_field(message: descriptor_pb2.DescriptorProto, package: str, number: str, type_: str, name: str) -> None:
    repeated, type_ = type_.endswith("*"), type_.removesuffix("*")
    label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=int(number), label=label)
    if type_ in _SCALARS:
        field.type = _SCALARS[type_]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{package}.{type_}"


_class: Final = classes("partage.cri", _MESSAGES)

RESOURCES: Final = tuple(_class("LinuxContainerResources").DESCRIPTOR.fields_by_name)
CreateContainerRequest: Final = _class("CreateContainerRequest")
ListContainersResponse: Final = _class("ListContainersResponse")
ContainerStatusRequest: Final = _class("ContainerStatusRequest")
ContainerStatusResponse: Final = _class("ContainerStatusResponse")
StopContainerRequest: Final = _class("StopContainerRequest")
StatusRequest: Final = _class("StatusRequest")
StatusResponse: Final = _class("StatusResponse")
VersionResponse: Final = _class("VersionResponse")
ListPodSandboxRequest: Final = _class("ListPodSandboxRequest")
ListPodSandboxResponse: Final = _class("ListPodSandboxResponse")
ListImagesResponse: Final = _class("ListImagesResponse")
ListPodResourcesResponse: Final = _class("ListPodResourcesResponse")
