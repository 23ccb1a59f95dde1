// Keeps refused records as they stood in their file, so that they can be mended and imported again.
// The file of rejects has the form of the file that they come from: JSON Lines, JSON values one
// after the other, or a table with its names. Lines that begin with `#ondol:` are comments; the
// first one says the form, so that nothing need be said when it is imported, and one stands before
// each record with the place and the reason.
//
//   #ondol: rejects/1 {"as":"csv","delimiter":";"}
//   id;price
//   #ondol: items.csv: line 7: 3 cells, and 2 columns
//   lamp;30;40

import Foundation
import Ondol
import OndolJSON
import OndolTerminal

/// The file of rejects of an import, or a directory of them for a directory.
struct ImportRejects {
  private static let mark = "#ondol:"
  private static let schema = "rejects/1"

  private let path: String
  /// Whether each file of the import has a file of rejects, of the same name.
  private let isDirectory: Bool
  /// Whether an import goes on, and its rejects with it.
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
    throw CommandFailure(.failed, "\(path) is there already; --rejects makes a new one")
  }

  /// Begins with another file of the import.
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
  /// - Parameter bytes: of the piece in which they stand.
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

  /// A line that is no record.
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

  /// What a file of rejects says of itself; nil for any other file.
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
