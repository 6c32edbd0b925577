"""Kubelet's messages to a DRA driver and the responses, built in code; see `partage_base.cri.schema`."""

from __future__ import annotations

from typing import Final

from partage_base.cri.schema import classes

_MESSAGES: Final = {
    "InfoRequest": "",
    "PluginInfo": "1 bytes type, 2 bytes name, 3 bytes endpoint, 4 bytes* supported_versions",
    "RegistrationStatus": "1 bool plugin_registered, 2 bytes error",
    "RegistrationStatusResponse": "",
    "ClaimsRequest": "1 Claim* claims",
    "Claim": "1 bytes namespace, 2 bytes uid, 3 bytes name",
    "PrepareResponse": "1 PrepareEntry* claims",
    "PrepareEntry": "1 bytes key, 2 PrepareResult value",
    "PrepareResult": "1 Device* devices, 2 bytes error",
    "Device": (
        "1 bytes* request_names, 2 bytes pool_name, 3 bytes device_name, 4 bytes* cdi_device_ids, 5 bytes share_id"
    ),
    "UnprepareResponse": "1 UnprepareEntry* claims",
    "UnprepareEntry": "1 bytes key, 2 UnprepareResult value",
    "UnprepareResult": "1 bytes error",
    "HealthRequest": "",
    "HealthResponse": "1 DeviceHealth* devices",
    "DeviceHealth": (
        "1 DeviceIdentifier device, 2 int health, 3 int last_updated_time, 4 int health_check_timeout_seconds, "
        "5 bytes message"
    ),
    "DeviceIdentifier": "1 bytes pool_name, 2 bytes device_name",
}

_class: Final = classes("partage.dra", _MESSAGES)

InfoRequest: Final = _class("InfoRequest")
PluginInfo: Final = _class("PluginInfo")
RegistrationStatus: Final = _class("RegistrationStatus")
RegistrationStatusResponse: Final = _class("RegistrationStatusResponse")
ClaimsRequest: Final = _class("ClaimsRequest")
PrepareResponse: Final = _class("PrepareResponse")
UnprepareResponse: Final = _class("UnprepareResponse")
HealthRequest: Final = _class("HealthRequest")
HealthResponse: Final = _class("HealthResponse")
