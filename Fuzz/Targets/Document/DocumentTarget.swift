// Documents as bytes. Any bytes are a document or are refused, and all ways of reading agree: the
// check of a row accepts exactly the bytes that can be decoded. A decoded document is encoded and
// decoded again, identical to the last bit.

import OndolEngine

@testable import Ondol

enum DocumentTarget: FuzzTarget {
  static let name = "document"

  private static let names = ["a", "b", "c", "name", "tags", "m", "x", "y", "é", "with space"]

  private static let symbols: SymbolTable = {
    do {
      return try SymbolTable(names: names)
    } catch {
      preconditionFailure("the names differ")
    }
  }()

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    if input.flag() {
      repeatFields(input.fields(depth: 6))
    } else {
      read(input.rest())
    }
  }

  // MARK: - Hostile documents

  private static func read(_ row: [UInt8]) {
    guard let view = try? DocumentView(row.bytes) else { return }
    // A search for a field must not trap, whatever the rest of the document is.
    for name in names { _ = try? value([name, "x"], in: view) }
    let fields = try? view.fields(symbols)
    let isSound = (try? view.check(symbols)) != nil
    demand(isSound == (fields != nil), "checking says \(isSound), decoding \(fields != nil)")
    guard let fields else { return }

    for (name, expected) in fields {
      let found: Value? = try? value([name], in: view)
      demand(found?.isIdentical(to: expected) == true, "\(name) is \(expected) and \(found as Any)")
    }
    guard let contents = try? DocumentSnapshot.Contents(row: row, symbols: symbols) else {
      return demand(false, "a sound row is refused")
    }
    demand(contents.fields.isIdentical(to: fields), "contents differ from fields")
    for (name, expected) in fields {
      let found = contents.value(at: [name])
      demand(found?.isIdentical(to: expected) == true, "\(name) is \(expected) and \(found as Any)")
    }
    decode(contents, fields)
    repeatFields(fields)
  }

  private static func value(
    _ path: [String], in view: borrowing DocumentView
  ) throws -> Value? {
    let resolved = ResolvedPath(try FieldPath(path).names(), in: symbols)
    guard let field = try view.field(resolved) else { return nil }
    _ = try? field.compare("text", symbols)
    return try field.value(symbols)
  }

  /// A type that fits some documents and not most.
  private struct Sample: Codable, Equatable {
    var a: Int?
    var b: String?
    var c: Double?
    var tags: [String]?
    var m: [String: Int]?
  }

  /// Decoding from the row and from the fields gives the same result.
  private static func decode(_ contents: DocumentSnapshot.Contents, _ fields: [String: Value]) {
    let decoder = DocumentDecoder()
    let direct = try? decoder.decode(Sample.self, from: contents.source, of: nil)
    let indirect = try? decoder.decode(Sample.self, from: fields)
    if direct?.c?.isNaN == true || indirect?.c?.isNaN == true { return }
    demand(direct == indirect, "\(direct as Any) from the row, \(indirect as Any) from fields")
  }

  // MARK: - Round trips

  private static func repeatFields(_ fields: [String: Value]) {
    var added = symbols
    guard let row = row(fields, &added) else { return }
    guard let again = try? DocumentView(row.bytes).fields(added) else {
      return demand(false, "what was encoded cannot be decoded: \(fields)")
    }
    demand(again.isIdentical(to: fields), "\(fields) comes back as \(again)")
    demand(row == self.row(again, &added), "the same fields give other bytes")
  }

  /// Returns the row with its stamps filled in, as the sequencer does; nil if the fields are
  /// refused.
  private static func row(_ fields: [String: Value], _ symbols: inout SymbolTable) -> [UInt8]? {
    guard
      let document = try? ValueEncoder.document(fields, createTime: nil, symbols: &symbols)
    else { return nil }
    var bytes = document.bytes
    for stamp in document.stamps {
      demand(stamp.offset + 8 <= bytes.count, "a stamp outside the document")
      bytes.overwriteLittleEndian(UInt64(7), at: stamp.offset)
    }
    return bytes
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    let documents: [[String: Value]] = [
      [:],
      ["a": 1, "b": "text", "c": 0.5],
      ["name": "é", "tags": ["x", "y"], "m": ["x": 1, "y": nil]],
      [
        "a": .timestamp(.maximum), "b": .bytes([1, 2, 3]), "c": .vector([1, 2]),
        "x": .integer(.max), "y": .double(.nan), "é": .array([.map(["a": .array([1, 70_000])])]),
      ],
      ["a": .decimal(DecimalValue("-12.50") ?? .zero), "x": .array([.array([1]), .array([])])],
      ["with space": .string(String(repeating: "long", count: 60)), "m": ["unheard of": 1]],
    ]
    var seeds: [[UInt8]] = []
    for fields in documents {
      var added = symbols
      if let row = row(fields, &added) { seeds.append([0] + row) }
    }
    var chance = Chance(2)
    for length in [20, 80, 200] { seeds.append([1] + chance.bytes(length)) }
    return seeds
  }
}
