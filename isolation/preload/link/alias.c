/* Empty: the object has a name that some programs request, and depends on libcuda.so.1. */
extern const int partage_alias;
const int partage_alias = 0;
