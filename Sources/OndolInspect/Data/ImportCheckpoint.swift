// The progress of an import, so that `--resume` continues there: a small JSON file next to the
// database, replaced after each commit. It is written after the commit that it records. So after a
// crash a few documents may be imported again, but none is omitted.

import Foundation
import Ondol
import OndolEngine
import OndolJSON

/// The positions reached in the files of an import.
struct ImportCheckpoint {
  /// The progress in one file.
  struct Entry: Equatable {
    var position = ImportPosition()
    /// Covers the bytes before the position, to detect a different file.
    var checksum: UInt32 = 0
    /// The form that was used for the file.
    var form = ""
  }

  /// The number of bytes before the position that are checked.
  private static let checkedBytes: Int64 = 1 << 16

  private let path: String
  private var entries: [String: Entry] = [:]

  /// Reads the file at `path` if it exists.
  init(path: String) throws(CommandFailure) {
    self.path = path
    guard let data = FileManager.default.contents(atPath: path) else { return }
    guard case .map(let fields)? = try? JSONReader.read(Array(data), .plain),
      fields["schema"] == "import-checkpoint/1", case .map(let files)? = fields["files"]
    else { throw CommandFailure(.failed, "\(path) is no checkpoint of an import") }
    for (file, entry) in files {
      guard let offset = entry["offset"]?.integer, offset >= 0,
        let lines = entry["lines"]?.integer.flatMap(Int.init(exactly:)), lines >= 0,
        let checksum = entry["checksum"]?.integer.flatMap(UInt32.init(exactly:))
      else { throw CommandFailure(.failed, "\(path) is no checkpoint of an import") }
      let column = entry["column"]?.integer.flatMap(Int.init(exactly:)) ?? 0
      entries[file] = Entry(
        position: ImportPosition(offset: offset, lines: lines, column: column), checksum: checksum,
        form: entry["form"]?.string ?? "")
    }
  }

  /// The position in a file to continue from.
  ///
  /// Throws if the file differs from the one imported so far, or its form was different.
  func position(in file: String, _ form: FileForm) throws(CommandFailure) -> ImportPosition? {
    guard let entry = entries[Self.name(file)] else { return nil }
    guard entry.form.isEmpty || entry.form == form.description else {
      throw CommandFailure(
        .failed,
        "\(file) was \(entry.form) so far, and now is \(form.description); use the options that "
          + "it was begun with, or remove \(path) to begin from the start")
    }
    guard try Self.checksum(of: file, before: entry.position.offset) == entry.checksum else {
      throw CommandFailure(
        .failed,
        "\(file) is not what was imported so far; remove \(path) to begin from the start")
    }
    return entry.position
  }

  /// Records the progress in a file.
  mutating func note(
    _ position: ImportPosition, in file: String, _ form: FileForm
  ) throws(CommandFailure) {
    guard let checksum = try Self.checksum(of: file, before: position.offset) else {
      throw CommandFailure(.failed, "\(file) has become shorter")
    }
    entries[Self.name(file)] = Entry(
      position: position, checksum: checksum, form: form.description)
    let files = entries.mapValues { entry in
      Value.map([
        "offset": .integer(entry.position.offset), "lines": .integer(Int64(entry.position.lines)),
        "column": .integer(Int64(entry.position.column)), "form": .string(entry.form),
        "checksum": .integer(Int64(entry.checksum)),
      ])
    }
    let text = JSONWriter.line(.map(["schema": "import-checkpoint/1", "files": .map(files)]))
    do {
      // A new file replaces the old one, so that a complete one always exists.
      try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
    } catch {
      throw CommandFailure(.failed, "cannot write \(path): \(error.localizedDescription)")
    }
  }

  /// Removes the file after a completed import.
  func remove() {
    try? FileManager.default.removeItem(atPath: path)
  }

  private static func name(_ file: String) -> String {
    URL(filePath: file).standardizedFileURL.path(percentEncoded: false)
  }

  /// Nil if the file is shorter than `offset`.
  private static func checksum(
    of file: String, before offset: Int64
  ) throws(CommandFailure) -> UInt32? {
    guard let handle = FileHandle(forReadingAtPath: file) else {
      throw CommandFailure(.failed, "cannot read \(file)")
    }
    let start = max(0, offset - checkedBytes)
    do {
      try handle.seek(toOffset: UInt64(start))
      let data = try handle.read(upToCount: Int(offset - start)) ?? Data()
      try handle.close()
      return Int64(data.count) == offset - start ? crc32c(Array(data).bytes) : nil
    } catch {
      throw CommandFailure(.failed, "cannot read \(file): \(error.localizedDescription)")
    }
  }
}
