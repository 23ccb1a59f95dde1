// Lists of objects in the order of their whole names, with any prefix and any delimiter, as Google
// Cloud Storage has them. On the read path: a walk over the ids of storage paths.
//
// In ids a line break is in place of "/", so rows are not in the order of names: "a/b" is before
// "a-b" as a row and after it as a name. The difference is only where a folder is. So the walk goes
// from stretch to stretch of rows. When it meets the first row of a folder F, it divides what is
// left of its stretch into three, in the order of names: names that begin with F and a character
// before "/", the folder itself, and the rest.

internal import OndolEngine

/// What a list of objects asks for.
package struct ObjectListing: Sendable {
  /// The names begin with it.
  package var prefix = ""
  /// Names that have it after the prefix are one entry, which ends with it; empty for none.
  package var delimiter = ""
  /// The first name that may be listed.
  package var start = ""
  /// The first name that is not listed any more; nil for the end.
  package var end: String?
  /// The last entry of the previous page; nil for the first page.
  package var last: String?
  /// The most entries, 1 or more.
  package var limit = 1_000

  package init() {}
}

/// A page of a list of objects.
package struct ObjectPage: Sendable {
  package private(set) var items: [StorageMetadata] = []
  /// What names with a delimiter after the prefix begin with.
  package private(set) var prefixes: [String] = []
  /// The last entry, if there are more.
  package private(set) var next: String?
}

extension Storage {
  /// Objects in the order of their names, byte by byte, as of one moment.
  ///
  /// - Complexity: O(entries), some lookups each, and one for each folder on the way.
  package func page(of listing: ObjectListing) async throws(DatabaseError) -> ObjectPage {
    try await database.read(try database.engineSnapshot(), canBeCancelled: true) {
      (rows) throws(DatabaseError) in try ObjectPage(listing, in: rows)
    }
  }
}

extension ObjectPage {
  fileprivate init(_ listing: ObjectListing, in rows: Rows) throws(DatabaseError) {
    let family = try rows.catalog.family(StorageRows.root, in: rows)
    guard let keyspace = family?.collections[StorageRows.pattern]?.keyspace else { return }
    var names = ObjectNames(prefix: listing.prefix, from: listing.start, keyspace, rows)
    if let last = listing.last {
      if let group = listing.group(of: last) {
        guard names.skip(group) else { return }
      } else {
        names.skip(to: last + "\0")
      }
    }
    let end = listing.end.map { Array($0.utf8) }
    var count = 0
    var last: String?
    while let name = try names.next() {
      if let end, !name.utf8.lexicographicallyPrecedes(end) { return }
      guard count < listing.limit else {
        next = last
        return
      }
      if let group = listing.group(of: name) {
        prefixes.append(group)
        last = group
        guard names.skip(group) else { return }
      } else if let item = try rows.object(at: name) {
        items.append(item)
        last = name
      } else {
        continue
      }
      count += 1
    }
  }
}

extension ObjectListing {
  /// The entry that a name is part of because it has the delimiter; nil when it has none.
  fileprivate func group(of name: String) -> String? {
    guard !delimiter.isEmpty, name.utf8.starts(with: prefix.utf8) else { return nil }
    let (bytes, delimiter) = (Array(name.utf8), Array(delimiter.utf8))
    var start = prefix.utf8.count
    while start + delimiter.count <= bytes.count {
      let end = start + delimiter.count
      if bytes[start..<end].elementsEqual(delimiter) {
        return String(decoding: bytes[..<end], as: UTF8.self)
      }
      start += 1
    }
    return nil
  }
}

extension Rows {
  fileprivate func object(at path: String) throws(DatabaseError) -> StorageMetadata? {
    let document = StorageRows.document(at: path)
    guard let contents = try DocumentReader(rows: self).contents(of: document) else { return nil }
    return StorageMetadata(path: path, contents.fields, updated: contents.stamps.updateTime)
  }
}

/// Finds names one after the other.
private struct ObjectNames {
  /// Rows of names with a common beginning.
  private struct Stretch {
    var range: KeyRange
    /// Bytes of a name up to which its "/" are those that all names here have.
    let depth: Int
  }

  private static let slash = UInt8(ascii: "/")

  private let rows: Rows
  private let keyspace: Keyspace
  private let naming: DocumentNaming
  /// What is still to be walked; the next is the last.
  private var stretches: [Stretch] = []
  /// The first name that counts.
  private var first: [UInt8]

  init(prefix: String, from start: String, _ keyspace: Keyspace, _ rows: Rows) {
    self.rows = rows
    self.keyspace = keyspace
    naming = DocumentNaming(StorageRows.pattern, keyspace, collection: StorageRows.collection)
    first = Array(start.utf8)
    let bytes = Array(prefix.utf8)
    let depth = (bytes.lastIndex(of: Self.slash) ?? -1) + 1
    let lower = key(bytes[...])
    let upper = KeyCoding.successor(ofPrefix: lower) ?? keyspace.prefix + [KeyCoding.afterAll]
    push(lower, upper, depth)
  }

  /// Leaves out all names before `name`.
  mutating func skip(to name: String) {
    let bytes = Array(name.utf8)
    if first.lexicographicallyPrecedes(bytes) { first = bytes }
  }

  /// Leaves out all names that begin with `group`, and all before them. Returns whether any can be
  /// left.
  mutating func skip(_ group: String) -> Bool {
    var scalars = Array(group.unicodeScalars)
    while let last = scalars.popLast() {
      let next = last.value == 0xd7ff ? 0xe000 : last.value + 1
      guard let next = Unicode.Scalar(next) else { continue }
      skip(to: String(String.UnicodeScalarView(scalars + [next])))
      return true
    }
    return false
  }

  /// The next name; nil at the end.
  mutating func next() throws(DatabaseError) -> String? {
    while let stretch = stretches.popLast() {
      var walk = RangeWalk(rows, [stretch.range])
      guard try walk.next() else { continue }
      let after = walk.cursor.key.array + [0]
      guard let path = try naming.path(of: walk.cursor.key).storagePath else {
        push(after, stretch.range.upper, stretch.depth)
        continue
      }
      let name = Array(path.utf8)
      if let end = name[stretch.depth...].firstIndex(of: Self.slash) {
        divide(stretch, at: name[...end])
      } else if name.lexicographicallyPrecedes(first) {
        push(bound(past: name[...], stretch.depth, atLeast: after), stretch)
      } else {
        push(after, stretch.range.upper, stretch.depth)
        return path
      }
    }
    return nil
  }

  /// - Parameter folder: with its "/" at the end.
  private mutating func divide(_ stretch: Stretch, at folder: ArraySlice<UInt8>) {
    let name = folder.dropLast()
    let end = key(name, then: [Self.slash])
    let common = zip(folder, first).prefix { $0 == $1 }.count
    // The next to be walked is pushed last. Stretches whose names do not count are left out.
    if common < folder.count, common < first.count, folder[common] < first[common] {
      return push(bound(past: folder, stretch.depth, atLeast: end), stretch)
    }
    push(end, stretch)
    push(key(name, then: [0x0a]), key(name, then: [0x0b]), folder.count)
    if common < folder.count { push(key(name, then: [0x20]), end, stretch.depth) }
  }

  /// The first key that can be that of a name that counts, after that of a name which does not;
  /// nil when there is none in the stretch.
  private func bound(
    past name: ArraySlice<UInt8>, _ depth: Int, atLeast after: [UInt8]
  ) -> [UInt8]? {
    let common = zip(name, first).prefix { $0 == $1 }.count
    // It is the beginning of names that count.
    if common == name.count { return after }
    guard common >= depth, common < first.count else { return nil }
    var end = common + 1
    while end < first.count, first[end] & 0xc0 == 0x80 { end += 1 }
    let next = key(first[..<depth], then: first[depth..<end])
    return next.bytes.compare(after.bytes) > 0 ? next : after
  }

  /// The beginning of the keys of names that begin with `name`.
  ///
  /// - Parameter rest: bytes as they are in ids.
  private func key(
    _ name: ArraySlice<UInt8>, then rest: some Collection<UInt8> = EmptyCollection<UInt8>()
  ) -> [UInt8] {
    let id = StorageRows.id(of: String(decoding: name, as: UTF8.self))
    var writer = KeyWriter(keyspace.prefix)
    writer.append(textPrefix: String(decoding: Array(id.utf8) + rest, as: UTF8.self))
    return writer.bytes
  }

  private mutating func push(_ lower: [UInt8]?, _ stretch: Stretch) {
    if let lower { push(lower, stretch.range.upper, stretch.depth) }
  }

  private mutating func push(_ lower: [UInt8], _ upper: [UInt8], _ depth: Int) {
    let range = KeyRange(lower: lower, upper: upper)
    if !range.isEmpty { stretches.append(Stretch(range: range, depth: depth)) }
  }
}
