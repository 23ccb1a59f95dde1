// Contents in parts, which are written before the commit that names them.

package import OndolEngine

extension PostgresStore {
  /// The number of calls after which nothing of a content can be left.
  private static let mostCuts =
    Int(ContentFrame.largestContent) / ContentPart.length / Schema.partsCutAtOnce

  private func start(_ id: [UInt8]) throws(EngineError) -> ParameterList {
    guard id.count == ContentPart.idLength else {
      throw .invalid(reason: "a content's id of \(id.count) bytes")
    }
    var parameters = ParameterList()
    parameters.add(try opened())
    parameters.add(id)
    return parameters
  }

  package func putContent(
    _ id: [UInt8], part: Int, _ bytes: [UInt8], whileThereIs row: [UInt8]
  ) async throws(EngineError) -> Bool {
    guard let part = Int32(exactly: part), part >= 0, bytes.count <= ContentPart.length else {
      throw .invalid(reason: "part \(part) of a content, of \(bytes.count) bytes")
    }
    guard row.count <= Schema.longestHead else {
      throw .invalid(reason: "a row's key of \(row.count) bytes")
    }
    var parameters = try start(id)
    parameters.add(row)
    parameters.add(part)
    parameters.add(bytes)
    return try await word(of: .putContent, parameters, PostgresAnswer.bool)
  }

  package func countContent(_ id: [UInt8]) async throws(EngineError) -> Int {
    Int(clamping: try await word(of: .countContent, try start(id), PostgresAnswer.int64))
  }

  package func content(_ id: [UInt8], in range: Range<Int>) throws(EngineError) -> [UInt8] {
    guard range.lowerBound >= 0, !range.isEmpty else { return [] }
    let first = range.lowerBound / ContentPart.length
    let last = (range.upperBound - 1) / ContentPart.length
    guard let lower = Int32(exactly: first), let upper = Int32(exactly: last) else { return [] }
    var parameters = try start(id)
    parameters.add(lower)
    parameters.add(upper)
    parameters.add(Int64(range.lowerBound))
    parameters.add(Int64(range.upperBound))
    return try readers.withOne { link throws(EngineError) in
      try link.use(.many, isLimited: true) { connection throws(PostgresFailure) in
        let answer = try connection.run(.content, parameters)
        try answer.expect(columns: 2)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        for row in 0..<answer.rowCount {
          // Parts after a missing part cannot be placed.
          guard try answer.int32(row, 0) == lower &+ Int32(clamping: row) else { break }
          bytes += try answer.bytes(row, 1)
          guard bytes.count <= range.count else { throw .malformed("a part that is too long") }
        }
        return bytes
      }
    }
  }

  package func removeContent(_ id: [UInt8]) async throws(EngineError) {
    let parameters = try start(id)
    for _ in 0...Self.mostCuts {
      if try await word(of: .removeContent, parameters, PostgresAnswer.int64) == 0 { return }
    }
    throw .corrupt(file: name, offset: 0, reason: "parts of a content that has none are removed")
  }

  package func clock() async throws(EngineError) -> Int64 {
    _ = try opened()
    return try await word(of: .clock, ParameterList(), PostgresAnswer.int64)
  }
}
