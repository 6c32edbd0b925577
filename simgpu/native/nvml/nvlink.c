/* NVLinks between cards. */
#include "library.h"

static bool is_active(const struct sim_model *model, u32 link) { return link < model->nvlinks && link < SIM_LINKS; }

/* As CALL_CARD, for an existing link of the card. */
#define CALL_LINK(pointer)                                                                                             \
    CALL_CARD_OUT(pointer);                                                                                            \
    if (model->nvlinks == 0) return NVML_NOT_SUPPORTED;                                                                \
    NEEDS(link < SIM_LINKS)

#define CALL_ACTIVE_LINK(pointer)                                                                                      \
    CALL_LINK(pointer);                                                                                                \
    if (!is_active(model, link)) return NVML_NOT_SUPPORTED

NVML(nvmlDeviceGetNvLinkState, nvmlDevice device, u32 link, u32 *active) {
    CALL_LINK(active);
    *active = is_active(model, link);
    return NVML_OK;
}

enum { REMOTE_GPU = 0, REMOTE_SWITCH = 2 };

/* A link that does not end at a card of the node ends at a switch, about which nothing else is known. */
NVML(nvmlDeviceGetNvLinkRemoteDeviceType, nvmlDevice device, u32 link, u32 *type) {
    CALL_ACTIVE_LINK(type);
    *type = model->link_to[link] >= 0 ? REMOTE_GPU : REMOTE_SWITCH;
    return NVML_OK;
}

static const struct sim_model *remote_of(const struct session *session, const struct sim_model *model, u32 link) {
    const int32_t other = model->link_to[link];
    return other >= 0 && (u32)other < session->file->cards ? model_of(session, (u32)other) : NULL;
}

NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlDevice device, u32 link, struct nvml_pci *pci) {
    CALL_ACTIVE_LINK(pci);
    const struct sim_model *remote = remote_of(call.session, model, link);
    if (remote == NULL) return NVML_NOT_SUPPORTED;
    fill_pci(remote, pci);
    return NVML_OK;
}

NVML(nvmlDeviceGetNvLinkRemotePciInfo, nvmlDevice device, u32 link, void *pci) {
    CALL_ACTIVE_LINK(pci);
    const struct sim_model *remote = remote_of(call.session, model, link);
    if (remote == NULL) return NVML_NOT_SUPPORTED;
    struct nvml_pci all;
    fill_pci(remote, &all);
    memcpy(pci, &all, offsetof(struct nvml_pci, bus_id));
    return NVML_OK;
}

/* No fabric manager has registered the card: on hardware without one, Hopper and later report that. */
static nvml_result fabric(const struct sim_model *model) {
    return model->architecture >= NVML_HOPPER ? NVML_OK : NVML_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetGpuFabricInfo, nvmlDevice device, struct nvml_fabric *info) {
    CALL_CARD_OUT(info);
    TRY(fabric(model));
    *info = (struct nvml_fabric){0};
    return NVML_OK;
}

enum { FABRIC_V2_SIZE = 36 };
_Static_assert(offsetof(struct nvml_fabric_v3, summary) == FABRIC_V2_SIZE, "version 2 ends where version 3 goes on");

NVML(nvmlDeviceGetGpuFabricInfoV, nvmlDevice device, struct nvml_fabric_v3 *info) {
    CALL_CARD_OUT(info);
    const u32 version = info->version;
    const bool second = version == (FABRIC_V2_SIZE | 2u << 24);
    if (!second) TRY(check_version(version, NVML_VERSION_OF(struct nvml_fabric_v3, 3)));
    TRY(fabric(model));
    const struct nvml_fabric_v3 nothing = {.version = version};
    memcpy(info, &nothing, second ? FABRIC_V2_SIZE : sizeof(nothing));
    return NVML_OK;
}
