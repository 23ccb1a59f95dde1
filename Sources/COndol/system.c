// Calls that need _GNU_SOURCE on Linux, where Swift's importer does not see them.

#define _GNU_SOURCE
#include "COndol.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <pthread/qos.h>
#elif defined(__linux__)
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif

int ondol_lock_exclusive(int descriptor) {
#if defined(F_OFD_SETLK)
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(descriptor, F_OFD_SETLK, &whole) == 0 ? 0 : errno;
#else
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
#endif
}

void ondol_unlock(int descriptor) {
#if defined(F_OFD_SETLK)
  struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  (void)fcntl(descriptor, F_OFD_SETLK, &whole);
#else
  (void)flock(descriptor, LOCK_UN);
#endif
}

ssize_t ondol_write_synced(int descriptor, const void *bytes, size_t length, off_t offset) {
#if defined(RWF_DSYNC)
  struct iovec all = {.iov_base = (void *)bytes, .iov_len = length};
  return pwritev2(descriptor, &all, 1, offset, RWF_DSYNC);
#else
  (void)descriptor, (void)bytes, (void)length, (void)offset;
  errno = ENOSYS;
  return -1;
#endif
}

ssize_t ondol_read_at_once(int descriptor, void *bytes, size_t length, off_t offset) {
#if defined(RWF_NOWAIT)
  struct iovec all = {.iov_base = bytes, .iov_len = length};
  return preadv2(descriptor, &all, 1, offset, RWF_NOWAIT);
#else
  (void)descriptor, (void)bytes, (void)length, (void)offset;
  return -1;
#endif
}

void ondol_begin_writeback(int descriptor, off_t offset, off_t length) {
#if defined(SYNC_FILE_RANGE_WRITE)
  (void)sync_file_range(descriptor, offset, length, SYNC_FILE_RANGE_WRITE);
#else
  (void)descriptor, (void)offset, (void)length;
#endif
}

int ondol_reserve(int descriptor, off_t offset, off_t length) {
#if defined(__linux__)
  int failed;
  do {
    failed = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, offset, length) != 0;
  } while (failed && errno == EINTR);
  return failed ? errno : 0;
#else
  (void)descriptor, (void)offset, (void)length;
  return ENOSYS;
#endif
}

int ondol_is_local(int descriptor) {
#if defined(__linux__)
  // NFS, SMB (three dialects), FUSE with virtiofs, 9P, Ceph, AFS (two), Lustre, GFS2, OCFS2.
  static const unsigned long others[] = {
      0x6969,     0x517B,     0xFF534D42, 0xFE534D42, 0x65735546, 0x01021997,
      0x00C36400, 0x5346414F, 0x6B414653, 0x0BD00BD0, 0x01161970, 0x7461636F};
  struct statfs status;
  if (fstatfs(descriptor, &status) != 0) return 0;
  for (size_t index = 0; index < sizeof(others) / sizeof(others[0]); index++) {
    if (((unsigned long)status.f_type & 0xFFFFFFFFul) == others[index]) return 0;
  }
  return 1;
#else
  (void)descriptor;
  return 0;
#endif
}

void ondol_name_thread(const char *name) {
  char cut[16] = {0};
  strncpy(cut, name, sizeof(cut) - 1);
#if defined(__APPLE__)
  pthread_setname_np(cut);
#else
  pthread_setname_np(pthread_self(), cut);
#endif
}

long ondol_processor_count(void) {
#if defined(__linux__)
  cpu_set_t allowed;
  // Fails if there are more than the 1,024 processors that this has room for.
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? online : 1;
}

long ondol_file_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur > (rlim_t)LONG_MAX ? LONG_MAX : (long)limit.rlim_cur;
}

long ondol_raise_file_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
#if defined(__APPLE__)
  // The system refuses more, whatever the hard limit says.
  if (limit.rlim_cur > OPEN_MAX) limit.rlim_cur = OPEN_MAX;
#endif
  setrlimit(RLIMIT_NOFILE, &limit);
  return ondol_file_limit();
}

long ondol_address_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return LONG_MAX;
  return limit.rlim_cur > (rlim_t)LONG_MAX ? LONG_MAX : (long)limit.rlim_cur;
}

void ondol_lower_priority(void) {
#if defined(__APPLE__)
  pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
#elif defined(__linux__)
  // On Linux niceness belongs to the thread. Ten is a tenth of an ordinary thread's share.
  setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
#endif
}
