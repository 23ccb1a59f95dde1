// The shared C parts of the adapters: reading bytes, so that every engine pays the same for it, the
// clock, and the two peers whose C interfaces copy each value that they return. So LevelDB and
// RocksDB run through their C++ interface here, in loops, and pay nothing per operation that a C++
// program would not pay as well.

#ifndef CPEERS_H
#define CPEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Reads every byte once, eight at a time, and returns their sum.
static inline uint64_t peer_sum(const void *bytes, size_t length) {
  const unsigned char *next = (const unsigned char *)bytes;
  uint64_t sum = length;
  size_t index = 0;
  for (; index + 8 <= length; index += 8) {
    uint64_t word;
    memcpy(&word, next + index, 8);
    sum += word;
  }
  for (; index < length; index += 1) sum += next[index];
  return sum;
}

/// Adds one value's sum to a checksum. The order of the values matters.
static inline uint64_t peer_fold(uint64_t checksum, uint64_t sum) {
  return (checksum ^ sum) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

/// Nanoseconds on a clock that only runs forwards.
static inline uint64_t peer_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/// Loads a library whose functions only the caller sees, and which sees its own before those of
/// this program. Null if it does not exist.
void *peer_load_library(const char *name);

/// Keys in memory: `count` of them, `stride` bytes apart, each `length` bytes at `offset`.
struct peer_keys {
  const unsigned char *bytes;
  size_t count;
  size_t stride;
  size_t offset;
  size_t length;
};

/// Keys with a value of `value_length` bytes each, the values one after another.
struct peer_rows {
  struct peer_keys keys;
  const unsigned char *values;
  size_t value_length;
};

/// Functions below return NULL, or a message that the caller must give to `peer_free`.
static inline void peer_free(char *message) { free(message); }

/// The log-structured peers, whose loops are in C++.
enum lsm_library { LSM_LEVELDB, LSM_ROCKSDB };

/// A database of one of them.
struct lsm_peer;
char *lsm_peer_open(
    enum lsm_library library, const char *path, size_t cache_bytes, bool cache_is_all,
    struct lsm_peer **peer);
char *lsm_peer_write(struct lsm_peer *peer, struct peer_rows rows, bool synced);
char *lsm_peer_write_each(
    struct lsm_peer *peer, struct peer_rows rows, bool synced, uint64_t *nanoseconds);
char *lsm_peer_get(struct lsm_peer *peer, struct peer_keys keys, uint64_t *checksum);
char *lsm_peer_scan(struct lsm_peer *peer, uint64_t *count, uint64_t *checksum);
char *lsm_peer_seek(
    struct lsm_peer *peer, struct peer_keys keys, size_t limit, uint64_t *checksum);
char *lsm_peer_settle(struct lsm_peer *peer);
void lsm_peer_close(struct lsm_peer *peer);
const char *lsm_peer_version(enum lsm_library library);

/// The kinds of searches: any of several words, words in direct succession, or words with a common
/// beginning.
enum xapian_form { XAPIAN_ANY, XAPIAN_PHRASE, XAPIAN_PREFIX };

/// An index of Xapian. Numbers begin at 1. With a limit of 0 matches are counted and not read.
struct xapian_peer;
char *xapian_peer_open(const char *path, struct xapian_peer **peer);
char *xapian_peer_put(struct xapian_peer *peer, uint32_t id, const char *text);
char *xapian_peer_commit(struct xapian_peer *peer);
char *xapian_peer_find(
    struct xapian_peer *peer, enum xapian_form form, const char *text, size_t limit,
    size_t *count, size_t *bytes);
void xapian_peer_close(struct xapian_peer *peer);

#ifdef __cplusplus
}
#endif

#endif
