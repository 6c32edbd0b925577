/* Memory of one process, opened in another. */
#include "conformance.h"

#include <string.h>
#include <sys/stat.h>

enum { LAZY_PEER_ACCESS = 1 };

static void importer(int channel) {
    CUipcMemHandle handle;
    CUdeviceptr address = 0, again = 0;
    char text[8] = "", step = 0;
    open_card();
    receive_bytes(channel, &handle, sizeof handle);
    const size_t before = free_bytes();
    TELL("no_flag", cuIpcOpenMemHandle_v2, &address, handle, 0);
    NEED(cuIpcOpenMemHandle_v2, &address, handle, LAZY_PEER_ACCESS);
    tell_number("costs_the_importer", before - free_bytes());
    NEED(cuMemcpyDtoH_v2, text, address, sizeof text);
    tell_yes("shows_the_same", !strcmp(text, "shared"));
    TELL("open_again", cuIpcOpenMemHandle_v2, &again, handle, LAZY_PEER_ACCESS);
    tell_yes("again_is_the_same_address", again == address);
    TELL("free_of_imported", cuMemFree_v2, address);
    TELL("export_of_imported", cuIpcGetMemHandle, &handle, address);
    TELL("close", cuIpcCloseMemHandle, address);
    TELL("close_again", cuIpcCloseMemHandle, address);
    TELL("close_once_more", cuIpcCloseMemHandle, address);
    send_bytes(channel, &step, 1);
}

CASE(sharing, between_processes) {
    CUipcMemHandle handle;
    int channel;
    char step = 0;
    in_process(importer, &channel);
    open_card();
    const CUdeviceptr address = allocated(4 * MIB);
    NEED(cuMemcpyHtoD_v2, address, "shared", 7);
    NEED(cuIpcGetMemHandle, &handle, address);
    send_bytes(channel, &handle, sizeof handle);
    receive_bytes(channel, &step, 1);
    TELL("free_afterwards", cuMemFree_v2, address);
}

static void late_reader(int channel) {
    CUipcMemHandle handle;
    CUdeviceptr address;
    char text[8], step = 0;
    open_card();
    receive_bytes(channel, &handle, sizeof handle);
    NEED(cuIpcOpenMemHandle_v2, &address, handle, LAZY_PEER_ACCESS);
    send_bytes(channel, &step, 1);
    receive_bytes(channel, &step, 1); /* its owner has freed it */
    TELL("read", cuMemcpyDtoH_v2, text, address, sizeof text);
    TELL("close", cuIpcCloseMemHandle, address);
    send_bytes(channel, &step, 1);
}

/* The documentation leaves the result open: a real driver may refuse, show anything, or crash. */
CASE(sharing, freed_by_its_owner) {
    CUipcMemHandle handle;
    int channel;
    char step = 0;
    in_process(late_reader, &channel);
    open_card();
    const CUdeviceptr address = allocated(4 * MIB);
    NEED(cuIpcGetMemHandle, &handle, address);
    send_bytes(channel, &handle, sizeof handle);
    receive_bytes(channel, &step, 1);
    TELL("free", cuMemFree_v2, address);
    send_bytes(channel, &step, 1);
    receive_bytes(channel, &step, 1);
}

CASE(sharing, handles) {
    CUipcMemHandle handle, other;
    CUdeviceptr address, managed;
    open_card();
    const CUdeviceptr one = allocated(4 * MIB);
    TELL("of_plain_memory", cuIpcGetMemHandle, &handle, one);
    NEED(cuIpcGetMemHandle, &other, one);
    tell_yes("again_is_the_same", !memcmp(&handle, &other, sizeof handle));
    memset(&other, 0, sizeof other);
    TELL("of_a_middle", cuIpcGetMemHandle, &other, one + 4096);
    tell_yes("of_a_middle_is_the_same", !memcmp(&handle, &other, sizeof handle));
    TELL("of_nothing", cuIpcGetMemHandle, &other, 4711);
    NEED(cuMemAllocAsync, &address, MIB, NULL);
    TELL("of_a_pools_memory", cuIpcGetMemHandle, &other, address);
    NEED(cuMemAllocManaged, &managed, MIB, 1);
    TELL("of_managed_memory", cuIpcGetMemHandle, &other, managed);
    TELL("open_in_its_own_process", cuIpcOpenMemHandle_v2, &address, handle, LAZY_PEER_ACCESS);
    TELL("close_of_nothing", cuIpcCloseMemHandle, 4711);
    TELL("close_of_own", cuIpcCloseMemHandle, one);
    memset(&handle, 0, sizeof handle);
    TELL("open_of_zeros", cuIpcOpenMemHandle_v2, &address, handle, LAZY_PEER_ACCESS);
}

static struct stat exported(CUmemGenericAllocationHandle block) {
    int descriptor = -1;
    struct stat status;
    NEED(cuMemExportToShareableHandle, &descriptor, block, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (fstat(descriptor, &status)) stop("no status of a descriptor: %m");
    return status;
}

/* The documentation does not say whether a file's number distinguishes descriptors of different blocks. */
CASE(sharing, descriptors) {
    CUmemGenericAllocationHandle blocks[2];
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    open_card();
    for (int i = 0; i < 2; i++) NEED(cuMemCreate, &blocks[i], 2 * MIB, &properties, 0);
    const struct stat first = exported(blocks[0]), again = exported(blocks[0]), other = exported(blocks[1]);
    tell_yes("again_is_the_same_file", first.st_dev == again.st_dev && first.st_ino == again.st_ino);
    tell_yes("another_block_is_the_same_file", first.st_dev == other.st_dev && first.st_ino == other.st_ino);
    tell("opens", "%s", S_ISCHR(first.st_mode) ? "a device" : S_ISREG(first.st_mode) ? "a file" : "neither");
}
