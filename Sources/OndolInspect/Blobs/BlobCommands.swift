// `ondol blob`: contents by their digests: lists them, their references and their bytes.

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

  /// Information about a content, which must exist.
  static func content(
    _ digest: BlobDigest, in database: Database, holderLimit: Int
  ) async throws -> ListedContent {
    guard let content = try await database.listedContent(digest, holderLimit: holderLimit) else {
      throw CommandFailure(.notFound, "there is no content \(digest)")
    }
    return content
  }

  /// Visits all contents in the order of their digests.
  static func forEach(
    in database: Database, _ visit: (ListedContent) async throws -> Void
  ) async throws {
    var last: BlobDigest?
    repeat {
      let page = try await database.listContents(after: last, limit: 500, holderLimit: 8)
      for content in page { try await visit(content) }
      last = page.last?.digest
    } while last != nil
  }
}

struct BlobListCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists the contents with their types and holders.")

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Only contents without a holder.")
  var unreferenced = false

  @Option(help: "Only contents with more bytes.")
  var larger: Int?

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let columns = ["digest", "length", "what", "file", "holders", "derived", "isLeased"]
    try await globals.report("blob-ls/1", columns) { rows in
      try await BlobCommand.forEach(in: database) { content in
        guard !unreferenced || content.holders.isEmpty, content.length > larger ?? -1 else {
          return
        }
        try rows.write([
          ("digest", .string(content.digest.hex)), ("length", .number(content.length)),
          ("what", .string(try await Self.describe(content, database))),
          ("file", content.file.map { .string($0) } ?? .null),
          ("holders", .strings(content.holders)),
          ("derived", .strings(content.derived.keys.sorted())),
          ("isLeased", .boolean(content.isLeased)),
        ])
      }
    }
  }

  /// "image/jpeg 1024x768 213 KB", derived from the first bytes.
  private static func describe(
    _ content: ListedContent, _ database: Database
  ) async throws -> String {
    let blob = try BlobReference(digest: content.digest, length: content.length)
    var head: [UInt8] = []
    // `blob verify` reports damaged bytes.
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

struct BlobReferencesCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "refs", abstract: "Prints a content's holders, and the contents derived from it.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The content's SHA-256, in hexadecimal digits.")
  var digest: String

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    guard let digest = BlobDigest(hex: digest) else {
      throw CommandFailure(.usage, "\(digest) is not a digest, which has 64 hexadecimal digits")
    }
    let content = try await BlobCommand.content(digest, in: database, holderLimit: 100_000)
    let holders = content.holders.map { [Cell("kind", "holder"), Cell("name", .string($0))] }
    let derived = content.derived.sorted { $0.key < $1.key }.map { name, child in
      [
        Cell("kind", "derived"), Cell("name", .string(name)),
        Cell("digest", .string(child.digest.hex)),
      ]
    }
    try globals.report("blob-refs/1", ["kind", "name", "digest"], holders + derived)
  }
}

struct BlobBytesCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "cat", abstract: "Writes the bytes of a content.")

  @OptionGroup var database: DatabaseArgument

  @Argument(
    help: "The content's SHA-256, the path of an object in storage, or with --field a document's.")
  var content: String

  @Option(help: "The field of the document that refers to the content.")
  var field: String?

  @Option(help: "Only bytes a-b, the last one included; 100- is to the end.")
  var range: String?

  @Option(name: .shortAndLong, help: "Write to this file instead of standard output.")
  var output: String?

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let blob = try await find(in: database)
    let bytes = database.storage.bytes(of: blob, in: try bounds(of: blob))
    guard let output else {
      // A terminal shows them as text.
      var characters = WholeCharacters()
      for try await piece in bytes { try Output.write(characters.next(piece)) }
      return try Output.write(Data(characters.rest))
    }
    let file = try FileHandle.creating(output)
    do {
      for try await piece in bytes { try file.write(contentsOf: Data(piece)) }
      try file.close()
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw CommandFailure(.failed, "cannot write \(output): \(error.localizedDescription)")
    }
  }

  private func find(in database: Database) async throws -> BlobReference {
    if let field {
      let document = try await database.document(content).getDocument()
      guard let blob = document[FieldPath(field)] as BlobReference? else {
        throw CommandFailure(.notFound, "\(content) has no reference to a content in \(field)")
      }
      return blob
    }
    if let digest = BlobDigest(hex: content) {
      let found = try await BlobCommand.content(digest, in: database, holderLimit: 1)
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
    else { throw CommandFailure(.usage, "\(range) is not a range such as 0-99 or 100-") }
    return min(first, blob.length)..<min(last + 1, blob.length)
  }
}

struct BlobPutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "put", abstract: "Stores the bytes of a file, and prints the reference to them.",
    discussion: """
      Without --path nobody holds the content yet: it stays for a day, until a document refers to \
      it. With --for it is sealed under a key that only the printed reference has, so that it goes \
      with the key of that collection.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The file.", completion: .file())
  var file: String

  @Option(help: "Put it at this path of storage, which then holds it.")
  var path: String?

  @Option(
    name: .customLong("for"),
    help: "Encrypt it for documents of this collection, which has a key of its own.")
  var collection: String?

  @Option(help: "Its type, such as image/jpeg; by default recognised from its bytes.")
  var contentType: String?

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    guard let bytes = FileManager.default.contents(atPath: file) else {
      throw CommandFailure(.failed, "cannot read \(file)")
    }
    try await database.withDatabase(writing: true) { database in
      let blob = try await put(bytes, in: database.storage)
      try globals.report(
        "blob-put/1", [("digest", .string(blob.digest.hex)), ("blob", .blob(blob))])
    }
  }

  func validate() throws {
    if path != nil, collection != nil {
      throw ValidationError("a storage path belongs to no collection: give either --path or --for")
    }
  }

  private func put(_ bytes: Data, in storage: Storage) async throws -> BlobReference {
    if let collection {
      return try await storage.put(
        bytes, for: storage.database.collection(collection), contentType: contentType)
    }
    guard let path else { return try await storage.put(bytes, contentType: contentType) }
    let metadata = StorageMetadata(contentType: contentType)
    let stored = try await storage.reference(withPath: path).putData(bytes, metadata: metadata)
    guard let blob = stored.blob else {
      throw CommandFailure(.failed, "\(path) has no content")
    }
    return blob
  }
}

struct BlobVerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Compares the bytes of contents with their digests.")

  @OptionGroup var database: DatabaseArgument

  @Option(help: "Only this percentage of them, chosen at random.")
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
    try CheckCommand.report(findings, globals, damaged: "contents are damaged")
  }
}

struct BlobCollectCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "gc", abstract: "Removes contents without a holder.")

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Only list contents without a holder.")
  var dryRun = false

  @OptionGroup var globals: GlobalOptions

  var isWriting: Bool { !dryRun }

  func run(in database: Database) async throws {
    let (contents, bytes) = try await given(by: database.storage)
    try globals.report(
      "blob-gc/1",
      [("contents", .number(contents)), ("bytes", .number(bytes)), ("isDryRun", .boolean(dryRun))])
  }

  private func given(by storage: Storage) async throws -> (contents: Int, bytes: Int) {
    guard dryRun else { return try await storage.reclaim() }
    let statistics = try await storage.statistics()
    return (statistics.unheldContents, statistics.unheldBytes)
  }
}

struct BlobStatisticsCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats", abstract: "Prints how many contents there are, and how many bytes.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let statistics = try await database.storage.statistics()
    let numbers = [
      ("contents", statistics.contents), ("bytes", statistics.bytes),
      ("storedBytes", statistics.storedBytes), ("paths", statistics.paths),
      ("documents", statistics.documents), ("derived", statistics.derived),
      ("heldBytes", statistics.heldBytes), ("unheldContents", statistics.unheldContents),
      ("unheldBytes", statistics.unheldBytes),
    ]
    try globals.report("blob-stats/1", numbers.map { ($0.0, .number($0.1)) })
  }
}
