// A place in a query's result that can be kept: the values a document was ordered by, its name
// among them, so that it says where to go on even when the document is gone. Keyset pages are made
// of it, and it survives a restart as one text.

internal import OndolEngine

/// A place in the order of a query's result. Keep it as you like; it is one text when encoded, of
/// hexadecimal digits, and says what the document was ordered by. It stays good when that document
/// is gone. Firestore has only values and snapshots for this.
///
/// ```swift
/// let page = try await items.order(by: "price").limit(to: 20).getDocuments()
/// let next = try await items.order(by: "price").start(after: page.cursor).limit(to: 20)
/// ```
public struct QueryCursor: Sendable, Hashable {
  /// The query's complete order, as text.
  let orders: [String]
  /// What the document was ordered by; nil where it lacked the field.
  let keys: [Value?]

  init(orders: [SortOrder], keys: [Value?]) {
    self.orders = orders.map(\.description)
    self.keys = keys
  }
}

extension QuerySnapshot {
  /// The place behind the last document, for `start(after:)` of a query with the same order; nil
  /// when nothing was found, or when `select` left out a field the result is ordered by.
  public var cursor: QueryCursor? {
    documents.last.flatMap { query.cursor(at: $0) }
  }
}

extension Query {
  /// The place of `document` in this query's order; nil when it lacks a field of the order, or when
  /// the query or the reference is wrong.
  ///
  /// - Parameter document: read by any query, or by its id.
  public func cursor(at document: DocumentSnapshot) -> QueryCursor? {
    guard case .success(let shape) = shape, case .success(let path) = document.reference.place
    else { return nil }
    let orders = shape.completeOrders
    let keys = orders.keys(of: document.contents, name: shape.name(of: path))
    for (key, order) in zip(keys, orders) where key == nil && order.missing == .excluded {
      return nil
    }
    return QueryCursor(orders: orders, keys: keys)
  }
}

// MARK: - As a text

extension QueryCursor: Codable {
  /// Reads the text.
  ///
  /// - Throws: `DatabaseError` with `.invalidArgument` when it is none that was written here.
  public init(from decoder: any Decoder) throws {
    try self.init(decoder.singleValueContainer().decode(String.self))
  }

  /// Writes the text.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(try text())
  }

  /// The bytes of a document with the keys and the orders, as digits of base 16: some hundred
  /// characters that are safe in a file's name and in a URL.
  private func text() throws(DatabaseError) -> String {
    var fields: [String: Value] = ["orders": .array(orders.map { .string($0) })]
    for (index, key) in keys.enumerated() {
      if let key { fields["\(index)"] = key }
    }
    var symbols = Self.noSymbols
    let encoded = try ValueEncoder.document(fields, createTime: nil, symbols: &symbols)
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in encoded.bytes.dropFirst(ValueCoding.envelopeLength) {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  private init(_ text: String) throws(DatabaseError) {
    let problem = DatabaseError(
      .invalidArgument, "\"\(text.prefix(40))\" is no cursor; take one from a query's result")
    var bytes = [UInt8](repeating: 0, count: ValueCoding.envelopeLength)
    var high: UInt8?
    for octet in text.utf8 {
      guard let digit = Character(UnicodeScalar(octet)).hexDigitValue else { throw problem }
      if let first = high {
        bytes.append(first << 4 | UInt8(digit))
        high = nil
      } else {
        high = UInt8(digit)
      }
    }
    do throws(MalformedBytes) {
      guard high == nil else { throw MalformedBytes(at: 0, "half a byte") }
      var fields = try DocumentView(bytes.bytes).fields(Self.noSymbols)
      guard let orders = fields.removeValue(forKey: "orders")?.array?.compactMap(\.string),
        orders.count <= Self.maximumKeys
      else { throw MalformedBytes(at: 0, "no orders") }
      self.orders = orders
      keys = orders.indices.map { fields["\($0)"] }
    } catch {
      throw problem
    }
  }

  private static let maximumKeys = 1_000

  /// A text has no table of names beside it: names stand in it.
  private static var noSymbols: SymbolTable { SymbolTable(limit: 0) }
}
