// The C part of a target that is C++ if LevelDB or RocksDB is built in.

#define _GNU_SOURCE
#include "CPeers.h"

#include <dlfcn.h>

void *peer_load_library(const char *name) {
  int flags = RTLD_NOW | RTLD_LOCAL;
#ifdef __linux__
  // Its own functions before those of the program. Elsewhere a library always has its own.
  flags |= RTLD_DEEPBIND;
#endif
  return dlopen(name, flags);
}
