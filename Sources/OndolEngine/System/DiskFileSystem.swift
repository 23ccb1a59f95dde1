// The disk. Thin: one system call a method, short transfers and interruptions looped over, every
// error with the call, the file and the offset. Files are opened relative to the directory's
// descriptor, never through a symbolic link, and only when they are regular.

internal import COndol
internal import OndolPlatform

/// The file system of the machine.
package struct DiskFileSystem: FileSystem {
  package init() {}

  package func openDirectory(
    at path: String, create: Bool
  ) throws(EngineError) -> any Directory {
    if create, unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
      throw .io(operation: "mkdir", file: path, offset: nil, errno: errno)
    }
    let descriptor = try retrying("open", path) {
      unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    return DiskDirectory(path: path, descriptor: descriptor)
  }
}

/// A directory by its descriptor (`openat`, `unlinkat`, `fsync`).
final class DiskDirectory: Directory {
  let path: String
  private let descriptor: CInt

  init(path: String, descriptor: CInt) {
    self.path = path
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  /// Lends the descriptor, which stays open meanwhile.
  func withDescriptor<R>(_ body: (CInt) -> R) -> R {
    withExtendedLifetime(self) { body(descriptor) }
  }

  func list() throws(EngineError) -> [String] {
    let copy = try retrying("openat", path) {
      unsafe openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    guard let stream = unsafe fdopendir(copy) else {
      let code = errno
      close(copy)
      throw .io(operation: "fdopendir", file: path, offset: nil, errno: code)
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else { break }
      // Safe: the name ends within the entry.
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
          unsafe String(cString: $0)
        }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    if errno != 0 { throw .io(operation: "readdir", file: path, offset: nil, errno: errno) }
    return names
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    try openFile(name, access == .readOnly ? O_RDONLY : O_RDWR)
  }

  func create(_ name: String) throws(EngineError) -> any File {
    try openFile(name, O_RDWR | O_CREAT | O_EXCL)
  }

  private func openFile(_ name: String, _ flags: CInt) throws(EngineError) -> DiskFile {
    let opened = try retrying("openat", name) {
      unsafe openat(descriptor, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    }
    let file = DiskFile(name: name, descriptor: opened)
    guard try file.status().st_mode & S_IFMT == S_IFREG else {
      throw .io(operation: "openat", file: name, offset: nil, errno: EINVAL)
    }
    return file
  }

  func remove(_ name: String) throws(EngineError) {
    _ = try retrying("unlinkat", name) { unsafe unlinkat(descriptor, name, 0) }
  }

  func sync() throws(EngineError) {
    _ = try retrying("fsync", path) { fsync(descriptor) }
  }

  func syncName() throws(EngineError) {
    let parent = try retrying("openat", path) {
      unsafe openat(descriptor, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    defer { close(parent) }
    _ = try retrying("fsync", path + "/..") { fsync(parent) }
  }

  func freeBytes() -> UInt64? {
    var status = statvfs()
    guard unsafe fstatvfs(descriptor, &status) == 0 else { return nil }
    let (bytes, overflows) = UInt64(status.f_bavail).multipliedReportingOverflow(
      by: UInt64(status.f_frsize))
    return overflows ? nil : bytes
  }

  func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    let opened = try retrying("openat", "LOCK") {
      unsafe openat(descriptor, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    }
    let file = DiskFile(name: "LOCK", descriptor: opened)
    let refusal = ondol_lock_exclusive(opened)
    guard refusal == 0 else {
      guard refusal == EAGAIN || refusal == EACCES || refusal == EWOULDBLOCK else {
        throw .io(operation: "lock", file: "LOCK", offset: nil, errno: refusal)
      }
      let text = (try? file.read(at: 0, count: 200)) ?? []
      let holder = text.prefix { $0 != UInt8(ascii: "\n") }
      throw .inUse(path: path, holder: String(decoding: holder, as: UTF8.self))
    }
    // One line, over what stood there. Emptying the file first would cost an opening milliseconds
    // on ext4, which waits for the journal when a file that has blocks loses them.
    try file.write(Array("process \(getpid()), \(owner)\n".utf8).bytes, at: 0)
    return DiskLock(file: file)
  }
}

/// A file by its descriptor.
final class DiskFile: File {
  let name: String
  private let descriptor: CInt

  init(name: String, descriptor: CInt) {
    self.name = name
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  func willRead(at offset: UInt64, count: Int) {
    guard let start = off_t(exactly: offset) else { return }
    #if canImport(Darwin)
      var range = radvisory(ra_offset: start, ra_count: CInt(clamping: count))
      _ = unsafe fcntl(descriptor, F_RDADVISE, &range)
    #else
      _ = posix_fadvise(descriptor, start, off_t(count), POSIX_FADV_WILLNEED)
    #endif
  }

  func willSync(_ range: Range<UInt64>) {
    guard let start = off_t(exactly: range.lowerBound) else { return }
    ondol_begin_writeback(descriptor, start, off_t(range.count))
  }

  func giveBack(behind length: UInt64) {
    guard let length = off_t(exactly: length) else { return }
    _ = ftruncate(descriptor, length)
  }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    guard let start = off_t(exactly: offset) else {
      throw .io(operation: "pread", file: name, offset: offset, errno: EINVAL)
    }
    var failure: CInt = 0
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = 0
      while filled < count {
        let left = unsafe UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
        let got = unsafe pread(descriptor, left.baseAddress, left.count, start + off_t(filled))
        if got > 0 {
          filled += got
        } else if got == 0 {
          return
        } else if errno != EINTR {
          failure = errno
          return
        }
      }
    }
    if failure != 0 { throw .io(operation: "pread", file: name, offset: offset, errno: failure) }
    return bytes
  }

  func readAtOnce(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]? {
    guard let start = off_t(exactly: offset) else { return nil }
    var isWhole = false
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      // Whatever it fails with, a read that may wait says it better.
      let got = unsafe ondol_read_at_once(descriptor, buffer.baseAddress, buffer.count, start)
      filled = max(0, got)
      isWhole = got == count
    }
    return isWhole ? bytes : nil
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    let failure = unsafe transfer(bytes, at: offset) { unsafe pwrite(descriptor, $0, $1, $2) }
    if failure != 0 { throw .io(operation: "pwrite", file: name, offset: offset, errno: failure) }
  }

  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    #if canImport(Darwin)
      // `O_DSYNC` leaves bytes in the drive's cache there.
      try write(bytes, at: offset)
      try sync()
    #else
      let failure = unsafe transfer(bytes, at: offset) {
        unsafe ondol_write_synced(descriptor, $0, $1, $2)
      }
      if failure == EOPNOTSUPP || failure == ENOSYS {
        // Nothing was written by a call that the file system does not know.
        try write(bytes, at: offset)
        return try sync()
      }
      if failure != 0 {
        throw .io(operation: "pwritev2", file: name, offset: offset, errno: failure)
      }
    #endif
  }

  /// Repeats `call` until all bytes are written; gives back what it failed with, or 0.
  private func transfer(
    _ bytes: RawSpan, at offset: UInt64, _ call: (UnsafeRawPointer?, Int, off_t) -> Int
  ) -> CInt {
    unsafe bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count {
        let left = unsafe UnsafeRawBufferPointer(rebasing: buffer[done...])
        let wrote = unsafe call(left.baseAddress, left.count, off_t(offset) + off_t(done))
        if wrote > 0 {
          done += wrote
        } else if wrote == 0 {
          return EIO
        } else if errno != EINTR {
          return errno
        }
      }
      return 0
    }
  }

  func reserve(_ range: Range<UInt64>) throws(EngineError) -> Bool {
    guard let start = off_t(exactly: range.lowerBound), let length = off_t(exactly: range.count)
    else { throw .io(operation: "fallocate", file: name, offset: range.lowerBound, errno: EFBIG) }
    let failure = ondol_reserve(descriptor, start, length)
    if [EOPNOTSUPP, ENOSYS, EINVAL].contains(failure) { return false }
    guard failure == 0 else {
      throw .io(operation: "fallocate", file: name, offset: range.lowerBound, errno: failure)
    }
    return true
  }

  func sync() throws(EngineError) {
    #if canImport(Darwin)
      // `fsync` leaves bytes in the drive's cache there. What comes next is for file systems that
      // do not know the call, such as those of a network: a barrier, which only puts writes in
      // order, is still more than `fsync`. Any other failure is one: a second call might hide lost
      // bytes.
      for call in [F_FULLFSYNC, F_BARRIERFSYNC] {
        do throws(EngineError) {
          _ = try retrying("fcntl", name) { fcntl(descriptor, call) }
          return
        } catch {
          guard case .io(_, _, _, let code) = error,
            [ENOTSUP, EOPNOTSUPP, EINVAL, ENOTTY].contains(code)
          else { throw error }
        }
      }
      _ = try retrying("fsync", name) { fsync(descriptor) }
    #else
      _ = try retrying("fdatasync", name) { fdatasync(descriptor) }
    #endif
  }

  func size() throws(EngineError) -> UInt64 {
    UInt64(try status().st_size)
  }

  /// Takes back the lock on the file. Closing alone would not, as long as a process that was just
  /// forked has the descriptor, too.
  fileprivate func unlock() { ondol_unlock(descriptor) }

  func status() throws(EngineError) -> stat {
    var status = stat()
    _ = try retrying("fstat", name) { unsafe fstat(descriptor, &status) }
    return status
  }
}

/// The open file whose lock holds the directory; the kernel lets go when it is closed.
private final class DiskLock: DirectoryLock {
  private let file: Guarded<DiskFile?>

  init(file: DiskFile) {
    self.file = Guarded(file)
  }

  func release() {
    file.withLock { file in
      file?.unlock()
      file = nil
    }
  }
}

/// Repeats `call` while signals interrupt it, and throws what it fails with.
private func retrying(
  _ operation: SystemCall, _ file: String, _ call: () -> CInt
) throws(EngineError) -> CInt {
  while true {
    let result = call()
    if result >= 0 { return result }
    if errno != EINTR { throw .io(operation: operation, file: file, offset: nil, errno: errno) }
  }
}
