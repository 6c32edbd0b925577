#include "shared.h"

/* names: how often this process has each name open. places: the name of each address, and how often the driver gave it
 * out. */
static struct table names, places;
static struct os_lock placing;

/* ---- names ------------------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t word) {
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    return word ^ word >> 31;
}

/* 0 is not a valid name. */
uint64_t shared_name(const void *handle, size_t bytes) {
    const unsigned char *each = handle;
    uint64_t name = bytes;
    for (size_t n = 0; n < bytes; n++) name = mix(name + each[n] + 0x9e3779b97f4a7c15ull);
    return name ? name : 1;
}

bool shared_name_of_descriptor(int descriptor, uint64_t *name) {
    struct os_file file;
    if (!os_look_at(descriptor, &file) || file.is_device) return false;
    *name = shared_name((uint64_t[]){file.device, file.inode}, 2 * sizeof(uint64_t));
    return true;
}

/* ---- exports ----------------------------------------------------------------------------------------------------- */

static CUresult say_exported(unsigned card, struct wire *packet) {
    packet->what = WIRE_EXPORT;
    packet->card = (uint16_t)card;
    if (!account_ask(packet)) return CUDA_ERROR_NOT_INITIALIZED;
    return packet->result == WIRE_OK ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shared_export(unsigned card, uint64_t number, uint64_t name, uint64_t size) {
    struct wire packet = {.shared = {.name = name, .number = number, .size = size}};
    return say_exported(card, &packet);
}

CUresult shared_export_to_anybody(unsigned card, uint64_t number, uint64_t size) {
    const uint64_t own[] = {number, (uint64_t)os_pid(), os_now()};
    struct wire packet = {.flags = WIRE_ANYBODY,
                          .shared = {.name = shared_name(own, sizeof own), .number = number, .size = size}};
    return say_exported(card, &packet);
}

/* ---- imports ---------------------------------------------------------------------------------------------------- */

static CUresult say_open(unsigned card, uint64_t name, uint64_t *size) {
    struct wire packet = {.what = WIRE_OPEN, .card = (uint16_t)card, .shared = {.name = name, .size = *size}};
    if (!account_ask_in_turn(&packet)) return CUDA_ERROR_NOT_INITIALIZED;
    if (packet.result != WIRE_OK) return CUDA_ERROR_OUT_OF_MEMORY;
    *size = packet.shared.size;
    return CUDA_SUCCESS;
}

/* Counted while holding the turn, so that the last packet sent is the current state. */
static void close_in_turn(unsigned card, uint64_t name) {
    struct wire packet = {.what = WIRE_CLOSE, .card = (uint16_t)card, .shared = {.name = name}};
    struct entry now;
    if (table_count(&names, name, -1, &now) && now.key && !now.times) account_ask_in_turn(&packet);
}

CUresult shared_open(unsigned card, uint64_t name, uint64_t *size) {
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

CUresult shared_size(unsigned card, uint64_t name, uint64_t size) {
    KEEP_ERRNO;
    if (!account_enter()) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = say_open(card, name, &size);
    account_leave_turn();
    return result;
}

/* If the turn is not obtained in time, it counts as open for the life of the process: an overestimate, never an
 * underestimate. */
void shared_close(unsigned card, uint64_t name) {
    KEEP_ERRNO;
    if (!account_enter()) return;
    close_in_turn(card, name);
    account_leave_turn();
}

/* ---- addresses of imports ---------------------------------------------------------------------------------------- */

bool shared_note(CUdeviceptr address, unsigned card, uint64_t name) {
    const struct entry place = {.key = address, .of = name, .card = (uint16_t)card, .times = 1};
    struct entry before;
    os_lock(&placing);
    const bool again = table_get(&places, address, &before) && before.of == name;
    const bool done = again ? table_count(&places, address, 1, &before) : table_put(&places, &place, &before);
    os_unlock(&placing);
    return done;
}

bool shared_take(CUdeviceptr address, struct entry *what) {
    return address && !table_is_empty(&places) && table_count(&places, address, -1, what) && what->key;
}

void shared_taken(const struct entry *what, bool done) {
    if (done)
        shared_close(what->card, what->of);
    else
        shared_note(what->key, what->card, what->of);
}

void shared_forget(void) {
    table_forget(&names);
    table_forget(&places);
    placing = (struct os_lock){0};
}
