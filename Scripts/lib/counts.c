// Counts a program's work between two marks: allocations, and instructions if the machine or
// callgrind counts them. `Scripts/bench --counts` loads it into the program with LD_PRELOAD, and
// Benchmarks/BenchmarkKit/Counting.swift sets the marks. A mark is also a system call that strace
// shows, so that the calls between two of them can be found.
//
// At the end the file that COUNTS_FILE names gets a line per workload: operations, allocations,
// instructions (-1 if they are not counted) and the name, separated by tabs.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name)
#endif

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_ullong allocations;

static void note(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  note();
  return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) {
    return EINVAL;
  }
  void *memory = memalign(alignment, size);
  if (memory == NULL) return ENOMEM;
  *result = memory;
  return 0;
}

/// Swift's main thread ends in this call, with signals in read-only memory. Older versions of
/// valgrind write to it, and crash.
int sigsuspend(const sigset_t *signals) {
  sigset_t copy = *signals;
  return (int)syscall(SYS_rt_sigsuspend, &copy, 8);
}

enum { most = 64, name_length = 128 };

static struct {
  char name[name_length];
  unsigned long long operations, allocations;
  long long instructions;
} workloads[most];
static int known;
static int counter = -1;
static unsigned long long allocations_before;
static long long instructions_before;

__attribute__((constructor)) static void begin(void) {
  struct perf_event_attr wanted = {
      .type = PERF_TYPE_HARDWARE,
      .size = sizeof wanted,
      .config = PERF_COUNT_HW_INSTRUCTIONS,
      .inherit = 1,
      .exclude_kernel = 1,
      .exclude_hv = 1,
  };
  counter = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
}

static long long instructions(void) {
  long long count;
  return counter >= 0 && read(counter, &count, sizeof count) == sizeof count ? count : -1;
}

static void mark(const char *kind, const char *name) {
  char path[name_length + 32];
  snprintf(path, sizeof path, "/ondol-bench-mark/%s/%s", kind, name);
  access(path, F_OK);
}

void counts_begin(const char *name) {
  mark("begin", name);
  instructions_before = instructions();
  CALLGRIND_ZERO_STATS;
  allocations_before = atomic_load(&allocations);
}

void counts_end(const char *name, uint64_t operations) {
  unsigned long long allocated = atomic_load(&allocations) - allocations_before;
  CALLGRIND_DUMP_STATS_AT(name);
  long long executed = instructions_before < 0 ? -1 : instructions() - instructions_before;
  mark("end", name);
  int place = 0;
  while (place < known && strcmp(workloads[place].name, name) != 0) place += 1;
  if (place == most) return;
  if (place == known) {
    snprintf(workloads[place].name, name_length, "%s", name);
    known += 1;
  }
  workloads[place].operations += operations;
  workloads[place].allocations += allocated;
  if (executed < 0 || workloads[place].instructions < 0) {
    workloads[place].instructions = -1;
  } else {
    workloads[place].instructions += executed;
  }
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("COUNTS_FILE");
  FILE *file = path == NULL || known == 0 ? NULL : fopen(path, "a");
  if (file == NULL) return;
  for (int place = 0; place < known; place += 1) {
    fprintf(file, "%llu\t%llu\t%lld\t%s\n", workloads[place].operations,
            workloads[place].allocations, workloads[place].instructions, workloads[place].name);
  }
  fclose(file);
}
