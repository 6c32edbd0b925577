/* How a hook is written and how the driver is called, for both CUDA and NVML, whose hooks add their types.
 *
 * Every name that a driver library exports has an entry in names/entries.S under the name that programs call, and a
 * hidden `real_<name>` that leads to the driver. The entry of a name in hooks.def leads to `hook_<name>` instead,
 * unless the calling thread is already inside the driver: the driver's own calls to its exported names would be counted
 * twice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))

/* Declares a driver function for calling. A hook declares its own. */
#define DECLARE_REAL(type, name, ...) HIDDEN type real_##name(__VA_ARGS__)

/* Opens the definition of a hook. A name that is missing from hooks.def does not compile; a name in hooks.def without a
 * definition does not link. */
#define DEFINE_HOOK(type, name, ...)                                                                                   \
    _Static_assert(HOOK_##name >= 0, "is in hooks.def");                                                               \
    DECLARE_REAL(type, name, __VA_ARGS__);                                                                             \
    HIDDEN type hook_##name(__VA_ARGS__);                                                                              \
    HIDDEN type hook_##name(__VA_ARGS__)

/* The driver's own function, never NULL: if the driver lacks the name, a function that returns the matching error. */
#define REAL(name) (&real_##name)

/* The value of a driver call during which the driver may call names that it exports; those calls are not treated as the
 * program's. Nestable. */
#define DRIVER(call)                                                                                                   \
    __extension__({                                                                                                    \
        driver_depth++;                                                                                                \
        __auto_type result_ = (call);                                                                                  \
        driver_depth--;                                                                                                \
        result_;                                                                                                       \
    })

/* Nesting depth of DRIVER in this thread. The entries read it too. */
extern HIDDEN __thread unsigned driver_depth __attribute__((tls_model("initial-exec")));
