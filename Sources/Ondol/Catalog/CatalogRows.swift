// The catalog's rows as bytes. They are ordinary rows of keyspace 0, written in the same commit
// that first uses what they define, so neither can exist without the other. Each is written twice:
// see CatalogMirror.
//
//   01                                       -> next family number
//   02 root collection's name                -> family: number, generation, next member
//   03 keyspace (u32 BE) 00                  -> what the keyspace is
//   03 keyspace (u32 BE) 01 symbol (u32 BE)  -> the field name of the symbol, UTF-8
//   03 keyspace (u32 BE) 02                  -> the field with the expiry of documents; or none
//   03 keyspace (u32 BE) 03                  -> from which commit on documents have which schema
//   03 keyspace (u32 BE) 04                  -> what documents have that not all versions know
//   04 collection id                         -> the indexes of its group: count, kinds
//   05 family number (u32 BE)                -> next member of a family that is being removed
//
// Numbers are varints; texts and lists are preceded by their length. Every change of a family's
// keyspaces or indexes changes its generation. The rows of one family are contiguous.

internal import OndolEngine

/// The contents of a family's row `02`.
struct FamilyRow: Sendable, Equatable {
  var number: UInt32
  /// Counts the changes of the family's keyspaces and indexes.
  var generation: UInt64
  /// The number of the next keyspace within the family.
  var nextMember: UInt32
}

extension FamilyRow {
  /// Whether this came before `other`. A root collection that was dropped and created again has a
  /// higher number and starts counting from the beginning.
  func isOlder(than other: FamilyRow) -> Bool {
    (number, generation) < (other.number, other.generation)
  }
}

/// The contents of a keyspace's row `03 … 00`.
enum KeyspaceRow: Sendable, Equatable {
  case documents(CollectionPattern)
  case index(IndexDefinition)
  /// Dropped; its rows are being removed.
  case dropped
}

/// Keys of catalog rows.
enum CatalogKey {
  static let nextFamily: [UInt8] = Keyspace.catalog.prefix + [0x01]

  static func family(_ root: String) -> [UInt8] {
    Keyspace.catalog.prefix + [0x02] + Array(root.utf8)
  }

  /// Before all families' rows.
  static let families: [UInt8] = Keyspace.catalog.prefix + [0x02]

  /// Before all rows about keyspaces.
  static let keyspaces: [UInt8] = Keyspace.catalog.prefix + [0x03]

  static func keyspace(_ keyspace: Keyspace) -> [UInt8] {
    keyspaceRows(keyspace.rawValue) + [kindMark]
  }

  static func symbol(_ symbol: UInt32, of keyspace: Keyspace) -> [UInt8] {
    var key = keyspaceRows(keyspace.rawValue) + [0x01]
    key.appendBigEndian(symbol)
    return key
  }

  /// The indexes that a collection group must have.
  static func group(_ collectionID: String) -> [UInt8] {
    Keyspace.catalog.prefix + [0x04] + Array(collectionID.utf8)
  }

  /// Before the rows of all dropped families.
  static let droppedFamilies: [UInt8] = Keyspace.catalog.prefix + [0x05]

  static func droppedFamily(_ number: UInt32) -> [UInt8] {
    var key = droppedFamilies
    key.appendBigEndian(number)
    return key
  }

  static let kindMark: UInt8 = 0x00
  static let timeToLiveMark: UInt8 = 0x02
  static let schemaMark: UInt8 = 0x03
  static let formsMark: UInt8 = 0x04

  /// The field with the expiry of documents.
  static func timeToLive(_ keyspace: Keyspace) -> [UInt8] {
    keyspaceRows(keyspace.rawValue) + [timeToLiveMark]
  }

  /// Which documents have which schema.
  static func schema(_ keyspace: Keyspace) -> [UInt8] {
    keyspaceRows(keyspace.rawValue) + [schemaMark]
  }

  /// What documents have that not all versions know.
  static func forms(_ keyspace: Keyspace) -> [UInt8] {
    keyspaceRows(keyspace.rawValue) + [formsMark]
  }

  /// The keyspace of a key of `keyspaces(ofFamily:)` with this mark.
  static func keyspace(of mark: UInt8, _ key: RawSpan) throws(MalformedBytes) -> Keyspace? {
    var reader = ByteReader(key)
    _ = try reader.take(5)
    let keyspace = Keyspace(rawValue: UInt32(bigEndian: try reader.littleEndian()))
    return try reader.byte() == mark ? keyspace : nil
  }

  /// The range of all keyspace and symbol rows of a family.
  static func keyspaces(ofFamily number: UInt32) -> (lower: [UInt8], upper: [UInt8]) {
    let first = Keyspace(family: number, member: 0).rawValue
    let last = first + (Keyspace.familyCapacity - 1)
    return (keyspaceRows(first), keyspaceRows(last) + [0xff])
  }

  private static func keyspaceRows(_ number: UInt32) -> [UInt8] {
    var key = keyspaces
    key.appendBigEndian(number)
    return key
  }

  /// The keyspace of a key of `keyspaces(ofFamily:)`, and the symbol when it is a symbol's key.
  static func parse(_ key: RawSpan) throws(MalformedBytes) -> (keyspace: Keyspace, symbol: UInt32?)
  {
    var reader = ByteReader(key)
    _ = try reader.take(5)
    let keyspace = Keyspace(rawValue: UInt32(bigEndian: try reader.littleEndian()))
    switch try reader.byte() {
    case 0x00: return (keyspace, nil)
    case 0x01: return (keyspace, UInt32(bigEndian: try reader.littleEndian()))
    case let mark: throw .newer(at: reader.offset, "a row of the unknown kind \(mark)")
    }
  }
}

extension FamilyRow {
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendVarint(UInt64(number))
    bytes.appendVarint(generation)
    bytes.appendVarint(UInt64(nextMember))
    return bytes
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    number = UInt32(try reader.count(atMost: Int(Keyspace.familyLimit)))
    generation = try reader.varint()
    nextMember = UInt32(try reader.count(atMost: Int(Keyspace.familyCapacity)))
  }
}

extension KeyspaceRow {
  private enum Kind: UInt8 {
    case documents = 1
    case index, dropped
  }

  private enum State: UInt8 {
    case ready, buildingFromStart, building
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    switch self {
    case .documents(let pattern):
      bytes.append(Kind.documents.rawValue)
      bytes.append(texts: pattern.collectionIDs)
    case .dropped:
      bytes.append(Kind.dropped.rawValue)
    case .index(let index):
      bytes.append(Kind.index.rawValue)
      bytes.appendVarint(UInt64(index.documents.rawValue))
      bytes.append(index.kind)
      switch index.state {
      case .ready: bytes.append(State.ready.rawValue)
      case .building(nil): bytes.append(State.buildingFromStart.rawValue)
      case .building(let through?):
        bytes.append(State.building.rawValue)
        bytes.append(contentsOf: through)
      }
    }
    return bytes
  }

  /// The pattern that a row among `CatalogKey.keyspaces` gives to its keyspace; nil for other rows.
  static func pattern(
    key: RawSpan, _ value: RawSpan
  ) throws(MalformedBytes) -> CollectionPattern? {
    guard try CatalogKey.keyspace(of: CatalogKey.kindMark, key) != nil else { return nil }
    var reader = ByteReader(value)
    guard try reader.byte() == Kind.documents.rawValue else { return nil }
    return CollectionPattern(try reader.texts())
  }

  /// Whether the row is a link's, or unreadable: code that reads it for its own sake reports that.
  static func mayLink(_ value: RawSpan, of keyspace: Keyspace) -> Bool {
    do throws(MalformedBytes) {
      guard case .index(let index) = try KeyspaceRow(value, of: keyspace) else { return false }
      return index.kind.isLink
    } catch {
      return true
    }
  }

  init(_ bytes: RawSpan, of keyspace: Keyspace) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    let kind = try reader.byte()
    switch Kind(rawValue: kind) {
    case .documents: self = .documents(CollectionPattern(try reader.texts()))
    case .index: self = .index(try Self.index(&reader, keyspace))
    case .dropped: self = .dropped
    case nil: throw .newer(at: 0, "a keyspace of the unknown kind \(kind)")
    }
  }

  private static func index(
    _ reader: inout ByteReader, _ keyspace: Keyspace
  ) throws(MalformedBytes) -> IndexDefinition {
    let documents = Keyspace(rawValue: UInt32(try reader.count(atMost: Int(UInt32.max))))
    let kind = try reader.indexKind()
    let mark = try reader.byte()
    let state: IndexDefinition.State
    switch State(rawValue: mark) {
    case .ready: state = .ready
    case .buildingFromStart: state = .building(through: nil)
    case .building: state = .building(through: try reader.take(reader.remaining).array)
    case nil: throw .newer(at: reader.offset, "an index in the unknown state \(mark)")
    }
    return IndexDefinition(keyspace: keyspace, documents: documents, kind: kind, state: state)
  }
}
