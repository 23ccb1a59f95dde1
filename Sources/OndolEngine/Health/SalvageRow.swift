// What salvage extracts from damaged files: complete rows, and records of what is lost.

/// A salvaged row.
package struct SalvagedRow: Sendable {
  package var key: [UInt8]
  package var value: [UInt8]

  package init(key: [UInt8], value: [UInt8]) {
    self.key = key
    self.value = value
  }
}

/// Something that could not be read, and the keys that may be missing because of it.
package struct SalvageLoss: Sendable, Hashable {
  package var file: String?
  package var offset: UInt64?
  package var reason: String
  /// The missing rows are after this key, if known.
  package var after: [UInt8]?
  /// And before this key.
  package var before: [UInt8]?
  /// Where rows may be missing because of it.
  var reach: Reach

  /// The rows that a loss may include, as far as the files tell.
  enum Reach: Sendable, Hashable {
    /// None that were visible: the list of files, or data that was never acknowledged.
    case nothing
    case shard(Int)
    case everything
  }

  init(
    file: String? = nil, offset: UInt64? = nil, _ reason: String, after: [UInt8]? = nil,
    before: [UInt8]? = nil, reach: Reach
  ) {
    self.file = file
    self.offset = offset
    self.reason = reason
    self.after = after
    self.before = before
    self.reach = reach
  }

  /// The rows of a segment of a keyed group whose key is missing.
  init(withoutKeyOf segment: SegmentMetadata) {
    self.init(
      file: segment.number.segmentName,
      "its collection's key is not here: see the file \(GroupKeysFile.name)", reach: .everything)
    guard let group = segment.group else { return }
    var (lower, upper): ([UInt8], [UInt8]) = ([], [])
    lower.appendBigEndian(group << 12)
    upper.appendBigEndian(group << 12 | 0xFFF)
    (after, before) = (lower, upper + [0xFF])
  }

  /// The loss from an error in reading `file`.
  init(_ error: EngineError, in file: String, reach: Reach) {
    let finding = StorageFinding(error, .segment, in: file)
    self.init(file: finding.file, offset: finding.offset, finding.message, reach: reach)
  }

  /// Whether rows may be missing whose keys begin with `prefix` and that belong to `shard`, if that
  /// is known.
  func mayConcern(_ prefix: [UInt8], inShard shard: Int?) -> Bool {
    switch reach {
    case .nothing: return false
    case .shard(let other): guard other == shard ?? other else { return false }
    case .everything: break
    }
    if let after, !after.starts(with: prefix), prefix.lexicographicallyPrecedes(after) {
      return false
    }
    return !(before?.lexicographicallyPrecedes(prefix) ?? false)
  }
}

/// Collects losses; the first ones in full.
final class SalvageLosses {
  /// More than these provide no new information.
  private static let limit = 1000

  private(set) var losses: [SalvageLoss] = []
  private(set) var count = 0

  func note(_ loss: SalvageLoss) {
    count += 1
    if losses.count < Self.limit { losses.append(loss) }
  }

  /// Whether rows may be missing whose keys begin with `prefix` and that belong to `shard`, if that
  /// is known.
  func mayConcern(_ prefix: [UInt8], inShard shard: Int?) -> Bool {
    count > losses.count || losses.contains { $0.mayConcern(prefix, inShard: shard) }
  }
}

/// One of several rows with the same key.
struct SalvageCandidate {
  var kind: RowKind
  /// The value, or the pointer to it.
  var bytes: [UInt8]
  /// The row belongs to this commit or a later one.
  var earliest: SequenceNumber
}

/// Rows in key order, as far as they can be read.
protocol SalvageSource: AnyObject {
  /// The key of the current row; nil at the end.
  var key: [UInt8]? { get }
  /// The current row.
  var candidate: SalvageCandidate { get }
  func next()
}
