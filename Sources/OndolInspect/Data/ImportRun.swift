// A running import. It detects the form of a file, and then reads pieces one after the other.
// Several workers parse pieces at once, and the pieces are committed in order, so that the database
// always contains a prefix of the file. While one piece is being committed, the next ones are
// parsed. At most one more piece than there are workers is in memory.

import Foundation
import Ondol
import OndolTerminal
import OndolJSON

/// The settings that the pieces of all files share, and the results.
struct ImportRun {
  let database: Database
  let durability: Durability
  let jobs: Int
  let stopsOnError: Bool
  /// Whether documents are only counted.
  let isDry: Bool
  var checkpoint: ImportCheckpoint?
  var rejects: ImportRejects?
  var report: ImportReport

  /// Imports a file.
  ///
  /// - Parameter parser: configured here with the form and the names of columns.
  mutating func run(
    _ file: String, _ hints: FormHints, _ columns: [String], _ parser: ImportParser
  ) async throws {
    var reader = try PieceReader(path: file)
    let form = try reader.findForm(hints)
    var parser = parser
    parser.form = form
    reader.begin(form)
    report.begin(file, form)
    let start = try checkpoint?.position(in: file, form)
    if form.format.isTable {
      parser.header = try reader.columns(columns)
      guard !parser.header.isEmpty else { return }
      try parser.checkHeader(in: file)
    }
    try rejects?.begin(file, form, parser.header)
    if let start { try reader.resume(at: start) }
    try await run(file, parser, &reader)
    let neighbours = reader.neighbours
    if !neighbours.isEmpty {
      report.say("beside the array are \(neighbours.joined(separator: ", ")), which are left out")
    }
  }

  private mutating func run(
    _ file: String, _ parser: ImportParser, _ reader: inout PieceReader
  ) async throws {
    var unused = UnusedFields()
    var failure: CommandFailure?
    try await withThrowingTaskGroup(of: (Int, ParsedPiece).self) { group in
      var (begun, done) = (0, 0)
      var waiting: [Int: ParsedPiece] = [:]
      var isAtEnd = false
      while true {
        while !isAtEnd, begun - done <= jobs {
          do throws(CommandFailure) {
            guard let piece = try reader.next() else {
              isAtEnd = true
              break
            }
            group.addTask { [begun] in (begun, parser.parse(piece)) }
            begun += 1
          } catch {
            // Everything read before is committed first.
            failure = error
            isAtEnd = true
          }
        }
        guard done < begun else { return }
        while waiting[done] == nil, let (number, parsed) = try await group.next() {
          waiting[number] = parsed
        }
        guard let parsed = waiting.removeValue(forKey: done) else { return }
        done += 1
        try await commit(parsed, of: file, parser.form)
        unused.add(parsed)
        try Interruption.check()
      }
    }
    if let failure { throw failure }
    for message in unused.messages(idField: parser.idField) { report.say(message) }
  }

  private mutating func commit(
    _ parsed: ParsedPiece, of file: String, _ form: FileForm
  ) async throws {
    var badRecords: [BadRecord] = []
    try await commit(parsed, parsed.documents.indices, form, &badRecords)
    badRecords = (badRecords + parsed.badRecords).sorted {
      $0.record.range.lowerBound < $1.record.range.lowerBound
    }
    report.note(badRecords)
    try rejects?.write(badRecords, of: parsed.bytes)
    if stopsOnError, let bad = badRecords.first {
      throw CommandFailure(.failed, "\(Self.place(file))\(bad.place): \(bad.reason)")
    }
    if let doubt = parsed.doubt {
      throw CommandFailure(
        .failed,
        "\(Self.place(file))line \(doubt.record.line): the object that begins here goes on in the "
          + "next line, or the line is cut off; --as jsonl takes each line for itself, --as json "
          + "reads over lines")
    }
    try checkpoint?.note(parsed.end, in: file, form)
    try report.note(parsed.end)
  }

  private static func place(_ file: String) -> String { file == "-" ? "" : "\(file): " }

  /// Commits some of a piece's documents. If one of them is rejected, the others are committed
  /// without it, by repeated halving. With `--stop-on-error` only those before it are committed.
  private mutating func commit(
    _ parsed: ParsedPiece, _ range: Range<Int>, _ form: FileForm, _ badRecords: inout [BadRecord]
  ) async throws {
    if range.isEmpty || stopsOnError && !badRecords.isEmpty { return }
    do throws(DatabaseError) {
      if !isDry {
        try await database.commit(Array(parsed.documents[range]), durability: durability)
      }
      report.documents += range.count
      try? report.acknowledge()
    } catch {
      guard error.path != nil, Self.isOfDocument(error.code) else { throw error }
      if range.count == 1 {
        badRecords.append(
          BadRecord(parsed.records[range.lowerBound], Refusal("\(error)"), form))
        return
      }
      let middle = range.lowerBound + range.count / 2
      try await commit(parsed, range.lowerBound..<middle, form, &badRecords)
      try await commit(parsed, middle..<range.upperBound, form, &badRecords)
    }
  }

  /// Whether a single document is the cause, and others can be written.
  private static func isOfDocument(_ code: DatabaseError.Code) -> Bool {
    switch code {
    case .alreadyExists, .notFound, .invalidArgument, .resourceExhausted, .failedPrecondition:
      true
    default: false
    }
  }
}

/// The parts of a file that were not imported into documents.
private struct UnusedFields {
  private var names = 0
  private var leftOut: [String: Int] = [:]

  mutating func add(_ parsed: ParsedPiece) {
    names += parsed.unusedNames
    leftOut.merge(parsed.leftOut, uniquingKeysWith: +)
  }

  func messages(idField: String?) -> [String] {
    var messages: [String] = []
    if names > 0, let idField {
      messages.append(
        "\(JSONWriter.documentIDName) of \(counted(names, "document")) is left out, because the id "
          + "is in \(idField)")
    }
    for (name, count) in leftOut.sorted(by: { $0.key < $1.key }) {
      messages.append("\(name) of \(counted(count, "document")) is left out")
    }
    return messages
  }
}

extension PieceReader {
  /// Detects the form of the file before any of its contents are returned.
  mutating func findForm(_ hints: FormHints) throws(CommandFailure) -> FileForm {
    let beginning = try beginning()
    let hints = ImportRejects.hints(from: beginning.bytes) ?? hints
    do throws(FormDoubt) {
      return try FormFinder.form(of: beginning.bytes, isWhole: beginning.isWhole, hints)
    } catch {
      var place = name + ": "
      if let line = error.line { place += "line \(line): " }
      if let column = error.column { place += "column \(column): " }
      throw CommandFailure(.failed, place + error.reason)
    }
  }
}
