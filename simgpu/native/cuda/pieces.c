/* Card memory that simgpud gave to this process. */
#include "memory.h"

pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static int ask(const struct sim_request *request, struct sim_reply *reply, int *file) {
    struct sim_node *node = driver_node();
    const int result = node ? sim_call(node, request, reply, file) : SIM_BROKEN;
    return result ? result : (int)reply->result;
}

static int take(const struct device *device, u32 kind, u64 bytes, u64 *piece) {
    const struct sim_request request = {.ask = SIM_TAKE, .card = device->card, .kind = kind, .bytes = bytes};
    struct sim_reply reply = {0};
    const int result = ask(&request, &reply, NULL);
    if (result == SIM_OK) *piece = reply.id;
    return result;
}

static bool trimmed(const struct device *device) {
    bool any = false;
    for (bool (*const *trim)(const struct device *) = trims; *trim; trim++) any |= (*trim)(device);
    return any;
}

CUresult piece_take(struct device *device, u32 kind, u64 bytes, u64 *piece) {
    int result = take(device, kind, bytes, piece);
    if (result == SIM_NO_MEMORY && trimmed(device)) result = take(device, kind, bytes, piece);
    return driver_result(result);
}

void piece_give(u64 piece) {
    const struct sim_request request = {.ask = SIM_GIVE, .id = piece};
    struct sim_reply reply = {0};
    ask(&request, &reply, NULL);
}

CUresult pieces_page(const struct device *device, u64 *came, u64 *left) {
    const struct sim_request request = {.ask = SIM_PAGE, .card = device->card};
    struct sim_reply reply = {0};
    const int result = ask(&request, &reply, NULL);
    *came = reply.bytes;
    *left = reply.id;
    return driver_result(result);
}

CUresult piece_share(u64 piece, struct sim_token *token) {
    const struct sim_request request = {.ask = SIM_SHARE, .id = piece};
    struct sim_reply reply = {0};
    int file = arena_file();
    const int result = ask(&request, &reply, &file);
    *token = reply.token;
    return driver_result(result);
}

CUresult piece_open(const struct sim_token *token, struct sim_reply *reply, int *file) {
    const struct sim_request request = {.ask = SIM_OPEN, .token = *token};
    *file = -1;
    return driver_result(ask(&request, reply, file));
}

CUresult memory_grow(struct device *device, u32 kind, u64 bytes, u64 *piece) {
    LOCKED;
    *piece = 0;
    return bytes ? piece_take(device, kind, bytes, piece) : CUDA_SUCCESS;
}

void memory_give_back(u64 piece) {
    LOCKED;
    if (piece) piece_give(piece);
}
