#define _GNU_SOURCE
#include "container.h"

#include "../../core/os.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* ---- libcuda.so.1, which has the session with the broker --------------------------------------------------------- */

static const char file[] = "libcuda.so.1";

static const struct partage_core *core_beside(void) {
    char path[OS_PATH];
    char *slash = os_own_path(path) ? strrchr(path, '/') : NULL;
    if (!slash || (size_t)(slash - path) + 1 + sizeof file > sizeof path) return NULL;
    memcpy(slash + 1, file, sizeof file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return handle ? dlsym(handle, "partage_core") : NULL;
}

/* Found among the loaded objects, else beside this one. It is not a dependency by name, or a program that uses only
 * NVML would not start if one of the two were missing. */
const struct partage_core *core(void) {
    static const struct partage_core *_Atomic known;
    const struct partage_core *found = atomic_load_explicit(&known, memory_order_acquire);
    if (found) return found;
    KEEP_ERRNO;
    found = dlsym(RTLD_DEFAULT, "partage_core");
    if (!found) found = core_beside();
    if (!found) dlerror(); /* discard the error */
    if (found && found->bytes != sizeof *found) found = NULL;
    atomic_store_explicit(&known, found, memory_order_release);
    return found;
}

/* ---- the container's card ---------------------------------------------------------------------------------------- */

REAL_CALL(nvmlDeviceGetUUID, nvmlDevice device, char *uuid, unsigned bytes);

static int digit(char character) {
    if (character >= '0' && character <= '9') return character - '0';
    if (character >= 'a' && character <= 'f') return character - 'a' + 10;
    if (character >= 'A' && character <= 'F') return character - 'A' + 10;
    return -1;
}

/* Parses `GPU-` or `MIG-` followed by 32 hexadecimal digits with dashes anywhere. */
static bool parse(const char *text, unsigned char uuid[16]) {
    unsigned count = 0;
    for (text += 4; *text && count < 32; text++) {
        const int value = digit(*text);
        if (*text == '-') continue;
        if (value < 0) return false;
        uuid[count / 2] = (unsigned char)(count % 2 ? uuid[count / 2] | value : value << 4);
        count++;
    }
    return count == 32 && !*text;
}

nvml_result container_card(nvmlDevice device, unsigned *card) {
    char text[NVML_UUID_BYTES] = "";
    unsigned char uuid[16];
    const struct partage_core *shared = core();
    TRY(DRIVER(REAL(nvmlDeviceGetUUID)(device, text, sizeof text)));
    if (!shared || !shared->start()) return NVML_UNKNOWN;
    *card = text[0] && text[1] && text[2] && text[3] && parse(text, uuid) ? shared->card_of(uuid) : UINT16_MAX;
    return NVML_OK;
}

nvml_result container_processes(nvmlDevice device, struct processes *processes) {
    unsigned card;
    TRY(container_card(device, &card));
    const int total = core()->processes(card, processes->list, MOST_PROCESSES);
    if (total < 0) return NVML_UNKNOWN;
    processes->count = total < MOST_PROCESSES ? (unsigned)total : MOST_PROCESSES;
    return NVML_OK;
}

bool container_has(const struct processes *processes, uint32_t pid) {
    for (unsigned n = 0; n < processes->count; n++)
        if (processes->list[n].pid == pid) return true;
    return false;
}

nvml_result container_count(unsigned count, unsigned *room, const void *list) {
    const bool fits = count <= *room && (list || !count);
    *room = count;
    return fits ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

/* ---- initialization --------------------------------------------------------------------------------------------- */

REAL_CALL(nvmlShutdown, void);

/* Without a broker there is no card. */
static nvml_result begun(nvml_result result) {
    if (result != NVML_OK) return result;
    const struct partage_core *shared = core();
    if (shared && shared->start()) return NVML_OK;
    DRIVER(REAL(nvmlShutdown)());
    return NVML_UNINITIALIZED;
}

HOOK_CALL(nvmlInit, void) { return begun(DRIVER(REAL(nvmlInit)())); }

HOOK_CALL(nvmlInit_v2, void) { return begun(DRIVER(REAL(nvmlInit_v2)())); }

HOOK_CALL(nvmlInitWithFlags, unsigned flags) { return begun(DRIVER(REAL(nvmlInitWithFlags)(flags))); }
