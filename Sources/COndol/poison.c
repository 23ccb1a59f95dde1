#include "COndol.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONDOL_POISONS 1
#include <sanitizer/asan_interface.h>
#endif
#endif

void ondol_poison(const void *address, size_t length) {
#ifdef ONDOL_POISONS
  __asan_poison_memory_region(address, length);
#else
  (void)address;
  (void)length;
#endif
}

void ondol_unpoison(const void *address, size_t length) {
#ifdef ONDOL_POISONS
  __asan_unpoison_memory_region(address, length);
#else
  (void)address;
  (void)length;
#endif
}
