// What comes out of damaged files: rows that are whole, and notes of what is not.

/// A row that was saved.
package struct SalvagedRow: Sendable {
  package var key: [UInt8]
  package var value: [UInt8]

  package init(key: [UInt8], value: [UInt8]) {
    self.key = key
    self.value = value
  }
}

/// Something that could not be read, and the keys that may be missing for it.
package struct SalvageLoss: Sendable, Hashable {
  package var file: String?
  package var offset: UInt64?
  package var reason: String
  /// What is missing lies behind this key, when known.
  package var after: [UInt8]?
  /// And before this one.
  package var before: [UInt8]?
  /// Where rows may be missing for it.
  var reach: Reach

  /// What rows a loss can have taken, as far as files tell.
  enum Reach: Sendable, Hashable {
    /// None that others know of: the list of files, or what was never acknowledged.
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

  /// The rows of a segment of a keyed group whose key is not here.
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

  /// What reading `file` came to.
  init(_ error: EngineError, in file: String, reach: Reach) {
    let finding = StorageFinding(error, .segment, in: file)
    self.init(file: finding.file, offset: finding.offset, finding.message, reach: reach)
  }

  /// Whether rows with keys that begin with `prefix`, which are in `shard` if that is known, may be
  /// missing.
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

/// Gathers losses, the first of them in full.
final class SalvageLosses {
  /// More than these say nothing new.
  private static let limit = 1000

  private(set) var losses: [SalvageLoss] = []
  private(set) var count = 0

  func note(_ loss: SalvageLoss) {
    count += 1
    if losses.count < Self.limit { losses.append(loss) }
  }

  /// Whether rows with keys that begin with `prefix`, which are in `shard` if that is known, may be
  /// missing.
  func mayConcern(_ prefix: [UInt8], inShard shard: Int?) -> Bool {
    count > losses.count || losses.contains { $0.mayConcern(prefix, inShard: shard) }
  }
}

/// One of several rows with the same key.
struct SalvageCandidate {
  var kind: RowKind
  /// The value, or the pointer to it.
  var bytes: [UInt8]
  /// The row is of this commit or a later one.
  var earliest: SequenceNumber
}

/// Rows in the order of their keys, as far as they can be read.
protocol SalvageSource: AnyObject {
  /// The key of the current row; nil at the end.
  var key: [UInt8]? { get }
  /// The current row.
  var candidate: SalvageCandidate { get }
  func next()
}
