// The disk. Each method is one system call. Short transfers and interruptions are retried, and
// every error contains the call, the file and the offset. Files are opened relative to the
// directory's descriptor, never through a symbolic link, and only if they are regular files.

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
    return DiskDirectory(path: path, descriptor)
  }
}

/// A directory, accessed through its descriptor (`openat`, `unlinkat`, `fsync`).
final class DiskDirectory: Directory {
  let path: String
  /// The directory's own descriptor and those of its files.
  private let descriptors = OpenDescriptors()
  private let descriptor: Descriptor

  init(path: String, _ number: CInt) {
    self.path = path
    descriptor = descriptors.add(number)
  }

  func close() { descriptors.close() }

  /// Lends the descriptor, which stays open meanwhile. Returns nil after `close()`.
  func withDescriptor<R>(_ body: (CInt) -> R) -> R? { descriptor.lend(body) }

  func list() throws(EngineError) -> [String] {
    let copy = try descriptor.use { (number) throws(EngineError) in
      try retrying("openat", path) {
        unsafe openat(number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      }
    }
    guard let stream = unsafe fdopendir(copy) else {
      let code = errno
      endDescriptor(copy)
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
    let opened = try descriptor.use { (number) throws(EngineError) in
      try retrying("openat", name) {
        unsafe openat(number, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
      }
    }
    let file = DiskFile(name: name, descriptors.add(opened))
    guard try file.status().st_mode & S_IFMT == S_IFREG else {
      throw .io(operation: "openat", file: name, offset: nil, errno: EINVAL)
    }
    return file
  }

  func remove(_ name: String) throws(EngineError) {
    try descriptor.use { (number) throws(EngineError) in
      _ = try retrying("unlinkat", name) { unsafe unlinkat(number, name, 0) }
    }
  }

  func sync() throws(EngineError) {
    try descriptor.use { (number) throws(EngineError) in
      _ = try retrying("fsync", path) { fsync(number) }
    }
  }

  func syncName() throws(EngineError) {
    let parent = try descriptor.use { (number) throws(EngineError) in
      try retrying("openat", path) {
        unsafe openat(number, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      }
    }
    defer { endDescriptor(parent) }
    _ = try retrying("fsync", path + "/..") { fsync(parent) }
  }

  func freeBytes() -> UInt64? {
    var status = statvfs()
    guard descriptor.lend({ unsafe fstatvfs($0, &status) }) == 0 else { return nil }
    let (bytes, overflows) = UInt64(status.f_bavail).multipliedReportingOverflow(
      by: UInt64(status.f_frsize))
    return overflows ? nil : bytes
  }

  func lock(owner: String) throws(EngineError) -> any DirectoryLock {
    let opened = try descriptor.use { (number) throws(EngineError) in
      try retrying("openat", "LOCK") {
        unsafe openat(number, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
      }
    }
    let file = DiskFile(name: "LOCK", descriptors.add(opened))
    let refusal = try file.lock()
    guard refusal == 0 else {
      guard refusal == EAGAIN || refusal == EACCES || refusal == EWOULDBLOCK else {
        throw .io(operation: "lock", file: "LOCK", offset: nil, errno: refusal)
      }
      let text = (try? file.read(at: 0, count: 200)) ?? []
      let holder = text.prefix { $0 != UInt8(ascii: "\n") }
      throw .inUse(path: path, holder: String(decoding: holder, as: UTF8.self))
    }
    // One line, written over the previous contents. Truncating the file first would cost an open
    // milliseconds on ext4, which waits for the journal when a file loses blocks.
    try file.write(Array("process \(getpid()), \(owner)\n".utf8).bytes, at: 0)
    return DiskLock(file: file)
  }
}

/// A file, accessed through its descriptor.
final class DiskFile: File {
  let name: String
  private let descriptor: Descriptor

  init(name: String, _ descriptor: Descriptor) {
    self.name = name
    self.descriptor = descriptor
  }

  func willRead(at offset: UInt64, count: Int) {
    guard let start = off_t(exactly: offset) else { return }
    #if canImport(Darwin)
      var range = radvisory(ra_offset: start, ra_count: CInt(clamping: count))
      descriptor.lend { _ = unsafe fcntl($0, F_RDADVISE, &range) }
    #else
      descriptor.lend { _ = posix_fadvise($0, start, off_t(count), POSIX_FADV_WILLNEED) }
    #endif
  }

  func willSync(_ range: Range<UInt64>) {
    guard let start = off_t(exactly: range.lowerBound) else { return }
    descriptor.lend { ondol_begin_writeback($0, start, off_t(range.count)) }
  }

  func giveBack(behind length: UInt64) {
    guard let length = off_t(exactly: length) else { return }
    descriptor.lend { _ = ftruncate($0, length) }
  }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    guard let start = off_t(exactly: offset) else {
      throw .io(operation: "pread", file: name, offset: offset, errno: EINVAL)
    }
    var failure: CInt = 0
    let bytes = try descriptor.use { number in
      unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        filled = 0
        while filled < count {
          let left = unsafe UnsafeMutableRawBufferPointer(
            rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
          let got = unsafe pread(number, left.baseAddress, left.count, start + off_t(filled))
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
    }
    if failure != 0 { throw .io(operation: "pread", file: name, offset: offset, errno: failure) }
    return bytes
  }

  func readAtOnce(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]? {
    guard let start = off_t(exactly: offset) else { return nil }
    var isWhole = false
    let bytes = try descriptor.use { number in
      unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        // A read that may wait reports any failure better.
        let got = unsafe ondol_read_at_once(number, buffer.baseAddress, buffer.count, start)
        filled = max(0, got)
        isWhole = got == count
      }
    }
    return isWhole ? bytes : nil
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    let failure = try unsafe transfer(bytes, at: offset) { unsafe pwrite($0, $1, $2, $3) }
    if failure != 0 { throw .io(operation: "pwrite", file: name, offset: offset, errno: failure) }
  }

  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    #if canImport(Darwin)
      // On that system, `O_DSYNC` leaves bytes in the drive's cache.
      try write(bytes, at: offset)
      try sync()
    #else
      let failure = try unsafe transfer(bytes, at: offset) {
        unsafe ondol_write_synced($0, $1, $2, $3)
      }
      if failure == EOPNOTSUPP || failure == ENOSYS {
        // A call that the file system does not support has written nothing.
        try write(bytes, at: offset)
        return try sync()
      }
      if failure != 0 {
        throw .io(operation: "pwritev2", file: name, offset: offset, errno: failure)
      }
    #endif
  }

  /// Repeats `call` with the descriptor until all bytes are written. Returns its error number, or
  /// 0.
  private func transfer(
    _ bytes: RawSpan, at offset: UInt64,
    _ call: (CInt, UnsafeRawPointer?, Int, off_t) -> Int
  ) throws(EngineError) -> CInt {
    try descriptor.use { number in
      unsafe bytes.withUnsafeBytes { buffer in
        var done = 0
        while done < buffer.count {
          let left = unsafe UnsafeRawBufferPointer(rebasing: buffer[done...])
          let wrote = unsafe call(number, left.baseAddress, left.count, off_t(offset) + off_t(done))
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
  }

  func reserve(_ range: Range<UInt64>) throws(EngineError) -> Bool {
    guard let start = off_t(exactly: range.lowerBound), let length = off_t(exactly: range.count)
    else { throw .io(operation: "fallocate", file: name, offset: range.lowerBound, errno: EFBIG) }
    let failure = try descriptor.use { ondol_reserve($0, start, length) }
    if [EOPNOTSUPP, ENOSYS, EINVAL].contains(failure) { return false }
    guard failure == 0 else {
      throw .io(operation: "fallocate", file: name, offset: range.lowerBound, errno: failure)
    }
    return true
  }

  func sync() throws(EngineError) {
    #if canImport(Darwin)
      // On that system, `fsync` leaves bytes in the drive's cache. File systems that do not support
      // the call, such as network file systems, use the next one: a barrier only orders writes, but
      // is still more than `fsync`. Any other failure is final, because a second call might hide
      // lost bytes.
      for kind in [F_FULLFSYNC, F_BARRIERFSYNC] {
        do throws(EngineError) {
          return try repeating("fcntl") { fcntl($0, kind) }
        } catch {
          guard case .io(_, _, _, let code) = error,
            [ENOTSUP, EOPNOTSUPP, EINVAL, ENOTTY].contains(code)
          else { throw error }
        }
      }
      try repeating("fsync") { fsync($0) }
    #else
      try repeating("fdatasync") { fdatasync($0) }
    #endif
  }

  func size() throws(EngineError) -> UInt64 {
    UInt64(try status().st_size)
  }

  /// Releases the lock on the file. Closing alone does not release it as long as a newly forked
  /// process has the descriptor as well.
  fileprivate func unlock() { descriptor.lend { ondol_unlock($0) } }

  /// Takes the lock on the file. Returns the error number that prevented it, or 0.
  fileprivate func lock() throws(EngineError) -> CInt {
    try descriptor.use { ondol_lock_exclusive($0) }
  }

  func status() throws(EngineError) -> stat {
    var status = stat()
    try repeating("fstat") { unsafe fstat($0, &status) }
    return status
  }

  /// Repeats a call with the descriptor while signals interrupt it.
  private func repeating(
    _ operation: SystemCall, _ call: (CInt) -> CInt
  ) throws(EngineError) {
    try descriptor.use { (number) throws(EngineError) in
      _ = try retrying(operation, name) { call(number) }
    }
  }
}

/// The open file whose lock protects the directory. The kernel releases the lock when the file is
/// closed.
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

/// Repeats `call` while signals interrupt it, and throws its failure.
private func retrying(
  _ operation: SystemCall, _ file: String, _ call: () -> CInt
) throws(EngineError) -> CInt {
  while true {
    let result = call()
    if result >= 0 { return result }
    if errno != EINTR { throw .io(operation: operation, file: file, offset: nil, errno: errno) }
  }
}
