// What a dump says of a database, part by part: the values that DumpReader reads and Restoration
// takes. They name everything by names and never by numbers of this or that database.

internal import OndolEngine

/// An index by its name and as the bytes that define it (Docs/FileFormat.md, "Catalog").
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

/// What is declared for the collections of one pattern.
package struct DumpedCollection: Sendable {
  /// Collection ids without the documents' ids between them.
  package var pattern: [String]
  package var indexes: [DumpedIndex] = []
  package var timeToLive: [String]?
  /// Which documents have which schema, as stored; nil when all have the first.
  package var schema: [UInt8]?
  /// Whether it has a key of its own, with the collection at the top.
  package var hasOwnKey = false
  /// Nil in what a dump says.
  var entry: CollectionEntry?

  package init(pattern: [String]) {
    self.pattern = pattern
  }

  /// Whether its documents are storage paths.
  package var isStorage: Bool { pattern == [StorageRows.root] }

  /// The pattern of storage paths.
  package static let storage = DumpedCollection(pattern: [StorageRows.root])

  /// Whether it stands before another: storage paths come first, and last those with keys of their
  /// own, each of these in the order of their ids.
  func comes(before other: DumpedCollection) -> Bool {
    if isStorage != other.isStorage { return isStorage }
    if hasOwnKey != other.hasOwnKey { return other.hasOwnKey }
    return ValueOrder.compareSegments(pattern, other.pattern) < 0
  }

  /// Whether anything but documents is to be said.
  package var isDeclared: Bool {
    !indexes.isEmpty || timeToLive != nil || schema != nil || hasOwnKey
  }
}

/// A document with everything that is stored of it.
package struct DumpedDocument: Sendable {
  /// The path; of a storage path that.
  package var name: String
  package var version: UInt64
  package var updated: Timestamp
  package var created: Timestamp
  package var fields: [String: Value]
  /// The contents that it refers to.
  package var contents: Set<BlobDigest> = []
  /// Documents of a pattern are in the order of these bytes, in every database.
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

/// A node of the tree of which something is to be said.
package struct DumpedNode: Sendable, Equatable {
  package var path: [String]
  /// A boolean, a number or a text; nil for a node with children.
  package var value: Value?
  /// A moment in microseconds in the place of a value.
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
