/* The rest of the driver is missing. Without types, as nothing here calls them. */
#define NOT_THERE(name)                                                                                                \
    __attribute__((weak)) int real_##name(void);                                                                       \
    int real_##name(void) { return 801; }

#define HOOK(name) NOT_THERE(name)
#include "preload/hooks/hooks.def"

NOT_THERE(cuDeviceGetUuid)
NOT_THERE(cuMemGetAddressRange_v2)
NOT_THERE(cuPointerGetAttribute)
NOT_THERE(cuDeviceGetGraphMemAttribute)
NOT_THERE(cuDeviceSetMemPool)
NOT_THERE(cuMemSetMemPool)
NOT_THERE(cuMemPoolSetAttribute)
NOT_THERE(cuMemGetAllocationPropertiesFromHandle)
NOT_THERE(cuStreamGetCtx)
NOT_THERE(cuThreadExchangeStreamCaptureMode)
NOT_THERE(cuStreamIsCapturing)
NOT_THERE(cuStreamIsCapturing_ptsz)
NOT_THERE(cuGraphGetNodes)
NOT_THERE(cuGraphNodeGetType)
NOT_THERE(cuGraphMemAllocNodeGetParams)
NOT_THERE(cuGraphKernelNodeGetParams)
NOT_THERE(cuGraphKernelNodeGetParams_v2)
NOT_THERE(cuDeviceGetAttribute)
NOT_THERE(cuCtxGetDevice)
NOT_THERE(cuGraphChildGraphNodeGetGraph)
NOT_THERE(cuArrayGetMemoryRequirements)
NOT_THERE(cuMipmappedArrayGetMemoryRequirements)
NOT_THERE(cuDevicePrimaryCtxGetState)

/* Of hooks/modules.c: no graph here has kernels. */
int function_locals(void);
int function_locals(void) { return 0; }
int kernel_locals(void);
int kernel_locals(void) { return 0; }
