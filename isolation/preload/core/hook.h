/* How a hook is written and how the driver is called: the same for CUDA and NVML, whose hooks give it
 * their types.
 *
 * Every name that a driver's library exports has an entry in names/entries.S, by the name of which programs call it,
 * and a hidden `real_<name>` that goes to the driver. The entry of a name that is in hooks.def goes to `hook_<name>`
 * instead: unless the calling thread is inside the driver, whose own calls of its exported names would be counted
 * twice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))

/* Declares a function of the driver that is called. A hook declares its own. */
#define DECLARE_REAL(type, name, ...) HIDDEN type real_##name(__VA_ARGS__)

/* Opens the definition of a hook. A name that is not in hooks.def does not compile; a name in hooks.def without a
 * definition does not link. */
#define DEFINE_HOOK(type, name, ...)                                                                                   \
    _Static_assert(HOOK_##name >= 0, "is in hooks.def");                                                               \
    DECLARE_REAL(type, name, __VA_ARGS__);                                                                             \
    HIDDEN type hook_##name(__VA_ARGS__);                                                                              \
    HIDDEN type hook_##name(__VA_ARGS__)

/* The driver's own function, never NULL: where the driver lacks the name, one that says so. */
#define REAL(name) (&real_##name)

/* The value of a call of the driver that may itself call names that it exports: they must not be taken for the
 * program's. May be nested. */
#define DRIVER(call)                                                                                                   \
    __extension__({                                                                                                    \
        driver_depth++;                                                                                                \
        __auto_type result_ = (call);                                                                                  \
        driver_depth--;                                                                                                \
        result_;                                                                                                       \
    })

/* How deep this thread is inside DRIVER. The entries read it too. */
extern HIDDEN __thread unsigned driver_depth __attribute__((tls_model("initial-exec")));
