// The model: every version of every row, in an ordered list of keys. It is an engine that need not
// be fast or durable. It knows the rows as of any commit, so that a snapshot can be checked long
// after it was taken.

package import OndolEngine

/// A row as a reader sees it.
package struct ModelRow: Sendable, Equatable {
  package var key: [UInt8]
  package var value: [UInt8]
}

/// All commits so far and their changes.
package struct RowHistory: Sendable {
  private struct Version {
    var sequence: UInt64
    /// Nil for a deletion.
    var value: [UInt8]?
  }

  /// Versions of each key, oldest first.
  private var versions: [[UInt8]: [Version]] = [:]
  /// Every key that was ever written, in order.
  package private(set) var keys: [[UInt8]] = []
  /// The times of all commits, by sequence less one; nil if not yet known.
  private var times: [Int64?] = []

  package init() {}

  // MARK: - Commits

  /// Records a commit. Commits of several tasks may come in any order.
  package mutating func record(_ changes: [Change], _ receipt: CommitReceipt) throws(ModelFailure) {
    let sequence = receipt.sequence.rawValue
    let index = Int(sequence) - 1
    while times.count <= index { times.append(nil) }
    guard times[index] == nil else {
      throw ModelFailure("two commits have the sequence \(sequence)")
    }
    times[index] = receipt.time
    for change in changes { record(change, sequence) }
  }

  private mutating func record(_ change: Change, _ sequence: UInt64) {
    if versions[change.key] == nil {
      keys.insert(change.key, at: place(of: change.key))
    }
    var list = versions[change.key] ?? []
    let version = Version(sequence: sequence, value: change.value)
    if let place = list.firstIndex(where: { $0.sequence >= sequence }) {
      if list[place].sequence == sequence {
        list[place] = version
      } else {
        list.insert(version, at: place)
      }
    } else {
      list.append(version)
    }
    versions[change.key] = list
  }

  /// The newest commit known.
  package var newest: UInt64 { UInt64(times.count) }

  /// Throws unless sequences have no gap and times grow with them.
  package func checkOrder() throws(ModelFailure) {
    var last = Int64.min
    for (index, time) in times.enumerated() {
      guard let time else { throw ModelFailure("no commit has the sequence \(index + 1)") }
      guard time > last else {
        throw ModelFailure("commit \(index + 1) is not later than the one before it")
      }
      last = time
    }
  }

  /// Undoes every commit after `sequence`, which a crash lost.
  package mutating func forget(after sequence: UInt64) {
    times.removeLast(max(0, times.count - Int(sequence)))
    for (key, list) in versions where list.contains(where: { $0.sequence > sequence }) {
      versions[key] = list.filter { $0.sequence <= sequence }
    }
  }

  // MARK: - Rows

  /// The value at `key` after commit `sequence`.
  package func value(of key: [UInt8], at sequence: UInt64) -> [UInt8]? {
    versions[key]?.last { $0.sequence <= sequence }?.value
  }

  /// Rows with keys from `lower` on and before `upper` (no bound when empty), after commit
  /// `sequence`, in order.
  package func rows(
    from lower: [UInt8], to upper: [UInt8], at sequence: UInt64
  ) -> [ModelRow] {
    let end = upper.isEmpty ? keys.count : place(of: upper)
    let start = min(place(of: lower), end)
    return keys[start..<end].compactMap { key in
      value(of: key, at: sequence).map { ModelRow(key: key, value: $0) }
    }
  }

  /// Whether a commit after `lower` and before `upper` changed `key`.
  package func hasChange(of key: [UInt8], after lower: UInt64, before upper: UInt64) -> Bool {
    versions[key]?.contains { $0.sequence > lower && $0.sequence < upper } ?? false
  }

  /// Whether a commit after `sequence` changed a key for which `condition` holds.
  package func hasChange(
    after sequence: UInt64, where condition: ([UInt8]) -> Bool
  ) -> Bool {
    versions.contains { key, list in
      list.contains { $0.sequence > sequence } && condition(key)
    }
  }

  /// The place of `key` among the keys, or the place where it would be.
  private func place(of key: [UInt8]) -> Int {
    var low = 0
    var high = keys.count
    while low < high {
      let middle = (low + high) / 2
      if byteOrder(keys[middle], key) < 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// An action of the engine that the model forbids.
package struct ModelFailure: Error, CustomStringConvertible {
  package var description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Negative, zero or positive if `left` is before, like or after `right`.
func byteOrder(_ left: [UInt8], _ right: [UInt8]) -> Int {
  left.bytes.compare(right.bytes)
}

/// A key or a value, short enough for a line.
func shown(_ bytes: [UInt8]?) -> String {
  guard let bytes else { return "nothing" }
  let hex = bytes.prefix(24).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  return bytes.count > 24 ? "\(hex)… (\(bytes.count) bytes)" : "<\(hex)>"
}
