// The parts that Swift cannot express: the processor's CRC32C instruction and constants that the
// importer drops. Also the parts that must be fast in builds without Swift's optimiser.

#ifndef CONDOL_H
#define CONDOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The step of scrypt (RFC 7914, section 5) that takes time and memory, over the 128 r bytes at
/// `bytes`, in place. It takes 128 r n bytes; n is a power of two from 2 on. Returns false if there
/// is not enough memory or the numbers are invalid.
int ondol_scrypt_mix(uint8_t *bytes, size_t r, size_t n);

/// Continues a CRC32C (Castagnoli) over `length` bytes. Start with 0, and pass the result back in
/// to continue. Uses the processor's instruction if it exists, in three interleaved streams from 1
/// KiB on, and a table otherwise.
uint32_t ondol_crc32c(uint32_t crc, const void *bytes, size_t length);

/// Locks the whole of an open file for its open file description (not its process), so that two
/// opens in one process also exclude each other. Returns 0, or the errno of the refusal.
int ondol_lock_exclusive(int descriptor);

/// Releases the lock, for all descriptors of the same open file.
void ondol_unlock(int descriptor);

/// Writes up to `length` bytes at `offset` and returns after these bytes, and no others, survive a
/// power cut. Returns how many were written, or -1 with errno set: EOPNOTSUPP or ENOSYS if the
/// system has no such call.
ssize_t ondol_write_synced(int descriptor, const void *bytes, size_t length, off_t offset);

/// Reads up to `length` bytes at `offset` that need no wait for the device. Returns how many were
/// read, or -1 for none or if the system has no such call.
ssize_t ondol_read_at_once(int descriptor, void *bytes, size_t length, off_t offset);

/// Makes the file system reserve `length` bytes at `offset`, so that writing there does not fail
/// for lack of space. The file's size does not change. Returns 0 or the errno of the refusal:
/// EOPNOTSUPP or ENOSYS if the system has no such call.
int ondol_reserve(int descriptor, off_t offset, off_t length);

/// Makes the device begin to write these bytes, and waits for none of it. It is a hint: nothing
/// survives a power cut because of it. Does nothing if the system has no such call.
void ondol_begin_writeback(int descriptor, off_t offset, off_t length);

/// Whether all writes to the file system of an open file go through this system. False if it may
/// belong to other machines, over a network or from outside a virtual one.
int ondol_is_local(int descriptor);

/// The number of files that the process may have open, by its soft limit; LONG_MAX without a limit,
/// 0 if the system does not report it.
long ondol_file_limit(void);

/// Raises it as far as the process may, and returns the new limit.
long ondol_raise_file_limit(void);

/// The bytes of address space that the process may have; LONG_MAX without a limit or if the system
/// does not report it.
long ondol_address_limit(void);

/// The number of processors that the process may run on; at least 1.
long ondol_processor_count(void);

/// Gives the calling thread a name for debuggers, cut to the system's limit.
void ondol_name_thread(const char *name);

/// Gives the calling thread a low priority, if the system has one for each thread.
void ondol_lower_priority(void);

/// Makes AddressSanitizer report every access to the bytes until they are unpoisoned: memory that
/// an allocator of this project has free. Does nothing in a build without it.
void ondol_poison(const void *address, size_t length);

/// Undoes that.
void ondol_unpoison(const void *address, size_t length);

/// Asks the processor to fetch the cache line at `address`, which need not be readable.
static inline void ondol_prefetch(const void *address) { __builtin_prefetch(address); }

#endif
