// Documents of an earlier schema. An app that changes the form of its documents declares that with
// a number and a function that turns a document of an earlier number into the current form. From
// then on, a read upgrades a document of an earlier schema for its caller, and a write upgrades it
// permanently (PendingUpgrade). In the background, ordinary commits rewrite all of them
// (SchemaRewrite).
//
// A document does not store its schema. The catalog stores from which commit on documents have
// which schema, and a document knows the commit that wrote it. So an interrupted upgrade resumes
// simply by looking for documents that are still older.

internal import OndolEngine

/// Which documents of a pattern have which schema.
struct SchemaHistory: Sendable, Hashable {
  /// The documents written by commits after `since`, up to the next epoch.
  struct Epoch: Sendable, Hashable {
    var version: Int
    /// Zero until the commit that begins the epoch is known.
    var since: UInt64
  }

  /// The schema of documents before all epochs.
  var base = 0
  /// Empty once all documents have the same schema.
  var epochs: [Epoch] = []

  var current: Int { epochs.last?.version ?? base }

  /// Whether the first commit of each epoch is known.
  var isResolved: Bool { epochs.allSatisfy { $0.since != 0 } }

  /// The schema of a document that commit `version` wrote.
  func schema(of version: Version) -> Int {
    epochs.last { version.rawValue > $0.since }?.version ?? base
  }
}

/// How far the rewriting of documents of an earlier schema has come.
public struct SchemaProgress: Sendable, Hashable {
  /// Documents checked so far.
  public var documents = 0
  /// Documents rewritten.
  public var rewritten = 0
  /// Documents that could not be rewritten, because the upgrade throws or its result cannot be
  /// stored. They stay unchanged.
  public var failures = 0
  /// Whether all documents have been checked.
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
