// What a device knows of a document that it shares with its server. The document itself is where it
// always is, as the server has it with this device's waiting writes on top. So indexes, queries and
// listeners see it without a layer in between. Only for a document with waiting writes is the
// server's state here as well.
//
//   path      reference: the document
//   follows   array of integers: the follows that contain it, as the server says
//   updated   timestamp: when the server last updated it; missing when it is not there
//   base      map: its fields on the server, while writes wait; missing when it is not there
//   waiting   array of texts: the entries of the outbox that are about it, in their order
//   ancestor  map, or false for no document: the state that waiting writes were made on, when the
//             base is another and they are to be merged with it
//   shown     which state is shown, unless it is the last of these entries': timestamp, when the
//             server updated it; false, not there; text, an earlier entry
//   lacking   boolean: whether one of these entries is left out of what is shown, because it relies
//             on another state. The server may have committed it after all, when its answer is late

#if Sync
  import Crypto
  import Ondol

  /// A document that is shared with a server.
  struct SyncedRow: Sendable {
    let path: DocumentPath
    var follows: Set<Int64> = []
    var updated: Timestamp?
    var base: [String: Value]?
    var waiting: [String] = []
    /// The state that writes were made on that are to be merged with the base; nil when it is the
    /// base, or nothing is to be merged.
    var ancestor: Ancestor?
    /// The state that is shown; nil for what the last waiting entry has made.
    var shown: Reliance?
    /// Whether a waiting entry on which the state depends is left out of it.
    var lacksEntry = false

    /// A document, or that there was none.
    enum Ancestor: Sendable, Hashable {
      case document([String: Value])
      case nothing

      init(_ fields: [String: Value]?) { self = fields.map { .document($0) } ?? .nothing }

      var fields: [String: Value]? {
        if case .document(let fields) = self { fields } else { nil }
      }
    }

    /// What a write relies on that is made for the document as the device shows it. None when the
    /// device does not know whether the server has the document: it may be in no follow.
    var state: Reliance {
      if let shown { return shown }
      return waiting.last.map { .after($0) } ?? updated.map { .updated($0) } ?? Reliance.none
    }

    /// Whether the device has no reason to keep the document.
    var isForgotten: Bool { follows.isEmpty && waiting.isEmpty }

    init(_ path: DocumentPath) {
      self.path = path
    }

    // MARK: - As a row

    private enum Field {
      static let path = "path"
      static let follows = "follows"
      static let updated = "updated"
      static let base = "base"
      static let waiting = "waiting"
      static let ancestor = "ancestor"
      static let shown = "shown"
      static let lacking = "lacking"
    }

    /// The field that says which follows contain a document.
    static let followsField = FieldPath(Field.follows)

    /// Nil for fields that are no row.
    init?(_ fields: [String: Value]) {
      guard case .reference(let path)? = fields[Field.path] else { return nil }
      self.path = path
      if case .array(let follows)? = fields[Field.follows] {
        self.follows = Set(
          follows.compactMap { if case .integer(let number) = $0 { number } else { nil } })
      }
      if case .timestamp(let time)? = fields[Field.updated] { updated = time }
      if case .map(let base)? = fields[Field.base] { self.base = base }
      if case .array(let waiting)? = fields[Field.waiting] {
        self.waiting = waiting.compactMap { if case .string(let name) = $0 { name } else { nil } }
      }
      switch fields[Field.ancestor] {
      case .map(let fields)?: ancestor = .document(fields)
      case .boolean(false)?: ancestor = .nothing
      default: break
      }
      shown = fields[Field.shown].flatMap { Reliance($0) }
      lacksEntry = fields[Field.lacking] == .boolean(true)
    }

    var fields: [String: Value] {
      var fields: [String: Value] = [Field.path: .reference(path)]
      if !follows.isEmpty {
        fields[Field.follows] = .array(follows.sorted().map { .integer($0) })
      }
      fields[Field.updated] = updated.map { .timestamp($0) }
      if !waiting.isEmpty {
        fields[Field.base] = base.map { .map($0) }
        fields[Field.waiting] = .array(waiting.map { .string($0) })
        fields[Field.ancestor] = ancestor.map { ancestor in
          ancestor.fields.map { .map($0) } ?? .boolean(false)
        }
        fields[Field.shown] = shown?.value
        if lacksEntry { fields[Field.lacking] = .boolean(true) }
      }
      return fields
    }
  }

  /// A short name for a document's path, of any length.
  struct PathDigest: Sendable, Hashable {
    let high: UInt64
    let low: UInt64

    init(_ path: DocumentPath) {
      var hash = SHA256()
      for segment in path.segments {
        hash.update(data: Array(segment.utf8))
        // No segment has it.
        hash.update(data: [UInt8(ascii: "/")])
      }
      let bytes = Array(hash.finalize().prefix(16))
      high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
      low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// What the row is called.
    var name: String { Self.hex(high) + Self.hex(low) }

    private static func hex(_ number: UInt64) -> String {
      let text = String(number, radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }
  }

  extension SyncedRow {
    /// Where the row of a document is.
    static func place(of path: DocumentPath) -> DocumentPath {
      DocumentPath(unchecked: [SyncRows.synced, PathDigest(path).name])
    }
  }

  extension Database {
    /// The row of a document.
    func syncedRow(of path: DocumentPath) -> DocumentReference {
      document(SyncedRow.place(of: path))
    }
  }
#endif
