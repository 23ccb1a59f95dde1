// A reference to a content, as a value of a field. It says which bytes by their digest, so it is
// the same on every machine and never goes stale; a document that has one holds the content, from
// the commit that writes it to the commit that takes it out (see Holders).

/// A content that a document refers to: which bytes, how many, and of what kind.
///
/// `storage.put(_:)` stores bytes and gives one of these; put it into a field, on its own or inside
/// maps and arrays, and the content stays for as long as the document does. As a `Codable` property
/// it is what a `CKAsset` is to a record: bytes beside the record, which go with it.
public struct BlobReference: Sendable, Hashable {
  /// Bytes of UTF-8 that a content type may have.
  static let maximumContentTypeLength = 255

  /// The SHA-256 of the bytes; of one that is sealed, of what is stored of it.
  public let digest: BlobDigest
  /// How many bytes there are.
  public let length: Int
  /// What kind of bytes they are, as in `image/png`; nil when nobody knows.
  public let contentType: String?
  /// The storage path the reference was taken from, if from one. It only informs: the reference
  /// holds the content whatever becomes of the path.
  public let path: String?
  /// What opens the content, where it was put for a collection with a key of its own.
  package let key: BlobKey?

  /// Whether the content is sealed under a key that only this reference has, because it was put
  /// with `Storage.put(_:for:contentType:expecting:durability:)`. Documents of collections with a
  /// key of their own can refer to it, and no others.
  public var isSealed: Bool { key != nil }

  /// A reference to bytes that are stored, or are to be by the time it is written into a document.
  ///
  /// - Parameters:
  ///   - digest: the SHA-256 of the bytes.
  ///   - length: how many bytes there are, 0 or more.
  ///   - contentType: what kind of bytes they are, 1 to 255 bytes of UTF-8; nil when nobody knows.
  ///   - path: the storage path it is taken from, if from one.
  /// - Throws: `.invalidArgument` when the length is negative, the content type is empty, over 255
  ///   bytes or has control characters, or `path` is no storage path in its normal form.
  public init(
    digest: BlobDigest, length: Int, contentType: String? = nil, path: String? = nil
  ) throws(DatabaseError) {
    try self.init(digest: digest, length: length, contentType: contentType, path: path, key: nil)
  }

  /// A reference that opens the content with a key, where there is one.
  package init(
    digest: BlobDigest, length: Int, contentType: String?, path: String? = nil, key: BlobKey?
  ) throws(DatabaseError) {
    guard length >= 0 else {
      throw DatabaseError(.invalidArgument, "a content cannot have \(length) bytes")
    }
    if let contentType, let problem = Self.problem(withContentType: contentType) {
      throw DatabaseError(.invalidArgument, "\"\(contentType)\" is no content type: \(problem)")
    }
    if let path, let problem = StoragePath.problem(with: path) {
      throw DatabaseError(.invalidArgument, "\"\(path)\" is no storage path: \(problem)")
    }
    self.digest = digest
    self.length = length
    self.contentType = contentType
    self.path = path
    self.key = key
  }

  /// Why `text` cannot be a content type, or nil when it can.
  static func problem(withContentType text: String) -> String? {
    if text.isEmpty { return "it is empty" }
    if text.utf8.count > maximumContentTypeLength {
      return "it has \(text.utf8.count) bytes, and may have \(maximumContentTypeLength)"
    }
    if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) { return "it has control characters" }
    return nil
  }

  /// Whether digest, length, content type, path and key are the same, texts by their UTF-8.
  public static func == (left: BlobReference, right: BlobReference) -> Bool {
    ValueOrder.compare(left, right) == 0
  }

  /// Feeds the digest and the length.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(digest)
    hasher.combine(length)
  }
}

extension BlobReference: CustomStringConvertible {
  /// The kind, the length and the first digits of the digest.
  public var description: String {
    "blob(\(contentType ?? "any"), \(length) bytes, \(digest.hex.prefix(12))…)"
  }
}

extension BlobReference: Codable {
  private enum CodingKeys: String, CodingKey {
    case sha256, length, contentType, path, key
  }

  /// Reads `sha256` (64 hexadecimal digits) and `length`, and, where they are, `contentType`,
  /// `path` and `key` (64 hexadecimal digits): whoever has that has the content.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    try self.init(
      digest: container.decode(BlobDigest.self, forKey: .sha256),
      length: container.decode(Int.self, forKey: .length),
      contentType: container.decodeIfPresent(String.self, forKey: .contentType),
      path: container.decodeIfPresent(String.self, forKey: .path),
      key: container.decodeIfPresent(String.self, forKey: .key).map { text in
        guard let key = BlobKey(hex: text) else {
          throw DecodingError.dataCorruptedError(
            forKey: .key, in: container, debugDescription: "a key has 64 hexadecimal digits")
        }
        return key
      })
  }

  /// Writes the same; a document stores it as a blob all the same.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(digest, forKey: .sha256)
    try container.encode(length, forKey: .length)
    try container.encodeIfPresent(contentType, forKey: .contentType)
    try container.encodeIfPresent(path, forKey: .path)
    try container.encodeIfPresent(key?.hex, forKey: .key)
  }
}

extension ValueOrder {
  /// Those without a key first; then by digest, length, content type and path, what has none
  /// first, and key.
  static func compare(_ left: BlobReference, _ right: BlobReference) -> Int {
    if left.isSealed != right.isSealed { return left.isSealed ? 1 : -1 }
    if left.digest != right.digest { return left.digest < right.digest ? -1 : 1 }
    if left.length != right.length { return sign(left.length, right.length) }
    let types = compare(left.contentType, right.contentType)
    if types != 0 { return types }
    let paths = compare(left.path, right.path)
    if paths != 0 { return paths }
    guard let left = left.key, let right = right.key, left != right else { return 0 }
    return left.bytes.lexicographicallyPrecedes(right.bytes) ? -1 : 1
  }
}
