// `ondol check`: is everything there, and is it right? Looks at the files beside whoever has the
// database open, and changes nothing.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON

struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Looks for damage: reads all files, or with --full all documents and indexes, too.",
    discussion: "Works beside an app that has the database open, and changes nothing.")

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "The structure of the files only.")
  var quick = false

  @Flag(help: "Also every document and every row of every index.")
  var full = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard !(quick && full) else { throw ValidationError("--quick and --full exclude each other") }
  }

  func run() async throws {
    guard FileManager.default.fileExists(atPath: database.directory) else {
      throw CommandFailure(.notFound, "there is no database at \(database.directory)")
    }
    let findings: [Finding]
    var shown = ContinuousClock.now
    do throws(DatabaseError) {
      findings = try await Database.verify(
        at: database.directory, depth: quick ? .structure : full ? .full : .blocks
      ) { progress in
        guard globals.showsProgress, shown.duration(to: .now) > .milliseconds(200)
        else { return }
        shown = .now
        Output.say("\r\(Self.describe(progress))", terminator: "")
      }
    } catch {
      throw CommandFailure(opening: database.directory, error)
    }
    if globals.showsProgress { Output.say("\r", terminator: "") }
    try print(findings)
    let errors = findings.count { $0.severity == .error }
    do { globals.say("\(errors) errors, \(findings.count - errors) warnings") }
    if errors > 0 { throw CommandFailure(.corrupt, "the database is damaged") }
  }

  private static func describe(_ progress: VerificationProgress) -> String {
    let megabytes = (progress.completedBytes >> 20, progress.totalBytes >> 20)
    return "\(megabytes.0) of \(megabytes.1) MiB, \(progress.documents) documents "
  }

  private func print(_ findings: [Finding]) throws(CommandFailure) {
    // Sentences are too long for columns.
    if globals.chosenFormat == .table {
      var output = Output()
      for finding in findings {
        try output.print("\(finding)")
        if let hint = finding.hint { try output.print("  \(hint)") }
      }
      return try output.flush()
    }
    var rows = RowWriter(globals, .report(schema: "check/1", columns: Self.columns))
    for finding in findings { try rows.write(Self.row(finding)) }
    try rows.finish()
  }

  private static let columns = [
    "severity", "kind", "message", "file", "offset", "collection", "id", "storagePath", "hint",
  ]

  private static func row(_ finding: Finding) -> [Cell] {
    let cells: [(String, Value?)] = [
      ("severity", .string(finding.severity.rawValue)), ("kind", .string(finding.kind.rawValue)),
      ("message", .string(finding.message)), ("file", finding.file.map { .string($0) }),
      ("offset", finding.offset.map { .integer(Int64(clamping: $0)) }),
      ("collection", finding.collection.map { .string($0) }),
      ("id", finding.id.map { .string($0) }),
      ("storagePath", finding.storagePath.map { .string($0) }),
      ("hint", finding.hint.map { .string($0) }),
    ]
    return cells.compactMap { name, value in value.map { (name, $0) } }
  }
}
