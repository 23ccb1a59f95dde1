// The rows about contents. They are ordinary rows of keyspaces beside the catalog's, all of them in
// its shard. So one range of keys in one shard has everything about a content, and one guard on it
// covers everything that a decision was based on.
//
//   keyspace 1   digest            -> location: where the bytes are
//   keyspace 2   digest            -> lease: until when the content stays without a holder
//   keyspace 3   digest ++ holder  -> nothing; the holder is a row, and this is its key, or the
//   name
//                                     that replaces it for a collection with a key of its own
//   keyspace 4   digest            -> release: the last commit that removed a holder, and its time
//
// A content is stored as long as it has a location. A holder's row is written in the same commit as
// the holder, so holders are never counted, only read. A holder in a dropped keyspace holds
// nothing.

internal import OndolEngine

/// Keys of the rows of contents.
enum ContentKey {
  static let locations = Keyspace(rawValue: ContentLocation.keyspace)
  static let leases = Keyspace(rawValue: 2)
  static let holders = Keyspace(rawValue: 3)
  static let releases = Keyspace(rawValue: 4)

  static func location(_ digest: BlobDigest) -> [UInt8] { key(locations, digest) }
  static func lease(_ digest: BlobDigest) -> [UInt8] { key(leases, digest) }
  static func release(_ digest: BlobDigest) -> [UInt8] { key(releases, digest) }

  /// - Parameter name: the row that holds the content, as `CollectionKeys.name(ofRow:)` names it.
  static func holder(_ digest: BlobDigest, _ name: [UInt8]) -> [UInt8] {
    key(holders, digest, room: name.count) + name
  }

  /// The rows of all holders of a content.
  static func holders(of digest: BlobDigest) -> KeyRange { range(key(holders, digest)) }

  /// The rows of a content's holders whose keys are in a range.
  static func holders(of digest: BlobDigest, in range: KeyRange) -> KeyRange {
    KeyRange(lower: holder(digest, range.lower), upper: holder(digest, range.upper))
  }

  /// All rows of one of the keyspaces.
  static func all(_ keyspace: Keyspace) -> KeyRange { range(keyspace.prefix) }

  /// The rows of one of the keyspaces after those of a digest.
  static func all(_ keyspace: Keyspace, after digest: BlobDigest) -> KeyRange {
    KeyRange(lower: range(key(keyspace, digest)).upper, upper: range(keyspace.prefix).upper)
  }

  /// The digest in a key of any of the keyspaces.
  static func digest(in key: RawSpan) throws(DatabaseError) -> BlobDigest {
    do throws(MalformedBytes) {
      var reader = ByteReader(key)
      _ = try reader.take(Keyspace.prefixLength)
      let bytes = try reader.take(BlobDigest.length).array
      if let digest = BlobDigest(bytes: bytes) { return digest }
    } catch {
      throw DatabaseError(.dataLoss, "the key of a content's row is damaged: \(error.reason)")
    }
    throw DatabaseError(.dataLoss, "the key of a content's row is damaged")
  }

  /// The name of the holding row, from the key of a holder's row.
  static func holdingRow(in key: RawSpan) -> [UInt8] {
    let length = Keyspace.prefixLength + BlobDigest.length
    return key.byteCount < length ? [] : key.extracting(droppingFirst: length).array
  }

  private static func key(
    _ keyspace: Keyspace, _ digest: BlobDigest, room: Int = 0
  ) -> [UInt8] {
    var key: [UInt8] = []
    key.reserveCapacity(Keyspace.prefixLength + BlobDigest.length + room)
    key += keyspace.prefix
    digest.append(to: &key)
    return key
  }

  /// Everything that begins with `prefix`. A digest has bytes of all values, so the end is the next
  /// prefix of the same length.
  private static func range(_ prefix: [UInt8]) -> KeyRange {
    var upper = prefix
    while upper.last == .max { upper.removeLast() }
    if let last = upper.popLast() { upper.append(last + 1) }
    return KeyRange(lower: prefix, upper: upper)
  }
}

extension Keyspace {
  /// Bytes of a keyspace's number at the beginning of a key.
  static let prefixLength = 4
}
