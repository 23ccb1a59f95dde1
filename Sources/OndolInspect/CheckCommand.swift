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

  /// How findings are printed.
  enum Format: String, ExpressibleByArgument, CaseIterable {
    case text, jsonl, json
  }

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "The structure of the files only.")
  var quick = false

  @Flag(help: "Also every document and every row of every index.")
  var full = false

  @Option(help: "text, jsonl or json; text on a terminal and jsonl in a pipe when not given.")
  var format: Format?

  @Flag(help: "No summary and no progress.")
  var quiet = false

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
        guard !quiet, Output.messagesGoToTerminal, shown.duration(to: .now) > .milliseconds(200)
        else { return }
        shown = .now
        Output.say("\r\(Self.describe(progress))", terminator: "")
      }
    } catch {
      throw CommandFailure(opening: database.directory, error)
    }
    if !quiet, Output.messagesGoToTerminal { Output.say("\r", terminator: "") }
    try print(findings)
    let errors = findings.count { $0.severity == .error }
    if !quiet { Output.say("\(errors) errors, \(findings.count - errors) warnings") }
    if errors > 0 { throw CommandFailure(.corrupt, "the database is damaged") }
  }

  private static func describe(_ progress: VerificationProgress) -> String {
    let megabytes = (progress.completedBytes >> 20, progress.totalBytes >> 20)
    return "\(megabytes.0) of \(megabytes.1) MiB, \(progress.documents) documents "
  }

  private func print(_ findings: [Finding]) throws {
    var output = Output()
    switch format ?? (Output.isTerminal ? .text : .jsonl) {
    case .text:
      for finding in findings {
        try output.print("\(finding)")
        if let hint = finding.hint { try output.print("  \(hint)") }
      }
    case .jsonl:
      for finding in findings { try output.print(Self.json(finding)) }
    case .json:
      let lines = findings.map(Self.json)
      try output.print("[" + lines.joined(separator: ",\n") + "]")
    }
    try output.flush()
  }

  private static func json(_ finding: Finding) -> String {
    var fields: [String: Value] = [
      "schema": "check/1", "severity": .string(finding.severity.rawValue),
      "kind": .string(finding.kind.rawValue), "message": .string(finding.message),
    ]
    fields["file"] = finding.file.map { .string($0) }
    fields["offset"] = finding.offset.map { .integer(Int64(clamping: $0)) }
    fields["collection"] = finding.collection.map { .string($0) }
    fields["id"] = finding.id.map { .string($0) }
    fields["storagePath"] = finding.storagePath.map { .string($0) }
    fields["hint"] = finding.hint.map { .string($0) }
    return JSONWriter.line(.map(fields))
  }
}
