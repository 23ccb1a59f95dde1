// Checks whether the catalog and its mirror have the same rows. It does not decide which of the two
// is right. CatalogCheck checks the contents of the catalog.

internal import OndolEngine

/// A walk over the catalog and its mirror, side by side.
struct MirrorCheck: Sendable {
  private(set) var findings = FindingList()
  private let rows: Rows

  init(_ rows: Rows) {
    self.rows = rows
  }

  /// Walks all rows. Blocks the thread while it reads blocks from disk.
  mutating func run() {
    // CatalogCheck reports an unreadable catalog in the same words, and it counts once.
    do throws(DatabaseError) {
      var catalog = CatalogCopy(rows, .catalog)
      var mirror = CatalogCopy(rows, .mirror)
      try catalog.advance()
      try mirror.advance()
      try compare(&catalog, &mirror)
    } catch {
      findings.append(Finding(error, .catalog))
    }
  }

  private mutating func compare(
    _ catalog: inout CatalogCopy, _ mirror: inout CatalogCopy
  ) throws(DatabaseError) {
    while let tail = [catalog.tail, mirror.tail].compactMap(\.self).min(by: {
      $0.lexicographicallyPrecedes($1)
    }) {
      let (isCatalogs, isMirrors) = (catalog.tail == tail, mirror.tail == tail)
      if !isMirrors {
        note("lacks the row of", tail)
      } else if !isCatalogs {
        note("has, and the catalog lacks, the row of", tail)
      } else if catalog.value != mirror.value {
        note("has another row of", tail)
      }
      if isCatalogs { try catalog.advance() }
      if isMirrors { try mirror.advance() }
    }
  }

  private mutating func note(_ message: String, _ tail: [UInt8]) {
    findings.append(
      Finding(
        .error, .mirror, "the mirror of the catalog \(message) \(Self.describe(tail))",
        hint: Finding.damageHint))
  }

  /// The meaning of the catalog's row with this key after the keyspace.
  private static func describe(_ tail: [UInt8]) -> String {
    let name = String(decoding: tail.dropFirst(), as: UTF8.self)
    let number = tail.dropFirst().prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    return switch tail.first {
    case 0x01: "the next number"
    case 0x02: "the collection \(name)"
    case 0x03: "keyspace \(number)"
    case 0x04: "the collection group \(name)"
    case 0x05: "the dropped collection of number \(number)"
    default: "an unknown kind"
    }
  }
}

/// The rows of the catalog, or those of its mirror.
private struct CatalogCopy: ~Copyable {
  private var walk: RangeWalk
  /// The current row's key after the keyspace; nil at the end.
  private(set) var tail: [UInt8]?
  private(set) var value: [UInt8] = []

  init(_ rows: Rows, _ keyspace: Keyspace) {
    walk = RangeWalk(rows, [KeyRange(prefix: keyspace.prefix)])
  }

  mutating func advance() throws(DatabaseError) {
    guard try walk.next() else {
      tail = nil
      return
    }
    tail = Array(walk.cursor.key.array.dropFirst(Keyspace.catalog.prefix.count))
    let bytes = try walk.value.array
    value = bytes
  }
}
