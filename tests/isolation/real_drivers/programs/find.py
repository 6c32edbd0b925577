"""Names that a process finds in a library, by each way to look one up; reads and writes JSON."""

import ctypes
import json
import sys

library, versions = sys.argv[1], sys.argv[2:]
handle = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
libc = ctypes.CDLL(None)
libc.dlsym.restype = libc.dlvsym.restype = ctypes.c_void_p
opened = ctypes.c_void_p(handle._handle)
names = json.load(sys.stdin)
found = {
    "ctypes": [name for name in names if hasattr(handle, name)],
    "dlsym": [name for name in names if libc.dlsym(opened, name.encode())],
    "RTLD_DEFAULT": [name for name in names if libc.dlsym(None, name.encode())],
}
for version in versions:
    found[version] = [name for name in names if libc.dlvsym(opened, name.encode(), version.encode())]
json.dump(found, sys.stdout)
