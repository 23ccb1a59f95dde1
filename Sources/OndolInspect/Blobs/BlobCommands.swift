// `ondol blob`: contents by their digests: which there are, who holds them, their bytes.

import ArgumentParser
import Foundation
import Ondol

struct BlobCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "blob", abstract: "Looks at the contents of blobs, and stores them.",
    subcommands: [
      BlobListCommand.self, BlobReferencesCommand.self, BlobBytesCommand.self,
      BlobPutCommand.self, BlobVerifyCommand.self, BlobCollectCommand.self,
      BlobStatisticsCommand.self,
    ])

  /// A digest as people give it.
  static func digest(_ text: String) throws(CommandFailure) -> BlobDigest {
    guard let digest = BlobDigest(hex: text) else {
      throw CommandFailure(.usage, "\(text) is no digest: 64 hexadecimal digits")
    }
    return digest
  }

  /// Visits all contents in the order of their digests.
  static func forEach(
    in database: Database, holderLimit: Int = 8, _ visit: (ListedContent) async throws -> Void
  ) async throws {
    var last: BlobDigest?
    while true {
      let page = try await database.listContents(
        after: last, limit: 500, holderLimit: holderLimit)
      for content in page { try await visit(content) }
      guard let end = page.last else { return }
      last = end.digest
    }
  }
}

struct BlobListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists the contents, with what they are and who holds them.")

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Only contents that nobody holds.")
  var unreferenced = false

  @Option(help: "Only contents with more bytes.")
  var larger: Int?

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      let columns = ["digest", "length", "what", "file", "holders", "derived", "isLeased"]
      var rows = RowWriter(globals, .report(schema: "blob-ls/1", columns: columns))
      try await BlobCommand.forEach(in: database) { content in
        guard !unreferenced || content.holders.isEmpty, content.length > larger ?? -1 else {
          return
        }
        try rows.write([
          ("digest", .string(content.digest.hex)), ("length", .integer(Int64(content.length))),
          ("what", .string(try await Self.describe(content, database))),
          ("file", content.file.map { .string($0) } ?? .null),
          ("holders", .array(content.holders.map { .string($0) })),
          ("derived", .array(content.derived.keys.sorted().map { .string($0) })),
          ("isLeased", .boolean(content.isLeased)),
        ])
      }
      try rows.finish()
    }
  }

  /// "image/jpeg 1024x768 213 KB", told from the first bytes.
  private static func describe(
    _ content: ListedContent, _ database: Database
  ) async throws -> String {
    let blob = try BlobReference(digest: content.digest, length: content.length)
    var head: [UInt8] = []
    // Damaged bytes are for `blob verify` to tell.
    do {
      for try await piece in database.storage.bytes(of: blob, in: 0..<min(content.length, 1 << 16))
      { head += piece }
    } catch {
      return "cannot be read, \(ByteCount.text(content.length))"
    }
    let picture = PictureSize(head)
    let words = [
      picture?.contentType ?? "bytes", picture.map { "\($0.width)x\($0.height)" },
      ByteCount.text(content.length),
    ]
    return words.compactMap(\.self).joined(separator: " ")
  }
}

struct BlobReferencesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refs", abstract: "Prints who holds a content, and what was derived from it.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The content's SHA-256, in hexadecimal digits.")
  var digest: String

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      let digest = try BlobCommand.digest(digest)
      guard let content = try await database.listedContent(digest, holderLimit: 100_000) else {
        throw CommandFailure(.notFound, "there is no content \(digest)")
      }
      var rows = RowWriter(
        globals, .report(schema: "blob-refs/1", columns: ["kind", "name", "digest"]))
      for holder in content.holders {
        try rows.write([("kind", "holder"), ("name", .string(holder))])
      }
      for (name, child) in content.derived.sorted(by: { $0.key < $1.key }) {
        try rows.write([
          ("kind", "derived"), ("name", .string(name)), ("digest", .string(child.digest.hex)),
        ])
      }
      try rows.finish()
    }
  }
}

struct BlobBytesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cat", abstract: "Writes the bytes of a content.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The content's SHA-256, or the path of an object in storage.")
  var content: String

  @Option(help: "Only bytes a-b, the last one included; 100- is to the end.")
  var range: String?

  @Option(name: .shortAndLong, help: "Into this file instead of standard output.")
  var output: String?

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      let blob = try await find(in: database)
      let bytes = database.storage.bytes(of: blob, in: try bounds(of: blob))
      guard let output else {
        for try await piece in bytes { try Output.write(Data(piece)) }
        return
      }
      guard FileManager.default.createFile(atPath: output, contents: nil),
        let file = FileHandle(forWritingAtPath: output)
      else { throw CommandFailure(.failed, "cannot write \(output)") }
      do {
        for try await piece in bytes { try file.write(contentsOf: Data(piece)) }
        try file.close()
      } catch let error as DatabaseError {
        throw CommandFailure(error)
      } catch {
        throw CommandFailure(.failed, "cannot write \(output): \(error.localizedDescription)")
      }
    }
  }

  private func find(in database: Database) async throws -> BlobReference {
    if let digest = BlobDigest(hex: content) {
      guard let found = try await database.listedContent(digest, holderLimit: 1) else {
        throw CommandFailure(.notFound, "there is no content \(digest)")
      }
      return try BlobReference(digest: digest, length: found.length)
    }
    let metadata = try await database.storage.reference(withPath: content).getMetadata()
    guard let blob = metadata.blob else {
      throw CommandFailure(.notFound, "there is no object at \(content)")
    }
    return blob
  }

  private func bounds(of blob: BlobReference) throws(CommandFailure) -> Range<Int>? {
    guard let range else { return nil }
    let parts = range.split(separator: "-", omittingEmptySubsequences: false)
    let last =
      parts.count == 2 && parts[1].isEmpty ? blob.length - 1 : parts.last.flatMap { Int($0) }
    guard parts.count == 2, let first = Int(parts[0]), let last, first >= 0, last >= first - 1
    else { throw CommandFailure(.usage, "\(range) is no range, as 0-99 or 100-") }
    return min(first, blob.length)..<min(last + 1, blob.length)
  }
}

struct BlobPutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "put", abstract: "Stores the bytes of a file, and prints the reference to them.",
    discussion: """
      Without --path nobody holds the content yet: it stays for a day, until a document refers to \
      it.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The file.", completion: .file())
  var file: String

  @Option(help: "Put it at this path of storage, which then holds it.")
  var path: String?

  @Option(help: "What it is, as image/jpeg; told from its bytes when not given.")
  var contentType: String?

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    guard let bytes = FileManager.default.contents(atPath: file) else {
      throw CommandFailure(.failed, "cannot read \(file)")
    }
    try await database.withDatabase(writing: true) { database in
      let blob: BlobReference
      if let path {
        let metadata = StorageMetadata(contentType: contentType)
        let stored = try await database.storage.reference(withPath: path)
          .putData(bytes, metadata: metadata)
        guard let reference = stored.blob else {
          throw CommandFailure(.failed, "\(path) has no content")
        }
        blob = reference
      } else {
        blob = try await database.storage.put(bytes, contentType: contentType)
      }
      var rows = RowWriter(globals, .report(schema: "blob-put/1", columns: ["digest", "blob"]))
      try rows.write([("digest", .string(blob.digest.hex)), ("blob", .blob(blob))])
      try rows.finish()
    }
  }
}

struct BlobVerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Compares the bytes of contents with their digests.")

  @OptionGroup var database: DatabaseArgument

  @Option(help: "Only so many of a hundred, chosen anew each time.")
  var sample = 100.0

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard sample > 0, sample <= 100 else {
      throw ValidationError("--sample must be above 0 and at most 100")
    }
  }

  func run() async throws {
    let findings = try await database.withDatabase {
      try await $0.verifyContents(share: sample / 100)
    }
    try CheckCommand.print(findings, globals)
    let errors = findings.count { $0.severity == .error }
    globals.say("\(errors) errors, \(findings.count - errors) warnings")
    if errors > 0 { throw CommandFailure(.corrupt, "contents are damaged") }
  }
}

struct BlobCollectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gc", abstract: "Gives up contents that nobody holds and whose time is over.")

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Only say what nobody holds.")
  var dryRun = false

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let columns = ["contents", "bytes", "isDryRun"]
    var rows = RowWriter(globals, .report(schema: "blob-gc/1", columns: columns))
    let (contents, bytes) = try await database.withDatabase(writing: !dryRun) { database in
      guard dryRun else { return try await database.storage.reclaim() }
      let statistics = try await database.storage.statistics()
      return (statistics.unheldContents, statistics.unheldBytes)
    }
    try rows.write([
      ("contents", .integer(Int64(contents))), ("bytes", .integer(Int64(bytes))),
      ("isDryRun", .boolean(dryRun)),
    ])
    try rows.finish()
  }
}

struct BlobStatisticsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats", abstract: "Prints how many contents there are, and how many bytes.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let statistics = try await database.withDatabase { try await $0.storage.statistics() }
    let numbers = [
      ("contents", statistics.contents), ("bytes", statistics.bytes),
      ("storedBytes", statistics.storedBytes), ("paths", statistics.paths),
      ("documents", statistics.documents), ("derived", statistics.derived),
      ("heldBytes", statistics.heldBytes), ("unheldContents", statistics.unheldContents),
      ("unheldBytes", statistics.unheldBytes),
    ]
    var rows = RowWriter(
      globals, .report(schema: "blob-stats/1", columns: numbers.map(\.0)))
    try rows.write(numbers.map { ($0.0, .integer(Int64($0.1))) })
    try rows.finish()
  }
}
