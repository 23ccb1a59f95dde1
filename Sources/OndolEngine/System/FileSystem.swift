// Everything that the engine requires of a file system. It is a protocol because there are two
// implementations: the disk, and the simulation that loses power in the middle of a write. Calls
// block, so callers run on a thread that may block. Names are generated from numbers and never
// taken from a file's contents, so no name leads outside the directory.

/// Opens database directories.
package protocol FileSystem: Sendable {
  /// Opens the directory at `path`. If it is missing and `create` is set, it is created. Its name
  /// survives a power cut only after `syncName()`.
  func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory
}

/// An open database directory.
package protocol Directory: AnyObject, Sendable {
  var path: String { get }

  /// The keys that encrypt its files; nil without encryption.
  var keyring: Keyring? { get }

  /// The names in the directory, in no particular order.
  func list() throws(EngineError) -> [String]

  /// Opens a regular file. A missing file is an error with `ENOENT`.
  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File

  /// Opens one of very many files that may be kept for as long as the database is open. Its
  /// descriptor may be closed between two reads and opened again.
  ///
  /// - Parameter held: whether the file should stay open because another process may remove it. At
  ///   most `heldRoom` files can. If the file is gone, the error is `.superseded` if other
  ///   processes write to the directory, otherwise an error with `ENOENT`.
  func openForReads(_ name: String, held: Bool) throws(EngineError) -> any File

  /// The number of further files that can be held open.
  var heldRoom: Int { get }

  /// Creates a new file. An existing file is an error with `EEXIST`. The name survives a power cut
  /// only after `sync()`.
  func create(_ name: String) throws(EngineError) -> any File

  func remove(_ name: String) throws(EngineError)

  /// Makes the names created and removed so far survive a power cut (`fsync` of the directory).
  func sync() throws(EngineError)

  /// Makes the directory's own name survive a power cut (`fsync` of its parent).
  func syncName() throws(EngineError)

  /// Takes the directory's lock for this open, or throws `.inUse`. Releasing the lock object
  /// releases the lock.
  func lock(owner: String) throws(EngineError) -> any DirectoryLock

  /// Free bytes on the device; nil if unknown (`fstatvfs`).
  func freeBytes() -> UInt64?

  /// Reports from now on when a file may have changed whose name satisfies `concerns`. It is nil if
  /// the system does not support that.
  func watch(_ concerns: @escaping @Sendable (String) -> Bool) -> (any DirectoryWatch)?

  /// Releases the directory and all its files, even if they are in use. Each later call to one
  /// throws `.closed`.
  func close()
}

extension Directory {
  package var keyring: Keyring? { nil }

  package func freeBytes() -> UInt64? { nil }

  package func openForReads(_ name: String, held: Bool) throws(EngineError) -> any File {
    try open(name, access: .readOnly)
  }

  package var heldRoom: Int { .max }

  package func watch(_ concerns: @escaping @Sendable (String) -> Bool) -> (any DirectoryWatch)? {
    nil
  }

  package func close() {}
}

package enum FileAccess: Sendable {
  case readOnly
  case readWrite
}

/// An open file. Offsets are in bytes.
package protocol File: AnyObject, Sendable {
  var name: String { get }

  /// Up to `count` bytes from `offset`; fewer if the file ends (`pread`).
  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]

  /// The same, or nil if the call would wait for the device or the system does not support the
  /// check (`preadv2` with `RWF_NOWAIT`).
  func readAtOnce(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]?

  /// Makes the system begin to read these bytes from the device if it supports that
  /// (`posix_fadvise`; `F_RDADVISE` on Apple's systems). This is a hint.
  func willRead(at offset: UInt64, count: Int)

  /// Writes all of `bytes` at `offset`, extending the file if needed (`pwrite`).
  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError)

  /// Makes the device begin to store the written bytes of `range` if the system supports that
  /// (`sync_file_range`), without waiting. This is a hint: only a sync makes data durable.
  func willSync(_ range: Range<UInt64>)

  /// Makes the system reserve space for the bytes in `range`, so that later writes there do not
  /// fail for lack of it. The size stays the same (`fallocate`). Returns false if the file system
  /// does not support it.
  func reserve(_ range: Range<UInt64>) throws(EngineError) -> Bool

  /// Makes everything written so far survive a power cut (`fdatasync`; `F_FULLFSYNC` on Apple's
  /// systems).
  func sync() throws(EngineError)

  /// Writes all of `bytes` at `offset` and makes these bytes, and no others, survive a power cut.
  /// Earlier writes elsewhere in the file are not covered (`RWF_DSYNC`).
  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError)

  func size() throws(EngineError) -> UInt64

  /// Releases the space after `length` bytes if the system supports that (`ftruncate`). This is a
  /// hint.
  func giveBack(behind length: UInt64)
}

extension File {
  package func giveBack(behind length: UInt64) {}

  package func readAtOnce(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]? {
    try read(at: offset, count: count)
  }

  package func willRead(at offset: UInt64, count: Int) {}
  package func willSync(_ range: Range<UInt64>) {}
  package func reserve(_ range: Range<UInt64>) throws(EngineError) -> Bool { false }
}

/// A held lock. Releasing the object releases the directory.
package protocol DirectoryLock: AnyObject, Sendable {
  func release()
}
