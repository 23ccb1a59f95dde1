// The prefixes of keys. Every row's key begins with the number of its keyspace, four bytes, high
// byte first. Keyspace 0 is the catalog. All others belong to a family: a root collection with
// everything below it. The family's number is the upper twenty bits, so that the engine keeps a
// family in one shard and a write to a document and its indexes never crosses shards. Numbers of
// the upper half are those of root collections with a key of their own, see CollectionKeys.
//
//   document:  keyspace of its pattern ++ ids of its ancestors ++ its id
//   index:     keyspace of the index   ++ ids of its ancestors ++ components ++ its id
//
// A pattern is a collection's path without the documents' ids: `workInfo/workHistory`. Ids are text
// components that are never cut, so rows are in the order of their ids' UTF-8 and no row's key is a
// prefix of another's.

internal import OndolEngine

/// The number of a keyspace. Numbers are never reused.
struct Keyspace: Sendable, Hashable, Comparable {
  let rawValue: UInt32

  static let catalog = Keyspace(rawValue: 0)
  /// Keyspaces in a family.
  static let familyCapacity: UInt32 = 1 << 12
  /// Above all numbers of families; the first is 1.
  static let familyLimit: UInt32 = KeyedGroups.numbers.upperBound
  /// Above the numbers of families whose rows are sealed with the database's key.
  static let commonFamilyLimit: UInt32 = KeyedGroups.numbers.lowerBound

  init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  init(family: UInt32, member: UInt32) {
    rawValue = family * Self.familyCapacity + member
  }

  /// The number of the family it is in.
  var family: UInt32 { rawValue / Self.familyCapacity }

  /// The group whose key its rows are sealed with; nil for the database's own.
  var keyedGroup: UInt32? { rawValue >= Self.firstKeyed ? family : nil }

  private static let firstKeyed = commonFamilyLimit * familyCapacity

  /// The keyspace that a row's key begins with; nil when the key is too short.
  init?(of key: some Collection<UInt8>) {
    let prefix = key.prefix(Self.prefixLength)
    guard prefix.count == Self.prefixLength else { return nil }
    rawValue = prefix.reduce(0) { $0 << 8 | UInt32($1) }
  }

  static func < (left: Keyspace, right: Keyspace) -> Bool { left.rawValue < right.rawValue }

  /// The prefix of every key in this keyspace.
  var prefix: [UInt8] {
    [
      UInt8(truncatingIfNeeded: rawValue >> 24), UInt8(truncatingIfNeeded: rawValue >> 16),
      UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue),
    ]
  }
}

/// A collection's path without the ids of documents. Compared by UTF-8.
struct CollectionPattern: Sendable, Hashable {
  let collectionIDs: [String]

  init(_ collectionIDs: [String]) {
    self.collectionIDs = collectionIDs
  }

  init(_ path: CollectionPath) {
    collectionIDs = stride(from: 0, to: path.segments.count, by: 2).map { path.segments[$0] }
  }

  /// The pattern of the collection that the document is in.
  init(collectionOf path: DocumentPath) {
    collectionIDs = stride(from: 0, to: path.segments.count, by: 2).map { path.segments[$0] }
  }

  /// The root collection's name, which is the family's.
  var root: String { collectionIDs.first ?? "" }
  /// The last collection's id, which is that of the group it is in.
  var collectionID: ExactText { ExactText(collectionIDs.last ?? "") }
  /// Documents around a document of this pattern.
  var ancestorCount: Int { collectionIDs.count - 1 }

  static func == (left: CollectionPattern, right: CollectionPattern) -> Bool {
    ValueOrder.compareSegments(left.collectionIDs, right.collectionIDs) == 0
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(segments: collectionIDs)
  }
}

extension CollectionPattern: CustomStringConvertible {
  var description: String { collectionIDs.joined(separator: "/") }
}

extension CollectionPath {
  /// The ids of the documents around this collection, outermost first.
  var ancestorIDs: [String] {
    stride(from: 1, to: segments.count, by: 2).map { segments[$0] }
  }
}

/// The keys of documents.
enum DocumentKey {
  /// The prefix of the keys of all documents in one collection.
  static func prefix(_ keyspace: Keyspace, ancestors: [String]) -> [UInt8] {
    var writer = KeyWriter(keyspace.prefix)
    for id in ancestors {
      writer.append(id: id)
    }
    return writer.bytes
  }

  static func key(_ keyspace: Keyspace, ancestors: [String], id: String) -> [UInt8] {
    key(prefix: prefix(keyspace, ancestors: ancestors), id: id)
  }

  static func key(_ keyspace: Keyspace, _ path: DocumentPath) -> [UInt8] {
    var writer = KeyWriter(keyspace)
    for place in stride(from: 1, to: path.segments.count, by: 2) {
      writer.append(id: path.segments[place])
    }
    return writer.bytes
  }

  static func key(prefix: [UInt8], id: String) -> [UInt8] {
    var writer = KeyWriter(prefix)
    writer.append(id: id)
    return writer.bytes
  }

  /// The ids in a document's key: those of its ancestors and, last, its own.
  static func ids(in key: RawSpan, ancestorCount: Int) throws(DatabaseError) -> [String] {
    do throws(MalformedBytes) {
      var reader = KeyReader(key)
      try reader.skip(raw: 4)
      var ids: [String] = []
      for _ in 0...ancestorCount {
        ids.append(try reader.id())
      }
      return ids
    } catch {
      throw DatabaseError(.dataLoss, "a document's key is damaged: \(error.reason)")
    }
  }
}
