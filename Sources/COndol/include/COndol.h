// What Swift cannot say: the processor's CRC32C instruction and constants the importer drops; and
// what must be fast where Swift is not optimised.

#ifndef CONDOL_H
#define CONDOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The step of scrypt (RFC 7914, section 5) that takes time and memory, over the 128 r bytes at
/// `bytes`, in place. Takes 128 r n bytes; n is a power of two from 2 on. Returns whether there was
/// that much memory and the numbers can be.
int ondol_scrypt_mix(uint8_t *bytes, size_t r, size_t n);

/// Continues a CRC32C (Castagnoli) over `length` bytes. Start with 0; feed the result back in to
/// continue. Uses the processor's instruction where there is one, in three interleaved streams from
/// 1 KiB on, and a table otherwise.
uint32_t ondol_crc32c(uint32_t crc, const void *bytes, size_t length);

/// Locks the whole of an open file for its open file description (not its process), so that two
/// opens in one process exclude each other too. Returns 0, or the errno of the refusal.
int ondol_lock_exclusive(int descriptor);

/// Takes the lock back, from all descriptors of the same open file.
void ondol_unlock(int descriptor);

/// Writes up to `length` bytes at `offset` and returns once these bytes, and no others, survive a
/// power cut. Returns how many were written, or -1 with errno set: EOPNOTSUPP or ENOSYS where there
/// is no such call.
ssize_t ondol_write_synced(int descriptor, const void *bytes, size_t length, off_t offset);

/// Reads up to `length` bytes at `offset` as far as that needs no wait for the device. Returns how
/// many were read, or -1: none, or there is no such call.
ssize_t ondol_read_at_once(int descriptor, void *bytes, size_t length, off_t offset);

/// Has the file system set aside `length` bytes at `offset`, so that writing there does not fail for
/// want of space; the file's size stays as it is. Returns 0 or the errno of the refusal: EOPNOTSUPP
/// or ENOSYS where there is no such call.
int ondol_reserve(int descriptor, off_t offset, off_t length);

/// Has the device begin to take what was written to these bytes, and waits for none of it. A hint:
/// nothing survives a power cut by it. Does nothing where there is no such call.
void ondol_begin_writeback(int descriptor, off_t offset, off_t length);

/// Whether whatever is written to the file system of an open file is written through this system:
/// not when it may be that of other machines, over a network or from outside a virtual one.
int ondol_is_local(int descriptor);

/// How many files the process may have open, by its soft limit; LONG_MAX when there is none, 0 when
/// the system does not say.
long ondol_file_limit(void);

/// Raises it as far as the process may; answers with what it is then.
long ondol_raise_file_limit(void);

/// Bytes of addresses that the process may have; LONG_MAX when there is no limit or the system does
/// not say.
long ondol_address_limit(void);

/// How many processors the process may run on; at least 1.
long ondol_processor_count(void);

/// Gives the calling thread a name for debuggers, cut to what the system takes.
void ondol_name_thread(const char *name);

/// Gives the calling thread a low priority, where the system has one for each thread.
void ondol_lower_priority(void);

/// Has AddressSanitizer report whoever touches the bytes, until they are unpoisoned: memory that an
/// allocator of ours holds free. Does nothing in a build without it.
void ondol_poison(const void *address, size_t length);

/// Takes that back.
void ondol_unpoison(const void *address, size_t length);

/// Asks the processor to fetch the cache line at `address`, which need not be readable.
static inline void ondol_prefetch(const void *address) { __builtin_prefetch(address); }

#endif
