/* Modules and libraries: images of code, and the memory that code takes once it first runs. */
#include "functions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* guards all images */

CUresult image_new(struct cuda_context *context, struct cuda_image **made) {
    struct cuda_image *image = calloc(1, sizeof *image);
    if (!image) return CUDA_ERROR_OUT_OF_MEMORY;
    image->magic = IMAGE_MAGIC;
    image->context = context;
    *made = image;
    return CUDA_SUCCESS;
}

void image_drop(struct cuda_image *image) {
    for (u32 i = 0; i < SIM_CARDS; i++)
        if (image->loaded & 1u << i) memory_give_back(image->piece[i]);
    while (image->functions) {
        struct cuda_function *next = image->functions->next;
        image->functions->magic = 0;
        free(image->functions);
        image->functions = next;
    }
    image->magic = 0;
    free(image);
}

static bool number_and_unit(const char *name, u64 *duration_ns) {
    static const struct {
        const char *name;
        u64 ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", SIM_NS_PER_S}};
    if (*name < '0' || *name > '9') return false;
    char *end;
    u64 number = strtoull(name, &end, 10);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i].name);
        if (strncmp(end, units[i].name, length) || (end[length] && end[length] != '_')) continue;
        *duration_ns = number < SIM_NEVER / units[i].ns ? number * units[i].ns : SIM_NEVER;
        return true;
    }
    return false;
}

static void learn_locals(struct cuda_function *function) {
    static const char mark[] = "_locals_";
    const char *found = strstr(function->name, mark);
    if (found && !strncmp(function->name, "sim_", 4)) function->locals = strtoull(found + sizeof mark - 1, NULL, 10);
}

static void learn_duration(struct cuda_function *function) {
    enum { OTHERWISE_NS = 10000 };
    const char *name = function->name;
    function->duration_ns = OTHERWISE_NS;
    if (strncmp(name, "sim_", 4)) return;
    function->touches = strstr(name, "_managed") != NULL;
    if (!strcmp(name, "sim_forever"))
        function->duration_ns = SIM_NEVER;
    else if (!strcmp(name, "sim_arg"))
        function->from_argument = true;
    else if (!strcmp(name, "sim_meet"))
        function->meets = true;
    else
        number_and_unit(name + 4, &function->duration_ns);
}

static struct cuda_function *function_new(struct cuda_image *image, const char *name) {
    size_t length = strlen(name) + 1;
    struct cuda_function *function = calloc(1, sizeof *function + length);
    if (!function) return NULL;
    function->magic = FUNCTION_MAGIC;
    function->image = image;
    memcpy(function->name, name, length);
    learn_duration(function);
    learn_locals(function);
    function->next = image->functions;
    image->functions = function;
    return function;
}

CUresult image_function(struct cuda_image *image, const char *name, struct cuda_function **found) {
    if (!found || !name) return CUDA_ERROR_INVALID_VALUE;
    if (!*name) return CUDA_ERROR_NOT_FOUND;
    int kept = errno;
    pthread_mutex_lock(&lock);
    struct cuda_function *function = image->functions;
    while (function && (function->is_in_contexts || strcmp(function->name, name))) function = function->next;
    if (!function) function = function_new(image, name);
    pthread_mutex_unlock(&lock);
    errno = kept;
    *found = function;
    return function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult image_load(struct cuda_image *image, struct device *device) {
    u32 bit = 1u << device->ordinal;
    if (atomic_load_explicit(&image->loaded, memory_order_acquire) & bit) return CUDA_SUCCESS;
    HOLD(lock);
    CUresult result = CUDA_SUCCESS;
    if (!(image->loaded & bit))
        result = memory_grow(device, SIM_MODULE, device->about->model.module, &image->piece[device->ordinal]);
    if (!result) atomic_fetch_or(&image->loaded, bit);
    return result;
}

CUresult function_load(const struct cuda_function *function, struct cuda_context *context) {
    TRY(image_load(function->image, context->device));
    return locals_grow(context, function->locals);
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static CUresult image_of(struct cuda_image *handle, bool library, struct cuda_image **found) {
    TRY(driver_ready());
    if (!handle || handle->magic != IMAGE_MAGIC || (library && handle->context)) return CUDA_ERROR_INVALID_HANDLE;
    *found = handle;
    return CUDA_SUCCESS;
}

/* Lazy loading is the driver's default since CUDA 12.2. */
static bool eagerly(void) {
    const char *value = getenv("CUDA_MODULE_LOADING");
    return value && !strcmp(value, "EAGER");
}

static CUresult load(CUmodule *made, const void *image) {
    struct cuda_context *context;
    TRY(context_current(&context));
    if (!made || !image) return CUDA_ERROR_INVALID_VALUE;
    struct cuda_image *loaded;
    TRY(image_new(context, &loaded));
    CUresult result = eagerly() ? image_load(loaded, context->device) : CUDA_SUCCESS;
    if (result)
        image_drop(loaded);
    else
        *made = loaded;
    return result;
}

static CUresult can_read(const char *path) {
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    int kept = errno;
    CUresult result = access(path, R_OK) ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_SUCCESS;
    errno = kept;
    return result;
}

CALL(cuModuleLoad, CUmodule *made, const char *path) {
    struct cuda_context *context;
    CUresult result = context_current(&context);
    if (!result) result = can_read(path);
    return result ? result : load(made, path);
}

CALL(cuModuleLoadData, CUmodule *made, const void *image) { return load(made, image); }
CALL(cuModuleLoadFatBinary, CUmodule *made, const void *image) { return load(made, image); }
CALL(cuModuleLoadDataEx, CUmodule *made, const void *image, unsigned count, const int *options, void **values) {
    (void)options, (void)values, (void)count;
    return load(made, image);
}

CALL(cuModuleUnload, CUmodule handle) {
    struct cuda_image *image;
    TRY(image_of(handle, false, &image));
    if (!image->context) return CUDA_ERROR_INVALID_HANDLE;
    image_drop(image);
    return CUDA_SUCCESS;
}

CALL(cuModuleGetFunction, CUfunction *found, CUmodule handle, const char *name) {
    struct cuda_image *image;
    CUresult result = image_of(handle, false, &image);
    return result ? result : image_function(image, name, found);
}

/* Images are not read, so they have no variables. */
CALL(cuModuleGetGlobal_v2, CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name) {
    (void)address, (void)bytes;
    struct cuda_image *image;
    TRY(image_of(handle, false, &image));
    return name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

/* ---- libraries --------------------------------------------------------------------------------------------------- */

CALL(cuLibraryLoadData, CUlibrary *made, const void *code, const int *jit, void **jit_values, unsigned jit_count,
     const int *options, void **values, unsigned count) {
    (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    TRY(driver_ready());
    return made && code ? image_new(NULL, made) : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuLibraryLoadFromFile, CUlibrary *made, const char *path, const int *jit, void **jit_values, unsigned jit_count,
     const int *options, void **values, unsigned count) {
    CUresult result = driver_ready();
    if (!result) result = can_read(path);
    return result ? result : cuLibraryLoadData(made, path, jit, jit_values, jit_count, options, values, count);
}

CALL(cuLibraryGetKernel, CUkernel *found, CUlibrary handle, const char *name) {
    struct cuda_image *image;
    CUresult result = image_of(handle, true, &image);
    return result ? result : image_function(image, name, (struct cuda_function **)found);
}

CALL(cuKernelGetFunction, CUfunction *found, CUkernel handle) {
    struct cuda_context *context;
    struct cuda_function *kernel;
    TRY(context_current(&context));
    TRY(function_of((CUfunction)handle, &kernel));
    if (!found || kernel->image->context) return CUDA_ERROR_INVALID_VALUE;
    HOLD(lock);
    if (!kernel->in_contexts && (kernel->in_contexts = function_new(kernel->image, kernel->name)))
        kernel->in_contexts->is_in_contexts = true;
    *found = kernel->in_contexts;
    return *found ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CALL(cuLibraryUnload, CUlibrary handle) {
    struct cuda_image *image;
    CUresult result = image_of(handle, true, &image);
    if (!result) image_drop(image);
    return result;
}
