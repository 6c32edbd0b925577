/* The border to the driver, libnvidia-ml: as core/driver.h, which see. */
#pragma once

#include "../core/hook.h"
#include "abi.h"

enum hook {
#define HOOK(name) HOOK_##name,
#include "hooks.def"
#undef HOOK
    HOOKS
};

#define HOOK_CALL(name, ...) DEFINE_HOOK(nvml_result, name, __VA_ARGS__)
#define REAL_CALL(name, ...) DECLARE_REAL(nvml_result, name, __VA_ARGS__)

struct partage_core;

/* What libcuda.so.1 of the same folder shares; NULL where it isn't there. */
HIDDEN const struct partage_core *core(void);
