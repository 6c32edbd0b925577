/* The border to the driver, libcuda: hooks, and calls of the real functions.
 *
 *     HOOK_CALL(cuMemAlloc_v2, CUdeviceptr *address, size_t bytes) {
 *         ...
 *         return DRIVER(REAL(cuMemAlloc_v2)(address, bytes));
 *     }
 *
 * Before the first hook of a process is entered the driver has been looked for and every REAL of hooks.def is known, so
 * a hook may hold locks of its own while it calls them. REAL of another name asks the dynamic linker the first time:
 * no lock may be held then that a library's constructor could wait for.
 */
#pragma once

#include "abi.h"
#include "hooking.h"

enum hook {
#define HOOK(name) HOOK_##name,
#include "hooks.def"
#undef HOOK
    HOOKS
};

#define HOOK_CALL(name, ...) DEFINE_HOOK(CUresult, name, __VA_ARGS__)

/* For a function that is called but not hooked, or hooked in another file:
 *     REAL_CALL(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep); */
#define REAL_CALL(name, ...) DECLARE_REAL(CUresult, name, __VA_ARGS__)
