// Root collections with a key of their own: which there are, and what stands for their documents in
// rows that are not theirs. A family whose number is in the upper half has such a key, so one
// comparison tells. Its rows, in files and logs, are the engine's to seal; here is what the rest of
// the library keeps to:
//
// - Nothing of such a family is read or written without its key. `Catalog.family` refuses, through
//   which all calls come, and names the collection; who only lists, drops or checks asks otherwise.
// - No row of another keyspace has ids or values of the family. Where a row's key would stand in
//   one, a name of it does, or it is sealed.

internal import OndolEngine

/// The keys of root collections.
struct CollectionKeys: Sendable {
  /// Whether a group's key is here; nil where there is no such group.
  private let hasKey: @Sendable (UInt32) -> Bool?
  private let naming: GroupNaming?
  private let isEncrypted: @Sendable () -> Bool

  /// Of a database without such collections.
  static let none = CollectionKeys()

  private init() {
    hasKey = { _ in nil }
    naming = nil
    isEncrypted = { false }
  }

  /// Does not keep the engine, which keeps who follows it.
  init(of engine: Engine) {
    hasKey = { [weak engine] in engine?.hasKey(ofGroup: $0) }
    naming = engine.groupNaming
    isEncrypted = { [weak engine] in engine?.isEncrypted ?? false }
  }

  /// Whether nothing of the family can be read, because its key is not here. One that was dropped,
  /// and whose key is erased, is left to the files that old snapshots hold.
  func isLocked(family number: UInt32) -> Bool {
    number >= Keyspace.commonFamilyLimit && hasKey(number) == false
  }

  func isLocked(_ family: Family) -> Bool { isLocked(family: family.row.number) }

  /// Throws where the key of a content would stand in a row that is sealed with the database's key,
  /// from which the content is to be apart.
  func refuseContentKey(inRow key: [UInt8]) throws(DatabaseError) {
    guard Keyspace(of: key)?.keyedGroup == nil, isEncrypted() else { return }
    throw DatabaseError(
      .failedPrecondition,
      "it refers to a content that was put for a collection with a key of its own, and only"
        + " documents of such a collection can: the content's key stands in them",
      suggestion: "read the content, and put it again with put(_:) for this document")
  }

  /// What stands for a row in the rows of others: its key, or behind the number of the keyspace
  /// what the key is called by.
  func name(ofRow key: [UInt8]) throws(DatabaseError) -> [UInt8] {
    guard let keyspace = Keyspace(of: key), let group = keyspace.keyedGroup else { return key }
    guard let name = naming?.name(of: key, in: group) else { throw .locked(nil) }
    return keyspace.prefix + name
  }

  /// A row's key as the catalog keeps it; nil when the family's key is erased.
  func sealed(_ key: [UInt8], of keyspace: Keyspace) -> [UInt8]? {
    guard let group = keyspace.keyedGroup else { return key }
    return naming?.seal(key, in: group)
  }

  /// The key of a row that the catalog keeps; nil when it cannot be read.
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
  /// The key of the last document that is in an index that is being built; nil when it is built
  /// from the beginning, which is never wrong.
  func lastBuilt(_ keys: CollectionKeys) -> [UInt8]? {
    guard case .building(let through?) = state else { return nil }
    return keys.opened(through, of: keyspace)
  }

  /// The state of the index when it has all documents through this one.
  func built(through last: [UInt8], _ keys: CollectionKeys) -> State {
    .building(through: keys.sealed(last, of: keyspace))
  }
}

extension DatabaseError {
  /// What every call throws that has to do with a collection whose key is not here.
  static func locked(_ collection: String?) -> DatabaseError {
    let name = collection.map { "the collection '\($0)'" } ?? "a collection"
    return DatabaseError(
      .permissionDenied,
      "\(name) has a key of its own, which is not here: the file KEYS is missing or lacks it",
      suggestion: "put the file KEYS back that belongs to the database, or drop the collection",
      path: collection)
  }
}
