// `ondol check`: whether everything is present and valid. It examines the files while other
// processes may have the database open, and changes nothing.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON
import OndolTerminal

struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Looks for damage: reads all files, and with --full also all documents and indexes.",
    discussion: """
      Works beside an app that has the database open, and changes nothing. On a server it always \
      looks at all documents and indexes: the files there are the server's.

      An encrypted database is checked as far as its checksums go where no key is given. That \
      finds damage, and not what is missing or was exchanged by somebody.
      """)

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Only the structure of the files.")
  var quick = false

  @Flag(help: "Also every document and every row of every index.")
  var full = false

  @Flag(help: "Only findings about blobs and their holders.")
  var blobs = false

  @Flag(help: "Only findings about documents and indexes.")
  var indexes = false

  @Flag(help: "As --format json.")
  var json = false

  @OptionGroup var globals: GlobalOptions

  mutating func validate() throws {
    guard !(quick && full) else { throw ValidationError("--quick and --full exclude each other") }
    guard !quick || !(blobs || indexes) else {
      throw ValidationError("--quick looks at neither blobs nor indexes")
    }
    if json { globals.format = .json }
  }

  func run() async throws {
    let all = database.isOnServer ? try await rowFindings() : try await fileFindings()
    try Self.report(all.filter(isWanted), globals, damaged: "the database is damaged")
  }

  private func rowFindings() async throws -> [Finding] {
    guard !quick else {
      throw CommandFailure(.failed, "a database on a server has no files for --quick to read")
    }
    return try await database.withDatabase { opened in
      try await globals.showing(.things("documents")) { (bar) throws(DatabaseError) in
        try await opened.verify(depth: .full) { bar.show($0.documents) }
      }
    }
  }

  private func fileFindings() async throws(CommandFailure) -> [Finding] {
    let directory = try database.directory()
    let key = try DatabaseKey.current()
    do throws(DatabaseError) {
      if key == nil, depth == .blocks, let findings = try await keylessFindings(directory) {
        return findings
      }
      return try await globals.showing(.bytes) { (bar) throws(DatabaseError) in
        try await Database.verify(at: directory, depth: depth, encryption: key) {
          progress in
          bar.show(
            progress.completedBytes,
            note: "of \(progress.totalBytes >> 20) MiB, \(counted(progress.documents, "document"))")
        }
      }
    } catch {
      throw CommandFailure(opening: directory, error)
    }
  }

  /// The findings that need no key; nil if the database is not encrypted.
  private func keylessFindings(_ directory: String) async throws(DatabaseError) -> [Finding]? {
    let found: KeylessVerification
    do throws(DatabaseError) {
      found = try await globals.showing(.bytes) { (bar) throws(DatabaseError) in
        try await Database.verifyWithoutKey(at: directory) {
          bar.show($0.completedBytes, note: "of \($0.totalBytes >> 20) MiB")
        }
      }
    } catch {
      // Without a superblock it is unknown whether a key is needed.
      guard [.failedPrecondition, .dataLoss].contains(error.code) else { throw error }
      return nil
    }
    globals.say(
      """
      without the key: the checksums of \(found.checkedBytes) bytes were compared, and nothing is \
      known of \(found.uncheckedBytes) bytes; documents, indexes, missing files and who wrote the \
      bytes were not looked at
      """)
    return found.findings
  }

  /// Prints findings and their number. Errors are status 4.
  static func report(
    _ findings: [Finding], _ globals: GlobalOptions, damaged message: String
  ) throws(CommandFailure) {
    try print(findings, globals)
    let errors = findings.count { $0.severity == .error }
    globals.say("\(counted(errors, "error")), \(counted(findings.count - errors, "warning"))")
    if errors > 0 { throw CommandFailure(.corrupt, message) }
  }

  private var depth: VerificationDepth {
    quick ? .structure : full || blobs || indexes ? .full : .blocks
  }

  /// Whether a finding was requested.
  private func isWanted(_ finding: Finding) -> Bool {
    guard blobs || indexes else { return true }
    switch finding.kind {
    case .content, .holder: return blobs
    case .index, .document, .catalog: return indexes
    default: return false
    }
  }

  /// Prints findings: a sentence each for a person, objects for programs.
  static func print(_ findings: [Finding], _ globals: GlobalOptions) throws(CommandFailure) {
    // Sentences are too long for columns.
    if globals.chosenFormat == .table {
      var output = Output(.table)
      for finding in findings {
        try output.print("\(finding)")
        if let hint = finding.hint { try output.print("  \(hint)") }
      }
      return try output.flush()
    }
    try globals.report("check/1", columns, findings.map(row))
  }

  private static let columns = [
    "severity", "kind", "message", "file", "offset", "collection", "id", "storagePath", "hint",
  ]

  private static func row(_ finding: Finding) -> [Cell] {
    let cells: [(String, Value?)] = [
      ("severity", .string(finding.severity.rawValue)), ("kind", .string(finding.kind.rawValue)),
      ("message", .string(finding.message)), ("file", finding.file.map { .string($0) }),
      ("offset", finding.offset.map { .number($0) }),
      ("collection", finding.collection.map { .string($0) }),
      ("id", finding.id.map { .string($0) }),
      ("storagePath", finding.storagePath.map { .string($0) }),
      ("hint", finding.hint.map { .string($0) }),
    ]
    return cells.compactMap { name, value in value.map { (name, $0) } }
  }
}
