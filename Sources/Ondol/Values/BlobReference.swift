// A reference to a content, as a value of a field. It identifies the bytes by their digest, so it
// is the same on every machine and never goes stale. A document with a reference holds the content,
// from the commit that writes the reference to the commit that removes it (see Holders).

/// A content that a document refers to: which bytes, how many, and of what type.
///
/// `storage.put(_:)` stores bytes and returns a reference. Put it into a field, on its own or
/// inside maps and arrays, and the content stays as long as the document does. As a `Codable`
/// property it corresponds to a `CKAsset` of a record: bytes beside the record, which are deleted
/// with it.
public struct BlobReference: Sendable, Hashable {
  /// The most bytes of UTF-8 in a content type.
  static let maximumContentTypeLength = 255

  /// The SHA-256 of the bytes; for a sealed content, of the stored bytes.
  public let digest: BlobDigest
  /// The number of bytes.
  public let length: Int
  /// The type of the bytes, as in `image/png`; nil when it is unknown.
  public let contentType: String?
  /// The storage path that the reference was taken from, if any. It is only information: the
  /// reference holds the content whatever happens to the path.
  public let path: String?
  /// Opens the content, if it was put for a collection with a key of its own.
  package let key: BlobKey?

  /// Whether the content is sealed under a key that only this reference contains, because it was
  /// put with `Storage.put(_:for:contentType:expecting:durability:)`. Only documents of collections
  /// with a key of their own can refer to it.
  public var isSealed: Bool { key != nil }

  /// A reference to bytes that are stored, or will be by the time it is written into a document.
  ///
  /// - Parameters:
  ///   - digest: the SHA-256 of the bytes.
  ///   - length: the number of bytes, 0 or more.
  ///   - contentType: the type of the bytes, 1 to 255 bytes of UTF-8; nil when it is unknown.
  ///   - path: the storage path that it is taken from, if any.
  /// - Throws: `.invalidArgument` when the length is negative, the content type is empty, over 255
  ///   bytes or has control characters, or `path` is not a storage path in its normal form.
  public init(
    digest: BlobDigest, length: Int, contentType: String? = nil, path: String? = nil
  ) throws(DatabaseError) {
    try self.init(digest: digest, length: length, contentType: contentType, path: path, key: nil)
  }

  /// A reference that opens the content with a key, if there is one.
  package init(
    digest: BlobDigest, length: Int, contentType: String?, path: String? = nil, key: BlobKey?
  ) throws(DatabaseError) {
    guard length >= 0 else {
      throw DatabaseError(.invalidArgument, "a content cannot have \(length) bytes")
    }
    if let contentType, let problem = Self.problem(withContentType: contentType) {
      throw DatabaseError(.invalidArgument, "\"\(contentType)\" is not a content type: \(problem)")
    }
    if let path, let problem = StoragePath.problem(with: path) {
      throw DatabaseError(.invalidArgument, "\"\(path)\" is not a storage path: \(problem)")
    }
    self.digest = digest
    self.length = length
    self.contentType = contentType
    self.path = path
    self.key = key
  }

  /// Why `text` is not a valid content type; nil when it is.
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

  /// Hashes the digest and the length.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(digest)
    hasher.combine(length)
  }
}

extension BlobReference: CustomStringConvertible {
  /// The type, the length and the first digits of the digest.
  public var description: String {
    "blob(\(contentType ?? "any"), \(length) bytes, \(digest.hex.prefix(12))…)"
  }
}

extension BlobReference: Codable {
  private enum CodingKeys: String, CodingKey {
    case sha256, length, contentType, path, key
  }

  /// Reads `sha256` (64 hexadecimal digits) and `length`, and, if present, `contentType`, `path`
  /// and `key` (64 hexadecimal digits): anyone with the key can read the content.
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
            forKey: .key, in: container, debugDescription: "a key must have 64 hexadecimal digits")
        }
        return key
      })
  }

  /// Writes the same; a document stores it as a blob anyway.
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
  /// References without a key first; then by digest, length, content type and path, with missing
  /// ones first, and key.
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
