/* Takes and gives back memory as it is told, a line of JSON for each order that it reads:
 *
 *   take MIB      one allocation; tells the result
 *   insist MIB    one allocation, tried until there is room
 *   free          all
 *   export        a handle of the first allocation, in hexadecimal digits
 *   open HANDLE   memory of another process; tells the result
 *   view          what the program sees of its card: free, total
 */
#include "calls.h"

#include <stdio.h>
#include <string.h>

enum { MOST_HELD = 1024, LONGEST_LINE = 256, HANDLE_BYTES = 64 };

static u64 held[MOST_HELD];
static unsigned held_count;

static int take(u64 mib) {
    if (held_count == MOST_HELD) stop_with("taking: holds too much");
    const int result = cuMemAlloc(&held[held_count], mib * MIB);
    if (result == SUCCESS) held_count++;
    return result;
}

static int insist(u64 mib) {
    int result = take(mib);
    while (result == OUT_OF_MEMORY) result = take(mib);
    return result;
}

static int free_all(void) {
    while (held_count) require(cuMemFree(held[--held_count]), "cuMemFree");
    return SUCCESS;
}

static void export_first(void) {
    struct ipc_handle ipc;
    require(cuIpcGetMemHandle(&ipc, held[0]), "cuIpcGetMemHandle");
    printf("{\"handle\":\"");
    for (int i = 0; i < HANDLE_BYTES; i++) printf("%02x", ipc.bytes[i]);
    printf("\"}\n");
    fflush(stdout);
}

static int open_other(const char *digits) {
    struct ipc_handle ipc;
    u64 address;
    unsigned byte;
    for (int i = 0; i < HANDLE_BYTES && sscanf(digits + 2 * i, "%2x", &byte) == 1; i++)
        ipc.bytes[i] = (unsigned char)byte;
    return cuIpcOpenMemHandle(&address, ipc, 1);
}

static void obey(const char *line) {
    char word[LONGEST_LINE];
    unsigned long long mib = 0;
    size_t unused = 0, total = 0;
    int result = SUCCESS;
    if (sscanf(line, "%255s %llu", word, &mib) < 1) return;
    if (!strcmp(word, "export")) return export_first();
    if (!strcmp(word, "take"))
        result = take(mib);
    else if (!strcmp(word, "insist"))
        result = insist(mib);
    else if (!strcmp(word, "free"))
        result = free_all();
    else if (!strcmp(word, "open"))
        result = open_other(line + strlen("open "));
    else if (strcmp(word, "view"))
        stop_with("taking: %s is no order", word);
    require(cuMemGetInfo(&unused, &total), "cuMemGetInfo");
    printf("{\"result\":%d,\"free\":%zu,\"total\":%zu}\n", result, unused, total);
    fflush(stdout);
}

int main(void) {
    char line[LONGEST_LINE];
    handle context;
    calls_find();
    require(cuInit(0), "cuInit");
    require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    printf("{\"ready\":true}\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) obey(line);
    return 0;
}
