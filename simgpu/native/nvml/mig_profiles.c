/* MIG profiles: how a card can be partitioned; GPU instances and compute instances as objects.
 *
 * A card has seven compute slices and eight memory slices. Profile numbers are the same for all cards that support
 * sevenths; within an architecture, so are the multiprocessors of a profile.
 */
#define _GNU_SOURCE
#include "library.h"

#include <stdio.h>

enum { MEMORY_SLICES = 8, PROFILES = 18, ONE_CORE_LESS = 7 };

struct profile {
    u32 number;                    /* used by programs */
    u32 id;                        /* used by instances */
    u32 slices, memory;            /* out of 7 and 8 */
    u32 most;                      /* instances of it that fit on a card */
    u32 ampere_sms, hopper_sms;
    const char *suffix;
};

static const struct profile profiles[] = {
    {0, 19, 1, 1, 7, 14, 16, ""}, {1, 14, 2, 2, 3, 28, 32, ""}, {2, 9, 3, 4, 2, 42, 60, ""},
    {3, 5, 4, 4, 1, 56, 64, ""},  {4, 0, 7, 8, 1, 98, 132, ""}, {7, 20, 1, 1, 1, 14, 16, "+me"},
    {9, 15, 1, 2, 4, 14, 26, ""},
};
enum { KNOWN = sizeof(profiles) / sizeof(*profiles) };

static const struct profile *by_number(u32 number) {
    for (u32 i = 0; i < KNOWN; i++)
        if (profiles[i].number == number) return &profiles[i];
    return NULL;
}

static u64 memory_of(const struct sim_model *whole, const struct profile *profile) {
    return whole->memory / MEMORY_SLICES * profile->memory;
}

/* The profile that an instance was created from: matching slices, and the nearest memory size. */
static const struct profile *profile_of(const struct sim_model *whole, const struct sim_model *instance) {
    const bool media = strstr(instance->mig_profile, "+me") != NULL;
    const struct profile *best = NULL;
    for (u32 i = 0; i < KNOWN; i++) {
        const struct profile *profile = &profiles[i];
        if (profile->slices != instance->mig_slices || (profile->suffix[0] != 0) != media) continue;
        const u64 memory = memory_of(whole, profile), half = whole->memory / MEMORY_SLICES / 2;
        if (best == NULL || (instance->memory + half >= memory && memory > memory_of(whole, best))) best = profile;
    }
    return best;
}

/* "MIG 1g.18gb", or the name that an existing instance of the profile has. */
static void name_profile(const struct session *session, u32 card, const struct profile *profile, char name[96]) {
    const struct sim_model *whole = model_of(session, card);
    const u64 gib = SIM_MIB << 10;
    const u32 size = (u32)((memory_of(whole, profile) + gib / 2) / gib);
    memset(name, 0, 96);
    snprintf(name, 96, "MIG %ug.%ugb%s", profile->slices, size, profile->suffix);
    for (u32 i = next_instance(session, card, 0); i < session->file->cards; i = next_instance(session, card, i + 1))
        if (profile_of(whole, model_of(session, i)) == profile)
            snprintf(name, 96, "MIG %.31s", model_of(session, i)->mig_profile);
}

static void fill_profile(const struct session *session, u32 card, const struct profile *profile,
                         struct nvml_gpu_profile_v2 *info) {
    const struct sim_model *whole = model_of(session, card);
    *info = (struct nvml_gpu_profile_v2){
        .id = profile->id,
        .slices = profile->slices,
        .instances = profile->most,
        .sms = whole->architecture >= NVML_HOPPER ? profile->hopper_sms : profile->ampere_sms,
        .copy_engines = profile->slices,
        .decoders = profile->slices / 2 + (profile->suffix[0] != 0),
        .memory_mib = memory_of(whole, profile) / SIM_MIB,
    };
    name_profile(session, card, profile, info->name);
}

/* As CALL_CARD, for cards that support MIG, and a known profile. */
#define CALL_PROFILE(which, pointer)                                                                                   \
    CALL_CARD_OUT(pointer);                                                                                            \
    if (!model->mig_capable) return NVML_NOT_SUPPORTED;                                                                \
    const struct profile *const profile = which;                                                                       \
    if (profile == NULL) return NVML_NOT_SUPPORTED

/* Fields common to all versions. */
#define NUMBERS_OF(all)                                                                                                \
    .id = (all).id, .slices = (all).slices, .instances = (all).instances, .sms = (all).sms,                            \
    .copy_engines = (all).copy_engines, .decoders = (all).decoders, .memory_mib = (all).memory_mib

NVML(nvmlDeviceGetGpuInstanceProfileInfo, nvmlDevice device, u32 number, struct nvml_gpu_profile *info) {
    NEEDS(number < PROFILES);
    CALL_PROFILE(by_number(number), info);
    struct nvml_gpu_profile_v2 all;
    fill_profile(call.session, card, profile, &all);
    *info = (struct nvml_gpu_profile){NUMBERS_OF(all)};
    return NVML_OK;
}

/* Versions 2 and 3. */
static nvml_result give_profile(const struct session *session, u32 card, const struct profile *profile, void *info) {
    struct nvml_gpu_profile_v2 all;
    const u32 version = *(const u32 *)info;
    const bool second = version == NVML_VERSION_OF(struct nvml_gpu_profile_v2, 2);
    if (!second) TRY(check_version(version, NVML_VERSION_OF(struct nvml_gpu_profile_v3, 3)));
    fill_profile(session, card, profile, &all);
    all.version = version;
    if (second) {
        memcpy(info, &all, sizeof(all));
        return NVML_OK;
    }
    struct nvml_gpu_profile_v3 third = {.version = version, NUMBERS_OF(all)};
    memcpy(third.name, all.name, sizeof(third.name));
    memcpy(info, &third, sizeof(third));
    return NVML_OK;
}

NVML(nvmlDeviceGetGpuInstanceProfileInfoV, nvmlDevice device, u32 number, void *info) {
    NEEDS(number < PROFILES);
    CALL_PROFILE(by_number(number), info);
    return give_profile(call.session, card, profile, info);
}

/* ---- GPU instances ----------------------------------------------------------------------------------------------- */

/* Instance placement is not modelled: the instance's number stands for it. */
static struct nvml_placement placement_of(const struct sim_model *instance, const struct profile *profile) {
    return (struct nvml_placement){.start = instance->gpu_instance % MEMORY_SLICES, .size = profile->memory};
}

NVML(nvmlDeviceGetGpuInstanceById, nvmlDevice device, u32 id, nvmlGpuInstance *instance) {
    CALL_CARD_OUT(instance);
    if (!model->mig_enabled) return NVML_NOT_SUPPORTED;
    u32 i = next_instance(call.session, card, 0);
    while (i < call.session->file->cards && model_of(call.session, i)->gpu_instance != id)
        i = next_instance(call.session, card, i + 1);
    if (i >= call.session->file->cards) return NVML_NOT_FOUND;
    *instance = gpu_instance_handle(call.session, i);
    return NVML_OK;
}

/* As CALL_ANY, for GPU and compute instances. */
#define CALL_OBJECT(find, handle, pointer)                                                                             \
    CALL;                                                                                                              \
    NEEDS((pointer) != NULL);                                                                                          \
    u32 card;                                                                                                          \
    TRY(find(call.session, handle, &card));                                                                            \
    const struct sim_model *const model = model_of(call.session, card);                                                \
    const u32 parent = whole_card(call.session, card);                                                                 \
    const struct profile *const profile = profile_of(model_of(call.session, parent), model);                           \
    NEEDS(is_instance(call.session, card) && profile != NULL)

NVML(nvmlGpuInstanceGetInfo, nvmlGpuInstance instance, struct nvml_gpu_instance_info *info) {
    CALL_OBJECT(gpu_instance_of, instance, info);
    *info = (struct nvml_gpu_instance_info){
        .device = device_of(call.session, parent),
        .id = model->gpu_instance,
        .profile = profile->id,
        .placement = placement_of(model, profile),
    };
    return NVML_OK;
}

/* A compute instance spans its whole GPU instance: the profile with as many slices. */
NVML(nvmlGpuInstanceGetComputeInstanceProfileInfo, nvmlGpuInstance instance, u32 number, u32 engines,
     struct nvml_compute_profile *info) {
    CALL_OBJECT(gpu_instance_of, instance, info);
    NEEDS(engines == 0);
    const struct profile *wanted = by_number(number);
    if (wanted == NULL || wanted->slices != profile->slices || number >= ONE_CORE_LESS) return NVML_NOT_SUPPORTED;
    *info = (struct nvml_compute_profile){
        .id = number,
        .slices = profile->slices,
        .instances = 1,
        .sms = model->sms,
        .copy_engines = profile->slices,
    };
    return NVML_OK;
}

/* ---- Compute instances ------------------------------------------------------------------------------------------- */

NVML(nvmlGpuInstanceGetComputeInstanceById, nvmlGpuInstance instance, u32 id, nvmlComputeInstance *found) {
    CALL_OBJECT(gpu_instance_of, instance, found);
    for (u32 i = next_instance(call.session, parent, 0); i < call.session->file->cards;
         i = next_instance(call.session, parent, i + 1)) {
        const struct sim_model *other = model_of(call.session, i);
        if (other->gpu_instance != model->gpu_instance || other->compute_instance != id) continue;
        *found = compute_instance_handle(call.session, i);
        return NVML_OK;
    }
    return NVML_NOT_FOUND;
}

/* The number of the profile with as many slices: these numbers come first and are the same for GPU and compute
 * profiles. */
static u32 compute_number(const struct profile *profile) {
    u32 number = 0;
    while (profiles[number].slices != profile->slices) number++;
    return profiles[number].number;
}

static nvml_result compute_info(nvmlComputeInstance instance, struct nvml_compute_instance_info *info, size_t size) {
    CALL_OBJECT(compute_instance_of, instance, info);
    const struct nvml_compute_instance_info all = {
        .device = device_of(call.session, parent),
        .gpu_instance = gpu_instance_handle(call.session, card),
        .id = model->compute_instance,
        .profile = compute_number(profile),
        .placement = {.start = 0, .size = profile->slices},
    };
    memcpy(info, &all, size);
    return NVML_OK;
}
NVML(nvmlComputeInstanceGetInfo_v2, nvmlComputeInstance instance, struct nvml_compute_instance_info *info) {
    return compute_info(instance, info, sizeof(*info));
}
/* The first version lacks the placement. */
NVML(nvmlComputeInstanceGetInfo, nvmlComputeInstance instance, struct nvml_compute_instance_info *info) {
    return compute_info(instance, info, offsetof(struct nvml_compute_instance_info, placement));
}
