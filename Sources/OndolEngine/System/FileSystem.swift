// All that the engine asks of a file system, as a protocol, because there are two: the disk, and
// the simulation that loses power in the middle of a write. Calls block; whoever calls runs on a
// thread that may. Names are generated from numbers, never taken from a file's contents, so no name
// leaves the directory.

/// Opens database directories.
package protocol FileSystem: Sendable {
  /// Opens the directory at `path`; creates it when `create` says so and it is missing. Its name
  /// survives a power cut only after `syncName()`.
  func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory
}

/// An open database directory.
package protocol Directory: AnyObject, Sendable {
  var path: String { get }

  /// The keys that its files are sealed with; nil where they are in the clear.
  var keyring: Keyring? { get }

  /// The names in it, in no order.
  func list() throws(EngineError) -> [String]

  /// Opens a regular file. A missing one is an error with `ENOENT`.
  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File

  /// Opens a file that may be kept for as long as the database is open, one of very many. Its
  /// descriptor may be closed between two reads and opened again.
  ///
  /// - Parameter held: whether it should stay open because somebody else may remove it; at most
  ///   `heldRoom` files can. A file that is gone is `.superseded` where others write, and an error
  ///   with `ENOENT` elsewhere.
  func openForReads(_ name: String, held: Bool) throws(EngineError) -> any File

  /// How many files more can be held open.
  var heldRoom: Int { get }

  /// Makes a new file; one that exists is an error with `EEXIST`. The name survives a power cut
  /// only after `sync()`.
  func create(_ name: String) throws(EngineError) -> any File

  func remove(_ name: String) throws(EngineError)

  /// Makes the names made and removed so far survive a power cut (`fsync` of the directory).
  func sync() throws(EngineError)

  /// Makes the directory's own name survive a power cut (`fsync` of its parent).
  func syncName() throws(EngineError)

  /// Takes the directory's lock for this open, or throws `.inUse`. Given back when the lock is
  /// released.
  func lock(owner: String) throws(EngineError) -> any DirectoryLock

  /// Bytes that can still be written to the device; nil where that cannot be told (`fstatvfs`).
  func freeBytes() -> UInt64?

  /// Tells from now on when a file may have changed whose name `concerns` says yes to; nil where
  /// that cannot be told.
  func watch(_ concerns: @escaping @Sendable (String) -> Bool) -> (any DirectoryWatch)?

  /// Gives the directory and all its files back to the system, whoever has them: each later call to
  /// one throws `.closed`.
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

  /// The bytes from `offset`, `count` of them, or fewer where the file ends (`pread`).
  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]

  /// The same, unless it would wait for the device: then nil, as where the system cannot say
  /// (`preadv2` with `RWF_NOWAIT`).
  func readAtOnce(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]?

  /// Has the system begin to read these bytes from the device, where it can (`posix_fadvise`;
  /// `F_RDADVISE` on Apple's systems). A hint.
  func willRead(at offset: UInt64, count: Int)

  /// Writes all of `bytes` at `offset`, making the file longer where needed (`pwrite`).
  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError)

  /// Has the device begin to take what was written in `range`, where the system can
  /// (`sync_file_range`), and waits for nothing. A hint: only a sync makes anything survive.
  func willSync(_ range: Range<UInt64>)

  /// Has the system set aside room for the bytes in `range`, so that writing there later does not
  /// fail for want of it; the size stays (`fallocate`). False where the file system cannot.
  func reserve(_ range: Range<UInt64>) throws(EngineError) -> Bool

  /// Makes everything written so far survive a power cut (`fdatasync`; `F_FULLFSYNC` on Apple's
  /// systems).
  func sync() throws(EngineError)

  /// Writes all of `bytes` at `offset` and makes these bytes survive a power cut, and no others:
  /// what was written before and elsewhere in the file is not covered (`RWF_DSYNC`).
  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError)

  func size() throws(EngineError) -> UInt64

  /// Gives back the space of what is behind `length` bytes, where the system can (`ftruncate`). A
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

/// A held lock; letting go of it releases the directory.
package protocol DirectoryLock: AnyObject, Sendable {
  func release()
}
