// Stored objects and their contents. Bytes never have a type of their own on the way to a browser:
// the page decides what they are.

import Foundation
import Ondol
import OndolEngine
import OndolJSON

extension ConsoleHandler {
  func storage(_ prefix: String, limit: Int, page: String?) async throws -> JSON {
    let folder = database.storage.reference(withPath: prefix)
    let listing = try await folder.list(maxResults: limit, pageToken: page)
    var objects: [JSON] = []
    for item in listing.items {
      if let metadata = try await metadata(of: item) { objects.append(.object(metadata)) }
    }
    return [
      "prefix": .text(prefix), "folders": .texts(listing.prefixes.map { $0.fullPath + "/" }),
      "objects": .list(objects), "next": listing.nextPageToken.map { .text($0) },
    ]
  }

  /// Nil for an object that was deleted in the meantime.
  private func metadata(of item: StorageReference) async throws -> StorageMetadata? {
    do throws(DatabaseError) {
      return try await item.getMetadata()
    } catch {
      if error.code == .notFound { return nil }
      throw error
    }
  }

  func object(_ items: QueryItems) async throws -> JSON {
    let reference = database.storage.reference(withPath: try items.text("path"))
    return ["object": .object(try await reference.getMetadata())]
  }

  func putObject(_ items: QueryItems, _ generation: UInt64, _ body: ConsoleBody) async throws
    -> JSON
  {
    let reference = database.storage.reference(withPath: try items.text("path"))
    let metadata = StorageMetadata(contentType: items["type"])
    let length = Guarded(0)
    let pieces = ConsoleBody.checked(body) { piece in
      let total = length.withLock { length in
        length += piece.count
        return length
      }
      guard total <= Self.longestObject else {
        throw ConsoleFailure(413, "resourceExhausted", "an object has 512 MiB at most here")
      }
    }
    return try await write(reference) {
      try await reference.put(
        pieces, metadata: metadata, ifGeneration: Int64(clamping: generation))
    }
  }

  func patchObject(_ items: QueryItems, _ generation: UInt64, _ body: [UInt8]) async throws -> JSON
  {
    let members = try Members(
      body,
      known: [
        "contentType", "cacheControl", "contentDisposition", "contentEncoding", "contentLanguage",
        "custom",
      ])
    let reference = database.storage.reference(withPath: try items.text("path"))
    var metadata = StorageMetadata()
    if members.value("contentType") != nil {
      metadata.contentType = try members.text("contentType")
    }
    if members.value("cacheControl") != nil {
      metadata.cacheControl = try members.text("cacheControl")
    }
    if members.value("contentDisposition") != nil {
      metadata.contentDisposition = try members.text("contentDisposition")
    }
    if members.value("contentEncoding") != nil {
      metadata.contentEncoding = try members.text("contentEncoding")
    }
    if members.value("contentLanguage") != nil {
      metadata.contentLanguage = try members.text("contentLanguage")
    }
    if let custom = try members.fields("custom") {
      metadata.customMetadata = try custom.mapValues { value in
        guard let text = value.string else { throw ConsoleFailure.wrong("\"custom\" has texts") }
        return text
      }
    }
    let wanted = metadata
    return try await write(reference) {
      try await reference.updateMetadata(wanted, ifGeneration: Int64(clamping: generation))
    }
  }

  func deleteObject(_ items: QueryItems, _ generation: UInt64) async throws -> JSON {
    let reference = database.storage.reference(withPath: try items.text("path"))
    _ = try await write(reference) {
      try await reference.delete(ifGeneration: Int64(clamping: generation))
      return nil
    }
    return [:]
  }

  /// Writes under a precondition. If it fails, the error has the stored object.
  private func write(
    _ reference: StorageReference, _ body: () async throws -> StorageMetadata?
  ) async throws -> JSON {
    do {
      let metadata = try await body()
      log("wrote object \(reference.fullPath)")
      return ["object": metadata.map { .object($0) }]
    } catch let error as DatabaseError where error.code == .aborted || error.code == .notFound {
      var failure = ConsoleFailure(error)
      failure.status = 409
      failure.code = "aborted"
      failure.current = .null
      if let metadata = try? await reference.getMetadata() { failure.current = .object(metadata) }
      throw failure
    }
  }

  // MARK: - Contents

  func content(_ hex: String, _ range: String?) async throws -> ConsoleResponse {
    guard let digest = BlobDigest(hex: hex),
      let content = try await database.listedContent(digest, holderLimit: 0)
    else { throw ConsoleFailure(404, "notFound", "there is no such content") }
    var bounds = 0..<content.length
    var headers = Self.headers("application/octet-stream")
    headers.removeAll { $0.name == "Content-Security-Policy" }
    headers += [
      ("Content-Disposition", "attachment"), ("Content-Security-Policy", "sandbox"),
      ("Accept-Ranges", "bytes"),
    ]
    if let range {
      guard let asked = Self.bounds(range, of: content.length) else {
        throw ConsoleFailure(400, "outOfRange", "the range is outside this content")
      }
      bounds = asked
      headers.append(
        (
          "Content-Range",
          "bytes \(asked.lowerBound)-\(asked.upperBound - 1)/\(content.length)"
        ))
    }
    let blob = try BlobReference(digest: digest, length: content.length)
    headers.append(("Content-Length", "\(bounds.count)"))
    guard !bounds.isEmpty else { return ConsoleResponse(200, headers, ConsoleBody([])) }
    let pieces = Pieces(database.storage.bytes(of: blob, in: bounds).makeAsyncIterator())
    return ConsoleResponse(
      range == nil ? 200 : 206, headers, ConsoleBody { try await pieces.next() })
  }

  /// One range of bytes, `bytes=0-99`, `bytes=100-` or `bytes=-100`.
  static func bounds(_ text: String, of length: Int) -> Range<Int>? {
    guard text.hasPrefix("bytes="), length > 0 else { return nil }
    let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    func number(_ text: Substring) -> Int? {
      text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
    }
    if parts[0].isEmpty {
      guard let count = number(parts[1]), count > 0 else { return nil }
      return max(0, length - count)..<length
    }
    guard let first = number(parts[0]), first < length else { return nil }
    if parts[1].isEmpty { return first..<length }
    guard let last = number(parts[1]), last >= first else { return nil }
    return first..<(min(last, length - 1) + 1)
  }

  func holders(_ hex: String) async throws -> JSON {
    guard let digest = BlobDigest(hex: hex),
      let content = try await database.listedContent(digest, holderLimit: 1_000)
    else { return ["holders": .list([])] }
    return [
      "holders": .list(
        content.holders.map { name in
          if name.hasPrefix("/") {
            return ["kind": "path", "path": .text(String(name.dropFirst()))]
          }
          return [
            "kind": name.hasPrefix("'") ? "derived" : "document", "path": .text(name),
          ]
        })
    ]
  }

  func accounting() async throws -> JSON {
    let statistics = try await database.storage.statistics()
    var unheld: [JSON] = []
    var last: BlobDigest?
    // Contents without a holder are rare, and only a search finds them.
    for _ in 0..<100 where unheld.count < 100 {
      let page = try await database.listContents(after: last, limit: 500, holderLimit: 1)
      for content in page where content.holders.isEmpty && unheld.count < 100 {
        unheld.append([
          "sha256": .text(content.digest.hex), "size": .number(content.length),
          "leased": .boolean(content.isLeased),
        ])
      }
      last = page.last?.digest
      if page.count < 500 { break }
    }
    let files = DatabaseFiles.all(in: database.directory)
      .filter { $0.kind == "contents" }.prefix(100)
    return [
      "contents": .number(statistics.contents), "bytes": .number(statistics.bytes),
      "storedBytes": .number(statistics.storedBytes), "paths": .number(statistics.paths),
      "documents": .number(statistics.documents), "derived": .number(statistics.derived),
      "heldBytes": .number(statistics.heldBytes),
      "unheldContents": .number(statistics.unheldContents),
      "unheldBytes": .number(statistics.unheldBytes),
      "reclaimedContents": .number(statistics.reclaimedContents),
      "reclaimedBytes": .number(statistics.reclaimedBytes), "unheld": .list(unheld),
      "files": .list(files.map { ["name": .text($0.name), "bytes": .number($0.bytes)] }),
    ]
  }

  // MARK: - Backup

  func backup() -> ConsoleResponse {
    let (database, pipe) = (database, Pipe())
    let work = Task {
      do {
        try await database.backup { piece in try await pipe.send(piece) }
        await pipe.finish(nil)
      } catch {
        await pipe.finish(error)
      }
    }
    let headers =
      Self.headers("application/octet-stream") + [("Content-Disposition", "attachment")]
    let ending = Ending { work.cancel() }
    return ConsoleResponse(
      200, headers,
      ConsoleBody {
        defer { _ = ending }
        return try await pipe.next()
      })
  }
}

extension ConsoleBody {
  /// The same body, with a check of each piece.
  static func checked(
    _ body: ConsoleBody, _ check: @escaping @Sendable ([UInt8]) throws -> Void
  ) -> ConsoleBody {
    let pieces = Pieces(body.makeAsyncIterator())
    return ConsoleBody {
      let piece = try await pieces.next()
      if let piece { try check(piece) }
      return piece
    }
  }
}

/// Runs an action when nothing refers to it any more.
final class Ending: Sendable {
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  deinit { body() }
}

/// An iterator that tasks can share. One reads at a time.
actor Pieces<Source: AsyncIteratorProtocol> where Source.Element == [UInt8] {
  private var source: Source

  init(_ source: sending Source) { self.source = source }

  func next() async throws -> [UInt8]? {
    var source = self.source
    defer { self.source = source }
    return try await source.next(isolation: self)
  }
}

/// Hands pieces from one task to another. The sender waits until the receiver takes each piece.
actor Pipe {
  private var piece: [UInt8]?
  private var end: Result<Void, any Error>?
  private var sender: CheckedContinuation<Void, Never>?
  private var receiver: CheckedContinuation<Void, Never>?

  func send(_ bytes: [UInt8]) async throws {
    while piece != nil, !Task.isCancelled {
      await withTaskCancellationHandler {
        await withCheckedContinuation { sender = $0 }
      } onCancel: {
        Task { await self.wake() }
      }
    }
    try Task.checkCancellation()
    piece = bytes
    receiver?.resume()
    receiver = nil
  }

  private func wake() {
    sender?.resume()
    sender = nil
  }

  func finish(_ error: (any Error)?) {
    end = error.map { .failure($0) } ?? .success(())
    receiver?.resume()
    receiver = nil
  }

  func next() async throws -> [UInt8]? {
    while piece == nil {
      if let end {
        try end.get()
        return nil
      }
      await withCheckedContinuation { receiver = $0 }
    }
    defer {
      piece = nil
      wake()
    }
    return piece
  }
}
