// A position in a query's result that can be saved: the values that a document was ordered by,
// including its name. It shows where to continue even when the document has been deleted. Keyset
// pages use it, and it survives a restart as one text.
//
//   text   base 64 of: 1, the orders' digest (8 bytes), the keys' count (2), one bit for each key
//          that is present (low bits first), then a document's fields in the form D1, without its
//          envelope: the present keys, as an array
//
// The alphabet is that of URLs and names of files, without padding.

internal import OndolEngine

/// A position in the order of a query's result. Save it anywhere: it is one short text, safe in a
/// URL and in a file name, that contains what the document was ordered by. It stays valid when that
/// document is deleted. Firestore has only values and snapshots for this.
///
/// ```swift
/// let page = try await items.order(by: "price").limit(to: 20).getDocuments()
/// let next = try await items.order(by: "price").start(after: page.cursor).limit(to: 20)
/// let kept = page.cursor?.description
/// ```
///
/// The text is neither secret nor signed: anyone who has it can read the values in it.
public struct QueryCursor: Sendable, Hashable {
  /// Identifies the query's complete order.
  private let digest: UInt64
  /// The document's sort keys; nil for a field that it lacked.
  let keys: [Value?]

  init(orders: [SortOrder], keys: [Value?]) {
    digest = Self.digest(of: orders)
    self.keys = keys
  }

  /// Whether it is a position in this order.
  func isOf(_ orders: [SortOrder]) -> Bool {
    digest == Self.digest(of: orders) && keys.count == orders.count
  }

  /// FNV-1a of the orders as texts, whose form must never change.
  private static func digest(of orders: [SortOrder]) -> UInt64 {
    var digest: UInt64 = 0xcbf2_9ce4_8422_2325
    for order in orders {
      for octet in "\(order)\n".utf8 { digest = (digest ^ UInt64(octet)) &* 0x100_0000_01b3 }
    }
    return digest
  }
}

extension Query {
  /// The position of `document` in this query's order.
  ///
  /// - Parameter document: read by its id, or by any query that keeps all fields of the order. For
  ///   the last document of a result, `QuerySnapshot.cursor` always works.
  /// - Throws: `.invalidArgument`, naming the field, when the document lacks one that the result is
  ///   ordered by; `.invalidArgument` also when the query or the reference is wrong.
  public func cursor(at document: DocumentSnapshot) throws(DatabaseError) -> QueryCursor {
    QueryCursor(orders: try shape.get().completeOrders, keys: try keys(at: document))
  }

  /// The document's sort keys.
  func keys(at document: DocumentSnapshot) throws(DatabaseError) -> [Value?] {
    let (shape, path) = (try shape.get(), try document.reference.place.get())
    let keys = shape.completeOrders.keys(of: document.contents, name: shape.name(of: path))
    guard let field = shape.completeOrders.lacking(in: keys) else { return keys }
    throw DatabaseError(
      .invalidArgument,
      "\(path) was read without \(field), which the result is ordered by; select the field, too, or"
        + " take the snapshot's own cursor", path: "\(path)", field: "\(field)")
  }
}

// MARK: - As a text

extension QueryCursor: LosslessStringConvertible {
  /// The text: letters, digits, `-` and `_`, about thirty of them plus the encoded values.
  public var description: String { Base64.text(of: bytes) }

  /// Reads the text; nil when it is not a cursor's text.
  public init?(_ text: String) {
    guard let bytes = Base64.bytes(of: text),
      let cursor = try? QueryCursor(bytes: bytes)
    else { return nil }
    self = cursor
  }

  private var bytes: [UInt8] {
    var bytes: [UInt8] = [Self.version]
    bytes.append(bits: digest, width: 8)
    bytes.append(bits: UInt64(keys.count), width: 2)
    bytes.append(contentsOf: repeatElement(0, count: (keys.count + 7) / 8))
    for (index, key) in keys.enumerated() where key != nil {
      bytes[Self.headerLength + index / 8] |= 1 << UInt8(index % 8)
    }
    var symbols = Self.noSymbols
    // Cannot fail: the keys were read from documents, so they are no longer or deeper than those,
    // apart from the array around them.
    let encoded = try? ValueEncoder.document(
      ["k": .array(keys.compactMap(\.self))], createTime: nil, symbols: &symbols, around: 1)
    return bytes + (encoded?.bytes.dropFirst(ValueCoding.envelopeLength) ?? [])
  }

  private init(bytes: [UInt8]) throws(MalformedBytes) {
    let problem = MalformedBytes(at: 0, "no cursor")
    let octets = bytes.elements
    guard bytes.first == Self.version, let digest = octets.word(at: 1),
      bytes.count >= Self.headerLength
    else { throw problem }
    let count = Int(bytes[9]) | Int(bytes[10]) << 8
    let start = Self.headerLength + (count + 7) / 8
    guard bytes.count > start else { throw problem }
    let document = [UInt8](repeating: 0, count: ValueCoding.envelopeLength) + bytes[start...]
    let fields = try DocumentView(document.bytes).fields(Self.noSymbols)
    guard fields.count == 1, var values = fields["k"]?.array?[...] else { throw problem }
    self.digest = digest
    keys = try (0..<count).map { (index) throws(MalformedBytes) in
      guard bytes[Self.headerLength + index / 8] >> UInt8(index % 8) & 1 == 1 else { return nil }
      guard let value = values.popFirst() else { throw problem }
      return value
    }
    // Each position has exactly one text.
    guard values.isEmpty, self.bytes == bytes else { throw problem }
  }

  private static let version: UInt8 = 1
  private static let headerLength = 11

  /// A text has no separate table of names: the names are in it.
  private static var noSymbols: SymbolTable { SymbolTable(limit: 0) }
}

extension QueryCursor: Codable {
  /// Reads the text.
  ///
  /// - Throws: `DatabaseError` with `.invalidArgument` when it is not a cursor's text.
  public init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let cursor = QueryCursor(text) else {
      throw DatabaseError(
        .invalidArgument, "\"\(text.prefix(40))\" is no cursor; take one from a query's result")
    }
    self = cursor
  }

  /// Writes the text.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

/// Base 64 in the alphabet of URLs, without padding.
private enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  static func text(of bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var (bits, count) = (0, 0)
    for byte in bytes {
      bits = (bits << 8 | Int(byte)) & 0xffff
      count += 8
      while count >= 6 {
        count -= 6
        text.append(alphabet[bits >> count & 63])
      }
    }
    if count > 0 { text.append(alphabet[bits << (6 - count) & 63]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns nil when the text has other characters, or ends with bits that no encoding produces.
  static func bytes(of text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var (bits, count) = (0, 0)
    for octet in text.utf8 {
      guard let digit = alphabet.firstIndex(of: octet) else { return nil }
      bits = (bits << 6 | digit) & 0xffff
      count += 6
      guard count >= 8 else { continue }
      count -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> count))
    }
    return count < 6 && bits & (1 << count - 1) == 0 ? bytes : nil
  }
}
