// Contents, the bytes of blobs, in parts of which each is read and written at once. They come
// before the commit that speaks of them, and so there may be some of which none ever does.

package import OndolEngine

/// A store that keeps contents beside rows.
///
/// Calls throw `.unreachable` when there is no answer, and may be made again.
package protocol RemoteContents: Sendable {
  /// Bytes of each part of a content but the last.
  static var partLength: Int { get }

  /// Puts a part of a content, or notes that somebody still wants it when it is there. It survives
  /// a power cut with the next commit that does.
  func putContent(
    _ digest: [UInt8], part: Int, _ bytes: [UInt8]
  ) async throws(EngineError)

  /// A part of a content; nil when it is not there. Blocks.
  func content(_ digest: [UInt8], part: Int) throws(EngineError) -> [UInt8]?

  /// Removes a content, unless somebody has put some of it within so many microseconds.
  func removeContent(
    _ digest: [UInt8], untouchedFor microseconds: Int64
  ) async throws(EngineError)

  /// The digests behind one, in order, of contents of which nobody has put anything for so many
  /// microseconds: of those whether a commit speaks of them may be asked.
  func contents(
    after digest: [UInt8], untouchedFor microseconds: Int64, atMost count: Int
  ) async throws(EngineError) -> [[UInt8]]
}

extension PostgresStore: RemoteContents {
  package static var partLength: Int { 256 << 10 }

  /// A digest is a key of an index.
  private static let longestDigest = 255

  private func start(_ digest: [UInt8]) throws(EngineError) -> ParameterList {
    guard digest.count <= Self.longestDigest else {
      throw .invalid(reason: "a digest of \(digest.count) bytes")
    }
    var parameters = ParameterList()
    parameters.add(try opened())
    parameters.add(digest)
    return parameters
  }

  package func putContent(
    _ digest: [UInt8], part: Int, _ bytes: [UInt8]
  ) async throws(EngineError) {
    guard let part = Int32(exactly: part), part >= 0, bytes.count <= Self.partLength else {
      throw .invalid(reason: "part \(part) of a content, of \(bytes.count) bytes")
    }
    var parameters = try start(digest)
    parameters.add(part)
    parameters.add(bytes)
    try await upkeep { [parameters] connection throws(PostgresFailure) in
      _ = try connection.run(.putContent, parameters)
    }
  }

  package func content(_ digest: [UInt8], part: Int) throws(EngineError) -> [UInt8]? {
    guard let part = Int32(exactly: part) else { return nil }
    var parameters = try start(digest)
    parameters.add(part)
    return try readers.withOne { link throws(EngineError) in
      try link.use(.many) { connection throws(PostgresFailure) in
        let answer = try connection.run(.content, parameters)
        try answer.expect(columns: 1)
        return answer.rowCount == 0 ? nil : try answer.bytes(0, 0)
      }
    }
  }

  package func removeContent(
    _ digest: [UInt8], untouchedFor microseconds: Int64
  ) async throws(EngineError) {
    var parameters = try start(digest)
    parameters.add(microseconds)
    try await upkeep { [parameters] connection throws(PostgresFailure) in
      _ = try connection.run(.removeContent, parameters)
    }
  }

  package func contents(
    after digest: [UInt8], untouchedFor microseconds: Int64, atMost count: Int
  ) async throws(EngineError) -> [[UInt8]] {
    var parameters = try start(digest)
    parameters.add(microseconds)
    parameters.add(Int32(clamping: max(0, count)))
    return try await upkeep { [parameters] connection throws(PostgresFailure) in
      let answer = try connection.run(.contents, parameters)
      try answer.expect(columns: 1)
      var digests: [[UInt8]] = []
      for row in 0..<answer.rowCount { digests.append(try answer.bytes(row, 0)) }
      return digests
    }
  }
}
