/* Allocates and frees memory by commands, with a line of JSON for each:
 *
 *   take MIB      one allocation; prints the result
 *   insist MIB    one allocation, retried until there is room
 *   free          all
 *   export        a handle of the first allocation, in hexadecimal digits
 *   open HANDLE   memory of another process; prints the result
 *   view          the card as the program sees it: free, total
 */
#include "calls.h"

#include <stdio.h>
#include <string.h>

enum { MOST_HELD = 1024, LONGEST_LINE = 256, HANDLE_BYTES = 64 };

static CUdeviceptr held[MOST_HELD];
static unsigned held_count;

static CUresult take(u64 mib) {
    if (held_count == MOST_HELD) stop_with("taking: holds too much");
    const CUresult result = driver.cuMemAlloc_v2(&held[held_count], mib * MIB);
    if (result == CUDA_SUCCESS) held_count++;
    return result;
}

static CUresult insist(u64 mib) {
    CUresult result = take(mib);
    while (result == CUDA_ERROR_OUT_OF_MEMORY) result = take(mib);
    return result;
}

static CUresult free_all(void) {
    while (held_count) NEED(cuMemFree_v2, held[--held_count]);
    return CUDA_SUCCESS;
}

static void export_first(void) {
    CUipcMemHandle ipc;
    NEED(cuIpcGetMemHandle, &ipc, held[0]);
    printf("{\"handle\":\"");
    for (int i = 0; i < HANDLE_BYTES; i++) printf("%02x", ipc.bytes[i]);
    printf("\"}\n");
    fflush(stdout);
}

static CUresult open_other(const char *digits) {
    CUipcMemHandle ipc;
    CUdeviceptr address;
    unsigned byte;
    for (int i = 0; i < HANDLE_BYTES && sscanf(digits + 2 * i, "%2x", &byte) == 1; i++)
        ipc.bytes[i] = (unsigned char)byte;
    return driver.cuIpcOpenMemHandle_v2(&address, ipc, 1);
}

static void obey(const char *line) {
    char word[LONGEST_LINE];
    unsigned long long mib = 0;
    size_t unused = 0, total = 0;
    CUresult result = CUDA_SUCCESS;
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
    NEED(cuMemGetInfo_v2, &unused, &total);
    printf("{\"result\":%d,\"free\":%zu,\"total\":%zu}\n", result, unused, total);
    fflush(stdout);
}

int main(void) {
    char line[LONGEST_LINE];
    open_card();
    printf("{\"ready\":true}\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) obey(line);
    return 0;
}
