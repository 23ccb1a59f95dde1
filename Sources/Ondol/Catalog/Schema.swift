// Documents of an earlier schema. An app that changes what its documents look like says so, with a
// number and a function that turns a document of an earlier number into today's. From then on a
// document of an earlier schema is upgraded whenever it is met, by a read for the reader, by a
// write for good (PendingUpgrade); and in the background all of them are rewritten, with ordinary
// commits (SchemaRewrite).
//
// A document does not store its schema. The catalog stores from which commit on documents have
// which, and a document knows the commit that wrote it. An upgrade is resumed after a crash simply
// by looking for documents that are still older.

internal import OndolEngine

/// Which documents of a pattern have which schema.
struct SchemaHistory: Sendable, Hashable {
  /// The documents written by commits after `since`, up to the next epoch.
  struct Epoch: Sendable, Hashable {
    var version: Int
    /// Zero until the commit that begins the epoch is known.
    var since: UInt64
  }

  /// What documents before all epochs have.
  var base = 0
  /// Empty once every document has the same.
  var epochs: [Epoch] = []

  var current: Int { epochs.last?.version ?? base }

  /// Whether it is known with which commit each epoch begins.
  var isResolved: Bool { epochs.allSatisfy { $0.since != 0 } }

  /// The schema of a document that commit `version` wrote.
  func schema(of version: Version) -> Int {
    epochs.last { version.rawValue > $0.since }?.version ?? base
  }
}

/// How far the rewriting of documents is that an earlier schema wrote.
public struct SchemaProgress: Sendable, Hashable {
  /// Documents looked at so far.
  public var documents = 0
  /// Those among them that were written anew.
  public var rewritten = 0
  /// Those among them that could not be: the upgrade throws, or what it makes cannot be stored.
  /// They stay as they are.
  public var failures = 0
  /// Whether all documents have been looked at.
  public var isComplete = false
}

// MARK: - As bytes

extension SchemaHistory {
  var bytes: (value: [UInt8], stamps: [(offset: Int, form: StampForm)]) {
    var value: [UInt8] = []
    var stamps: [(offset: Int, form: StampForm)] = []
    value.appendVarint(UInt64(base))
    value.appendVarint(epochs.count)
    for epoch in epochs {
      value.appendVarint(UInt64(epoch.version))
      if epoch.since == 0 { stamps.append((value.count, .sequence)) }
      value.append(bits: epoch.since, width: 8)
    }
    return (value, stamps)
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    base = try reader.count(atMost: .max)
    for _ in 0..<(try reader.count(atMost: 1_000)) {
      let version = try reader.count(atMost: .max)
      epochs.append(Epoch(version: version, since: try reader.littleEndian()))
    }
  }

  /// Fills in the commit that begins the last epoch.
  mutating func resolve(_ sequence: SequenceNumber) {
    for index in epochs.indices where epochs[index].since == 0 {
      epochs[index].since = sequence.rawValue
    }
  }
}
