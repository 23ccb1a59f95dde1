// An import under way: pieces are read one after the other, parsed by several workers at once and
// committed in their order, so that what is in the database is always a beginning of the file.
// While one piece is committed the next ones are being parsed; no more of them are in memory than
// there are workers, and one.

import Foundation
import Ondol
import OndolTerminal
import OndolJSON

/// What the pieces of all files have in common, and what came of them.
struct ImportRun {
  let database: Database
  let durability: Durability
  let jobs: Int
  let stopsOnError: Bool
  var checkpoint: ImportCheckpoint?
  var report: ImportReport

  /// Imports a file.
  mutating func run(
    _ file: String, _ parser: ImportParser
  ) async throws {
    var parser = parser
    let start = try checkpoint?.position(in: file) ?? ImportPosition()
    if parser.format == .csv {
      var reader = try PieceReader(path: file, .csv)
      guard let header = try reader.next(lines: 1) else { return }
      parser.header = try ImportParser.header(header.bytes)
      if start.offset == 0 { return try await run(file, parser, reader) }
    }
    try await run(file, parser, PieceReader(path: file, parser.format, from: start))
  }

  private mutating func run(
    _ file: String, _ parser: ImportParser, _ reader: PieceReader
  ) async throws {
    var reader = reader
    report.begin(file, at: reader.position)
    try await withThrowingTaskGroup(of: (Int, ParsedPiece).self) { group in
      var (begun, done) = (0, 0)
      var waiting: [Int: ParsedPiece] = [:]
      var isAtEnd = false
      while true {
        while !isAtEnd, begun - done <= jobs {
          guard let piece = try reader.next() else {
            isAtEnd = true
            break
          }
          group.addTask { [begun] in (begun, parser.parse(piece)) }
          begun += 1
        }
        guard done < begun else { return }
        while waiting[done] == nil, let (number, parsed) = try await group.next() {
          waiting[number] = parsed
        }
        guard let parsed = waiting.removeValue(forKey: done) else { return }
        done += 1
        try await commit(parsed, of: file)
        try Interruption.check()
      }
    }
  }

  private mutating func commit(_ parsed: ParsedPiece, of file: String) async throws {
    var badLines: [BadLine] = []
    try await commit(parsed, parsed.documents.indices, &badLines)
    badLines = (badLines + parsed.badLines).sorted { $0.line < $1.line }
    report.note(badLines)
    if stopsOnError, let bad = badLines.first {
      throw CommandFailure(.failed, "\(bad.place): \(bad.reason)")
    }
    try checkpoint?.note(parsed.end, in: file)
    try report.note(parsed.end)
  }

  /// Commits some of a piece's documents. When one of them cannot be, the others are committed
  /// without it, by halves; with `--stop-on-error` those before it.
  private mutating func commit(
    _ parsed: ParsedPiece, _ range: Range<Int>, _ badLines: inout [BadLine]
  ) async throws {
    if range.isEmpty || stopsOnError && !badLines.isEmpty { return }
    do throws(DatabaseError) {
      try await database.commit(Array(parsed.documents[range]), durability: durability)
      report.documents += range.count
      try? report.acknowledge()
    } catch {
      guard error.path != nil, Self.isOfDocument(error.code) else { throw error }
      if range.count == 1 {
        badLines.append(BadLine(line: parsed.lines[range.lowerBound], reason: "\(error)"))
        return
      }
      let middle = range.lowerBound + range.count / 2
      try await commit(parsed, range.lowerBound..<middle, &badLines)
      try await commit(parsed, middle..<range.upperBound, &badLines)
    }
  }

  /// Whether one document is the reason, and others can be written.
  private static func isOfDocument(_ code: DatabaseError.Code) -> Bool {
    switch code {
    case .alreadyExists, .notFound, .invalidArgument, .resourceExhausted, .failedPrecondition:
      true
    default: false
    }
  }
}

/// Tells the person, and on request the program that started this one, how far it got.
struct ImportReport {
  /// Bad lines that are shown; the others are counted.
  private static let shownLines = 20

  let isAcknowledging: Bool
  let isQuiet: Bool
  let stopsOnError: Bool
  var documents = 0
  private(set) var badLines = 0
  private var shown = 0
  private var acknowledged = 0
  private var bar: ProgressBar
  private var file = ""
  private var fileStart: Int64 = 0
  /// Bytes of the files before.
  private var bytesBefore: Int64 = 0
  private var output = Output()
  private let start = ContinuousClock.now

  init(
    isAcknowledging: Bool, stopsOnError: Bool, isQuiet: Bool, showsProgress: Bool, bytes: Int64?
  ) {
    self.isAcknowledging = isAcknowledging
    self.stopsOnError = stopsOnError
    self.isQuiet = isQuiet
    bar = ProgressBar(.bytes, of: bytes, isQuiet: !showsProgress)
  }

  mutating func begin(_ file: String, at position: ImportPosition) {
    bytesBefore += fileStart
    fileStart = 0
    self.file = file
  }

  mutating func note(_ bad: [BadLine]) {
    guard !stopsOnError else { return }
    for line in bad {
      badLines += line.count
      shown += 1
      guard shown <= Self.shownLines, !isQuiet else { continue }
      bar.clear()
      let place = file == "-" ? "" : "\(file): "
      Console.say("ondol: \(place)\(line.place): \(line.reason)")
      if shown == Self.shownLines { Console.say("ondol: further bad lines are only counted") }
    }
  }

  mutating func note(_ position: ImportPosition) throws(CommandFailure) {
    fileStart = position.offset
    bar.show(bytesBefore + position.offset, note: counted(documents, "document"))
    try acknowledge()
  }

  /// Prints the count after a commit, on request.
  mutating func acknowledge() throws(CommandFailure) {
    guard isAcknowledging, documents > acknowledged else { return }
    acknowledged = documents
    try output.print("\(documents)")
    try output.flush()
  }

  mutating func finish(into collection: String?) {
    bar.clear()
    guard !isQuiet else { return }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let time = "\((seconds * 100).rounded() / 100)"
    let place = collection.map { " into \($0)" } ?? ""
    let skipped =
      badLines == 0
      ? "" : " \(counted(badLines, "bad line was", "bad lines were")) left out."
    Console.say("Imported \(counted(documents, "document"))\(place) in \(time) s.\(skipped)")
  }
}
