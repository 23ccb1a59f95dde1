// The app's own files, read for uploads and written for downloads: on the thread for cold reads, a
// megabyte at a time, because the system may block a reader of a file.

internal import OndolEngine
internal import OndolFoundation

/// The location of a file: its directory and its name in it.
private struct LocalPlace: Sendable {
  let directory: String
  let name: String

  var path: String { directory + "/" + name }

  /// - Throws: `.invalidArgument` when the path does not name a file.
  init(_ path: String) throws(DatabaseError) {
    let url = URL(filePath: path).resolvingSymlinksInPath()
    directory = url.deletingLastPathComponent().path
    name = url.lastPathComponent
    guard !path.isEmpty, !name.isEmpty, name != "/" else {
      throw DatabaseError(.invalidArgument, "\"\(path)\" does not name a file", path: path)
    }
  }
}

/// A file that is read from its beginning to its end.
struct LocalFile: ~Copyable {
  static let pieceLength = 1 << 20

  /// Bytes in the file when it was opened.
  let length: Int
  private let path: String
  private let contents: Contents
  private let file: any File
  private var offset = 0

  /// - Throws: `.notFound` or `.permissionDenied` when the file cannot be read.
  static func open(
    _ path: String, in database: Database
  ) async throws(DatabaseError) -> LocalFile {
    let place = try LocalPlace(path)
    let contents = database.contents.contents
    do throws(EngineError) {
      let (file, length) = try await contents.readBlocking { () throws(EngineError) in
        let directory = try DiskFileSystem().openDirectory(at: place.directory, create: false)
        let file = try directory.open(place.name, access: .readOnly)
        return (file, try file.size())
      }
      return LocalFile(
        length: Int(clamping: length), path: path, contents: contents, file: file)
    } catch {
      throw DatabaseError(localFile: error, path)
    }
  }

  /// The next bytes; nil at the end.
  ///
  /// - Throws: `.aborted` when the file has become shorter or longer.
  mutating func next() async throws(DatabaseError) -> [UInt8]? {
    let (file, start) = (file, UInt64(offset))
    let bytes: [UInt8]
    do throws(EngineError) {
      bytes = try await contents.readBlocking { () throws(EngineError) in
        try file.read(at: start, count: Self.pieceLength)
      }
    } catch {
      throw DatabaseError(localFile: error, path)
    }
    offset += bytes.count
    guard bytes.isEmpty ? offset == length : offset <= length else {
      throw DatabaseError(
        .aborted, "the file changed while it was read; put it again", path: path)
    }
    return bytes.isEmpty ? nil : bytes
  }
}

/// A file that is written from its beginning to its end, and then replaces the old one.
struct LocalFileWriter: ~Copyable {
  private let place: LocalPlace
  private let part: String
  private let contents: Contents
  private let directory: any Directory
  private let file: any File
  private var offset: UInt64 = 0

  static func make(
    _ path: String, in database: Database
  ) async throws(DatabaseError) -> LocalFileWriter {
    let place = try LocalPlace(path)
    let part = ".\(place.name).\(database.random(below: .max))"
    let contents = database.contents.contents
    do throws(EngineError) {
      let (directory, file) = try await contents.readBlocking { () throws(EngineError) in
        let directory = try DiskFileSystem().openDirectory(at: place.directory, create: false)
        return (directory, try directory.create(part))
      }
      return LocalFileWriter(
        place: place, part: part, contents: contents, directory: directory, file: file)
    } catch {
      throw DatabaseError(localFile: error, path)
    }
  }

  mutating func write(_ bytes: [UInt8]) async throws(DatabaseError) {
    let (file, start) = (file, offset)
    offset += UInt64(bytes.count)
    try await perform { () throws(EngineError) in try file.write(bytes.bytes, at: start) }
  }

  /// Moves the file into its place, once its bytes are on the device.
  func finish() async throws(DatabaseError) {
    let (file, directory, place, part) = (file, directory, place, part)
    try await perform { () throws(EngineError) in
      try file.sync()
      let path = directory.path + "/" + part
      try DiskFileSystem().replaceFile(at: place.path, withFileAt: path)
      try directory.sync()
    }
  }

  /// Removes what was written.
  func abandon() async {
    let (directory, part) = (directory, part)
    await contents.readBlocking { try? directory.remove(part) }
  }

  private func perform(
    _ body: @escaping @Sendable () throws(EngineError) -> Void
  ) async throws(DatabaseError) {
    do throws(EngineError) {
      try await contents.readBlocking(body)
    } catch {
      throw DatabaseError(localFile: error, place.path)
    }
  }
}

extension DatabaseError {
  /// The system's error about a file that is not the database's.
  fileprivate init(localFile error: EngineError, _ path: String) {
    self.init(error)
    self.path = path
  }
}
