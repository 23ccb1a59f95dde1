// The contents of a simulated store, in parts, with the newest commit when each was put: a loss of
// commits also loses the later parts.

package import OndolEngine

/// Parts of contents in memory.
struct SimulatedContents: Sendable {
  private struct Part {
    var bytes: [UInt8]
    var behind: SequenceNumber
  }

  private var contents: [[UInt8]: [Int: Part]] = [:]

  var partCount: Int { contents.values.reduce(0) { $0 + $1.count } }

  mutating func put(_ id: [UInt8], _ part: Int, _ bytes: [UInt8], behind head: SequenceNumber) {
    guard contents[id]?[part] == nil else { return }
    contents[id, default: [:]][part] = Part(bytes: bytes, behind: head)
  }

  func count(_ id: [UInt8]) -> Int { contents[id]?.count ?? 0 }

  func bytes(_ id: [UInt8], in range: Range<Int>) -> [UInt8] {
    guard range.lowerBound >= 0, !range.isEmpty else { return [] }
    var bytes: [UInt8] = []
    let last = (range.upperBound - 1) / ContentPart.length
    for number in range.lowerBound / ContentPart.length...last {
      guard let part = contents[id]?[number]?.bytes else { break }
      let start = number * ContentPart.length
      let wanted = range.clamped(to: start..<(start + part.count))
      bytes += part[(wanted.lowerBound - start)..<(wanted.upperBound - start)]
    }
    return bytes
  }

  mutating func remove(_ id: [UInt8]) { contents[id] = nil }

  /// Loses the parts that were put after a later commit than this, or after this one as well.
  mutating func lose(behind head: SequenceNumber, orAtIt isAtIt: Bool) {
    for (id, parts) in contents {
      let kept = parts.filter { isAtIt ? $0.value.behind < head : $0.value.behind <= head }
      contents[id] = kept.isEmpty ? nil : kept
    }
  }

  /// Changes a byte of a part.
  mutating func damage(part: Int) {
    for id in contents.keys { contents[id]?[part]?.bytes[0] ^= 1 }
  }
}

extension SimulatedStore {
  /// The number of kept parts.
  package var partCount: Int { state.withLock { $0.contents.partCount } }

  /// Changes a byte of this part of every content.
  package func damage(part: Int) { state.withLock { $0.contents.damage(part: part) } }

  /// Loses all parts, as if someone deleted from a server's tables by hand.
  package func loseContents() { state.withLock { $0.contents = SimulatedContents() } }

  package func putContent(
    _ id: [UInt8], part: Int, _ bytes: [UInt8], whileThereIs row: [UInt8]
  ) async throws(EngineError) -> Bool {
    try await travel()
    let isThere = state.withLock { state in
      guard state.versions[row]?.last?.value != nil else { return false }
      state.contents.put(id, part, bytes, behind: state.head.sequence)
      return true
    }
    try loseAnswer()
    return isThere
  }

  package func countContent(_ id: [UInt8]) async throws(EngineError) -> Int {
    try await travel()
    return state.withLock { $0.contents.count(id) }
  }

  package func content(_ id: [UInt8], in range: Range<Int>) throws(EngineError) -> [UInt8] {
    state.withLock { $0.contents.bytes(id, in: range) }
  }

  package func removeContent(_ id: [UInt8]) async throws(EngineError) {
    try await travel()
    state.withLock { $0.contents.remove(id) }
    try loseAnswer()
  }

  package func clock() async throws(EngineError) -> Int64 {
    try await travel()
    return environment.now()
  }
}
