// The name of a content: the SHA-256 of its bytes. Stored as four numbers, so that comparing,
// hashing and copying a digest allocates nothing. It is in every blob reference, and in the key of
// every row about holders.

internal import OndolEngine

/// The SHA-256 of a content, which identifies it: the same bytes have the same digest, wherever
/// they are stored.
public struct BlobDigest: Sendable, Hashable {
  /// Bytes in a digest.
  static let length = 32

  /// The bytes in groups of eight, the first of each the highest, so that digests compare as their
  /// bytes do.
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// The digest of these 32 bytes.
  ///
  /// - Parameter bytes: the digest's 32 bytes, in order.
  /// - Returns: nil when there are more bytes, or fewer.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.length else { return nil }
    var words: [UInt64] = [0, 0, 0, 0]
    for (index, byte) in bytes.enumerated() {
      words[index / 8] = words[index / 8] << 8 | UInt64(byte)
    }
    self.words = (words[0], words[1], words[2], words[3])
  }

  /// The digest with these bytes, which are known to be 32.
  init(_ octets: Span<UInt8>) {
    words = (
      Self.word(octets, 0), Self.word(octets, 8), Self.word(octets, 16), Self.word(octets, 24)
    )
  }

  /// Eight bytes as a number whose highest byte is the first.
  private static func word(_ octets: Span<UInt8>, _ offset: Int) -> UInt64 {
    (octets.word(at: offset) ?? 0).byteSwapped
  }

  /// The digest with these 64 hexadecimal digits, in either case.
  ///
  /// - Parameter text: 64 hexadecimal digits.
  /// - Returns: nil when `text` is anything else.
  public init?(hex text: String) {
    guard let bytes = [UInt8](hexadecimal: text) else { return nil }
    self.init(bytes: bytes)
  }

  /// The 32 bytes.
  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    append(to: &bytes)
    return bytes
  }

  /// The 64 hexadecimal digits, in lower case.
  public var hex: String { bytes.hexadecimal }

  /// Appends the 32 bytes.
  func append(to bytes: inout [UInt8]) {
    bytes.append(highFirst: words.0)
    bytes.append(highFirst: words.1)
    bytes.append(highFirst: words.2)
    bytes.append(highFirst: words.3)
  }

  /// Whether the bytes are the same.
  public static func == (left: BlobDigest, right: BlobDigest) -> Bool { left.words == right.words }

  /// Hashes the bytes.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
  }
}

extension BlobDigest: Comparable, CustomStringConvertible {
  /// In the order of the bytes.
  public static func < (left: BlobDigest, right: BlobDigest) -> Bool { left.words < right.words }

  /// The 64 hexadecimal digits.
  public var description: String { hex }
}

extension BlobDigest: Codable {
  /// Reads 64 hexadecimal digits.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let digest = BlobDigest(hex: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "a digest must be 64 hexadecimal digits")
    }
    self = digest
  }

  /// Writes 64 hexadecimal digits.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(hex)
  }
}
