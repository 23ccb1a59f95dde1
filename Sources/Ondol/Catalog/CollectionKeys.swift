// Root collections with a key of their own: which there are, and how other rows refer to their
// documents. A family whose number is in the upper half has such a key, so one comparison
// determines that. The engine seals its rows in files and logs. The rest of the library follows
// these rules:
//
// - Nothing of such a family is read or written without its key. `Catalog.family`, through which
//   all calls go, refuses and names the collection. Code that only lists, drops or checks uses
//   another function.
// - No row of another keyspace has ids or values of the family. Instead of a row's key, such a row
//   has a name for it, or the key is sealed.

internal import OndolEngine

/// The keys of root collections.
struct CollectionKeys: Sendable {
  /// Whether a group's key is available; nil when there is no such group.
  private let hasKey: @Sendable (UInt32) -> Bool?
  private let naming: GroupNaming?
  private let isEncrypted: @Sendable () -> Bool

  /// For a database without such collections.
  static let none = CollectionKeys()

  private init() {
    hasKey = { _ in nil }
    naming = nil
    isEncrypted = { false }
  }

  /// Does not retain the engine, which retains its followers.
  init(of engine: Engine) {
    hasKey = { [weak engine] in engine?.hasKey(ofGroup: $0) }
    naming = engine.groupNaming
    isEncrypted = { [weak engine] in engine?.isEncrypted ?? false }
  }

  /// Whether the family is unreadable because its key is missing. A dropped family whose key has
  /// been erased exists only in files that old snapshots hold.
  func isLocked(family number: UInt32) -> Bool {
    number >= Keyspace.commonFamilyLimit && hasKey(number) == false
  }

  func isLocked(_ family: Family) -> Bool { isLocked(family: family.row.number) }

  /// Throws when the key of a content would be in a row sealed with the database's key, from which
  /// the content must be separate.
  func refuseContentKey(inRow key: [UInt8]) throws(DatabaseError) {
    guard Keyspace(of: key)?.keyedGroup == nil, isEncrypted() else { return }
    throw DatabaseError(
      .failedPrecondition,
      "it refers to a content that was put for a collection with a key of its own, and only"
        + " documents of such a collection can: the content's key stands in them",
      suggestion: "read the content, and put it again with put(_:) for this document")
  }

  /// The name of a row in other rows: its key, or the number of the keyspace and a name for the
  /// key.
  func name(ofRow key: [UInt8]) throws(DatabaseError) -> [UInt8] {
    guard let keyspace = Keyspace(of: key), let group = keyspace.keyedGroup else { return key }
    guard let name = naming?.name(of: key, in: group) else { throw .locked(nil) }
    return keyspace.prefix + name
  }

  /// A row's key as the catalog stores it; nil when the family's key has been erased.
  func sealed(_ key: [UInt8], of keyspace: Keyspace) -> [UInt8]? {
    guard let group = keyspace.keyedGroup else { return key }
    return naming?.seal(key, in: group)
  }

  /// The key of a row, from its form in the catalog; nil when it cannot be read.
  func opened(_ sealed: [UInt8], of keyspace: Keyspace) -> [UInt8]? {
    guard let group = keyspace.keyedGroup else { return sealed }
    return naming?.open(sealed, in: group)
  }
}

extension Family {
  /// Whether its rows have a key of their own.
  var hasOwnKey: Bool { row.number >= Keyspace.commonFamilyLimit }
}

extension IndexDefinition {
  /// The key of the last document in an index under construction. With nil, the build starts from
  /// the beginning, which is always correct.
  func lastBuilt(_ keys: CollectionKeys) -> [UInt8]? {
    guard case .building(let through?) = state else { return nil }
    return keys.opened(through, of: keyspace)
  }

  /// The state of the index when it has all documents up to and including this one.
  func built(through last: [UInt8], _ keys: CollectionKeys) -> State {
    .building(through: keys.sealed(last, of: keyspace))
  }
}

extension DatabaseError {
  /// The error of every call that concerns a collection whose key is missing.
  static func locked(_ collection: String?) -> DatabaseError {
    let name = collection.map { "the collection '\($0)'" } ?? "a collection"
    return DatabaseError(
      .permissionDenied,
      "\(name) has a key of its own, which is not here: the file KEYS is missing or lacks it",
      suggestion: "put the file KEYS back that belongs to the database, or drop the collection",
      path: collection)
  }
}
