/* Nothing: the object has a name that some programs ask for, and needs libcuda.so.1. */
extern const int partage_alias;
const int partage_alias = 0;
