// The contents of a dump, part by part: the values that DumpReader reads and Restoration takes.
// They identify everything by names and never by a database's numbers.

internal import OndolEngine

/// An index by its name and by the bytes that define it (Docs/FileFormat.md, "Catalog").
package struct DumpedIndex: Sendable, Equatable {
  package var name: String
  package var definition: [UInt8]

  package init(name: String, definition: [UInt8]) {
    self.name = name
    self.definition = definition
  }

  init(_ kind: IndexKind) {
    name = kind.name
    definition = []
    definition.append(kind)
  }
}

/// The declarations for the collections of one pattern.
package struct DumpedCollection: Sendable {
  /// Collection ids without the documents' ids between them.
  package var pattern: [String]
  package var indexes: [DumpedIndex] = []
  package var timeToLive: [String]?
  /// Which documents have which schema, in stored form; nil when all have the first.
  package var schema: [UInt8]?
  /// Whether it has a key of its own, shared with the collection at the top.
  package var hasOwnKey = false
  /// Nil in the contents of a dump.
  var entry: CollectionEntry?

  package init(pattern: [String]) {
    self.pattern = pattern
  }

  /// Whether its documents are storage paths.
  package var isStorage: Bool { pattern == [StorageRows.root] }

  /// The pattern of storage paths.
  package static let storage = DumpedCollection(pattern: [StorageRows.root])

  /// Whether it comes before another: storage paths come first, and those with keys of their own
  /// last, each in the order of their ids.
  func comes(before other: DumpedCollection) -> Bool {
    if isStorage != other.isStorage { return isStorage }
    if hasOwnKey != other.hasOwnKey { return other.hasOwnKey }
    return ValueOrder.compareSegments(pattern, other.pattern) < 0
  }

  /// Whether there is anything but documents.
  package var isDeclared: Bool {
    !indexes.isEmpty || timeToLive != nil || schema != nil || hasOwnKey
  }
}

/// A document with everything that is stored for it.
package struct DumpedDocument: Sendable {
  /// The path; for a storage path, that path.
  package var name: String
  package var version: UInt64
  package var updated: Timestamp
  package var created: Timestamp
  package var fields: [String: Value]
  /// The contents that it refers to.
  package var contents: Set<BlobDigest> = []
  /// These bytes order the documents of a pattern, in every database.
  package var order: [UInt8] = []

  package init(
    name: String, version: UInt64, updated: Timestamp, created: Timestamp, fields: [String: Value]
  ) {
    self.name = name
    self.version = version
    self.updated = updated
    self.created = created
    self.fields = fields
  }
}

/// A node of the tree with a row.
package struct DumpedNode: Sendable, Equatable {
  package var path: [String]
  /// A boolean, a number or a text; nil for a node with children.
  package var value: Value?
  /// A time in microseconds instead of a value.
  package var time: Int64?
  package var priority: Value?
  package var arrayLength: Int?

  package init(path: [String]) {
    self.path = path
  }
}

/// An index of the children of a node of the tree.
package struct DumpedTreeIndex: Sendable, Equatable {
  package var path: [String]
  package var child: [String]

  package init(path: [String], child: [String]) {
    self.path = path
    self.child = child
  }
}

/// A content that was made from another.
package struct DumpedDerivation: Sendable {
  package var parent: BlobDigest
  package var name: String
  package var child: BlobReference

  package init(parent: BlobDigest, name: String, child: BlobReference) {
    self.parent = parent
    self.name = name
    self.child = child
  }
}
