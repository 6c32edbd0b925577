#include "sharing.h"

/* By name: how often this process has it open. By address: of which name it is, and how often the driver gave
 * it out. */
static struct table names, places;
static struct os_lock placing;

/* ---- names ------------------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t word) {
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    return word ^ word >> 31;
}

/* 0 is no name. */
uint64_t share_name(const void *handle, size_t bytes) {
    const unsigned char *each = handle;
    uint64_t name = bytes;
    for (size_t n = 0; n < bytes; n++) name = mix(name + each[n] + 0x9e3779b97f4a7c15ull);
    return name ? name : 1;
}

bool share_name_of_descriptor(int descriptor, uint64_t *name) {
    struct os_file file;
    if (!os_look_at(descriptor, &file) || file.is_device) return false;
    *name = share_name((uint64_t[]){file.device, file.inode}, 2 * sizeof(uint64_t));
    return true;
}

/* ---- what this process makes ------------------------------------------------------------------------------------- */

static CUresult say_exported(unsigned card, struct wire *packet) {
    packet->what = WIRE_EXPORT;
    packet->card = (uint16_t)card;
    if (!account_ask(packet)) return CUDA_ERROR_NOT_INITIALIZED;
    return packet->result == WIRE_OK ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult share_export(unsigned card, uint64_t number, uint64_t name, uint64_t size) {
    struct wire packet = {.shared = {.name = name, .number = number, .size = size}};
    return say_exported(card, &packet);
}

CUresult share_export_to_anybody(unsigned card, uint64_t number, uint64_t size) {
    const uint64_t own[] = {number, (uint64_t)os_pid(), os_now()};
    struct wire packet = {.flags = WIRE_ANYBODY,
                          .shared = {.name = share_name(own, sizeof own), .number = number, .size = size}};
    return say_exported(card, &packet);
}

/* ---- what it opens ---------------------------------------------------------------------------------------------- */

static CUresult say_open(unsigned card, uint64_t name, uint64_t *size) {
    struct wire packet = {.what = WIRE_OPEN, .card = (uint16_t)card, .shared = {.name = name, .size = *size}};
    if (!account_ask_in_turn(&packet)) return CUDA_ERROR_NOT_INITIALIZED;
    if (packet.result != WIRE_OK) return CUDA_ERROR_OUT_OF_MEMORY;
    *size = packet.shared.size;
    return CUDA_SUCCESS;
}

/* Counted in turn: what is said last is what is true. */
static void close_in_turn(unsigned card, uint64_t name) {
    struct wire packet = {.what = WIRE_CLOSE, .card = (uint16_t)card, .shared = {.name = name}};
    struct entry now;
    if (table_count(&names, name, -1, &now) && now.key && !now.times) account_ask_in_turn(&packet);
}

CUresult share_open(unsigned card, uint64_t name, uint64_t *size) {
    KEEP_ERRNO;
    struct entry now;
    *size = 0;
    if (!account_enter()) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = table_count(&names, name, 1, &now) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        result = say_open(card, name, size);
        if (result != CUDA_SUCCESS) close_in_turn(card, name);
    }
    account_leave_turn();
    return result;
}

CUresult share_size(unsigned card, uint64_t name, uint64_t size) {
    KEEP_ERRNO;
    if (!account_enter()) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = say_open(card, name, &size);
    account_leave_turn();
    return result;
}

/* Without the turn in time it counts as open to the end of the process: more than true, never less. */
void share_close(unsigned card, uint64_t name) {
    KEEP_ERRNO;
    if (!account_enter()) return;
    close_in_turn(card, name);
    account_leave_turn();
}

/* ---- CUDA IPC ---------------------------------------------------------------------------------------------------- */

bool share_note(CUdeviceptr address, unsigned card, uint64_t name) {
    const struct entry place = {.key = address, .of = name, .card = (uint16_t)card, .times = 1};
    struct entry before;
    os_lock(&placing);
    const bool again = table_get(&places, address, &before) && before.of == name;
    const bool done = again ? table_count(&places, address, 1, &before) : table_put(&places, &place, &before);
    os_unlock(&placing);
    return done;
}

bool share_take(CUdeviceptr address, struct entry *what) {
    return address && !table_is_empty(&places) && table_count(&places, address, -1, what) && what->key;
}

void share_taken(const struct entry *what, bool done) {
    if (done)
        share_close(what->card, what->of);
    else
        share_note(what->key, what->card, what->of);
}

REAL_CALL(cuMemGetAddressRange_v2, CUdeviceptr *start, size_t *bytes, CUdeviceptr address);
REAL_CALL(cuIpcCloseMemHandle, CUdeviceptr address);

/* Nobody of this container made it. */
static CUresult opened_foreign(unsigned card, uint64_t name, CUdeviceptr address) {
    CUdeviceptr start;
    size_t bytes;
    if (DRIVER(REAL(cuMemGetAddressRange_v2)(&start, &bytes, address)) != CUDA_SUCCESS) return CUDA_SUCCESS;
    return share_size(card, name, round_up(bytes, BLOCK_BYTES));
}

typedef CUresult open_call(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags);

static CUresult open_ipc(open_call *call, CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    const uint64_t name = share_name(&handle, sizeof handle);
    unsigned card;
    CUcontext context;
    CUdeviceptr made;
    uint64_t size;
    if (!address || !current_card(&card, &context)) return DRIVER(call(address, handle, flags));
    TRY(share_open(card, name, &size));
    CUresult result = DRIVER(call(&made, handle, flags));
    if (result != CUDA_SUCCESS) return share_close(card, name), result;
    if (!size) result = opened_foreign(card, name, made);
    if (result == CUDA_SUCCESS && !share_note(made, card, name)) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        DRIVER(REAL(cuIpcCloseMemHandle)(made));
        return share_close(card, name), result;
    }
    *address = made;
    return CUDA_SUCCESS;
}

HOOK_CALL(cuIpcOpenMemHandle, CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    return open_ipc(REAL(cuIpcOpenMemHandle), address, handle, flags);
}

HOOK_CALL(cuIpcOpenMemHandle_v2, CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    return open_ipc(REAL(cuIpcOpenMemHandle_v2), address, handle, flags);
}

HOOK_CALL(cuIpcCloseMemHandle, CUdeviceptr address) {
    struct entry what;
    const bool known = share_take(address, &what);
    const CUresult result = DRIVER(REAL(cuIpcCloseMemHandle)(address));
    if (known) share_taken(&what, result == CUDA_SUCCESS);
    return result;
}

void sharing_forget(void) {
    table_forget(&names);
    table_forget(&places);
    placing = (struct os_lock){0};
}
