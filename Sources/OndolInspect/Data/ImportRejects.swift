// Keeps rejected records in their original form, so that they can be corrected and imported again.
// The file of rejects has the form of its source file: JSON Lines, consecutive JSON values, or a
// table with its column names. Lines that begin with `#ondol:` are comments. The first one states
// the form, so that no options are needed for importing it. Another one comes before each record,
// with the location and the reason.
//
//   #ondol: rejects/1 {"as":"csv","delimiter":";"}
//   id;price
//   #ondol: items.csv: line 7: 3 cells, and 2 columns
//   lamp;30;40

import Foundation
import Ondol
import OndolJSON
import OndolTerminal

/// The file of rejects of an import, or a directory of such files for a directory.
struct ImportRejects {
  private static let mark = "#ondol:"
  private static let schema = "rejects/1"

  private let path: String
  /// Whether each file of the import has a file of rejects with the same name.
  private let isDirectory: Bool
  /// Whether an earlier import, and its file of rejects, is continued.
  private let goesOn: Bool
  private var file = ""
  private var form = FileForm(.jsonl)
  private var header: [String] = []
  private var handle: FileHandle?
  private(set) var count = 0

  init(path: String, isDirectory: Bool, goesOn: Bool) throws(CommandFailure) {
    self.path = path
    self.isDirectory = isDirectory
    self.goesOn = goesOn
    guard !goesOn, FileManager.default.fileExists(atPath: path) else { return }
    throw CommandFailure(.failed, "\(path) exists already; --rejects creates a new file")
  }

  /// Begins with the next file of the import.
  mutating func begin(
    _ file: String, _ form: FileForm, _ header: [String]
  ) throws(CommandFailure) {
    self.file = file
    self.form = form
    self.header = header
    handle = nil
  }

  /// Keeps records.
  ///
  /// - Parameter bytes: the bytes of the piece with the records.
  mutating func write(_ records: [BadRecord], of bytes: [UInt8]) throws(CommandFailure) {
    guard !records.isEmpty else { return }
    var text: [UInt8] = []
    let place = file == "-" ? "" : file + ": "
    for bad in records {
      text += Self.comment("\(place)\(bad.place): \(bad.reason)")
      let record = bytes[bad.record.range]
      let breaks = record.reversed().prefix { $0 == 0x0A || $0 == 0x0D }.count
      text += record.dropLast(breaks) + [0x0A]
    }
    count += records.count
    let handle = try opened()
    do {
      try handle.write(contentsOf: Data(text))
    } catch {
      throw CommandFailure(.failed, "cannot write to \(path): \(error.localizedDescription)")
    }
  }

  /// A line that is not a record.
  private static func comment(_ text: String) -> [UInt8] {
    Array("\(mark) \(VisibleText.line(text))\n".utf8)
  }

  private mutating func opened() throws(CommandFailure) -> FileHandle {
    if let handle { return handle }
    let path = try fileName()
    if goesOn, let old = FileHandle(forWritingAtPath: path) {
      do {
        try old.seekToEnd()
      } catch {
        throw CommandFailure(.failed, "cannot write to \(path): \(error.localizedDescription)")
      }
      handle = old
      return old
    }
    let new = try FileHandle.creating(path)
    do {
      try new.write(contentsOf: Data(head))
    } catch {
      throw CommandFailure(.failed, "cannot write to \(path): \(error.localizedDescription)")
    }
    handle = new
    return new
  }

  private func fileName() throws(CommandFailure) -> String {
    guard isDirectory else { return path }
    do {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    } catch {
      throw CommandFailure(.failed, "cannot make \(path): \(error.localizedDescription)")
    }
    return path + "/" + URL(filePath: file).lastPathComponent
  }

  private var head: [UInt8] {
    var fields: [String: Value] = ["as": .string(form.format.rawValue)]
    let delimiter = form.table.delimiter
    if form.format == .csv {
      fields["delimiter"] = .string(String(decoding: [delimiter], as: UTF8.self))
    }
    let names =
      form.format.isTable
      ? CSV.record(header.map { CSV.Cell($0) }, delimiter: delimiter, lineBreak: "\n") : ""
    return Array("\(Self.mark) \(Self.schema) \(JSONWriter.line(.map(fields)))\n\(names)".utf8)
  }

  // MARK: - Reading

  /// The form that a file of rejects states; nil for any other file.
  static func hints(from bytes: [UInt8]) -> FormHints? {
    let line = bytes.prefix { $0 != 0x0A }
    let start = Array("\(mark) \(schema) ".utf8)
    guard line.starts(with: start),
      let said = try? JSONReader.read(Array(line.dropFirst(start.count)), .plain).map,
      let format = said["as"]?.string.flatMap(FileFormat.init(rawValue:))
    else { return nil }
    var hints = FormHints()
    hints.format = format
    hints.comment = mark
    hints.delimiter = said["delimiter"]?.string?.utf8.first
    return hints
  }
}
