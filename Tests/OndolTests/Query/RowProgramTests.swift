// The conditions of a query are compiled into steps over encoded rows. FieldFilter implements their
// meaning a second time, over decoded fields. The test compares the two over random pairs.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite("Conditions over encoded rows")
struct RowProgramTests {
  /// A document, stored and decoded.
  private struct Document {
    let id: String
    let key: [UInt8]
    let row: [UInt8]
    let fields: [String: Value]
  }

  private static let names = ["a", "b", "c", "d", "한", "zz"]
  private static let moment: Int64 = 0

  @Test(arguments: Seeds.first(8))
  func `A program accepts the documents that meet the conditions`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    let path = try CollectionPath("items")
    let naming = DocumentNaming(
      CollectionPattern(path), Keyspace(rawValue: 40), collection: path)
    // If the table is full, maps have names of their own.
    var symbols = SymbolTable(limit: samples.random.oneIn(4) ? 3 : 60_000)
    var documents: [Document] = []
    for index in 0..<400 {
      let fields = Self.fields(&samples)
      let row = try ValueEncoder.document(
        fields, createTime: Timestamp(unchecked: 1), symbols: &symbols
      ).bytes
      let id = "d\(index)"
      documents.append(
        Document(
          id: id, key: DocumentKey.key(prefix: naming.prefix, id: id), row: row, fields: fields))
    }
    for _ in 0..<400 {
      let conjuncts = (0...samples.random.below(3)).map { _ in
        Self.tree(&samples, documents, depth: 2)
      }
      let required = samples.random.oneIn(3) ? [Self.field(&samples)] : []
      let lifetime: FieldNames? = samples.random.oneIn(3) ? ["c"] : nil
      let program = RowProgram(
        conjuncts, required: required, lifetime, endingAfter: Self.moment, naming, symbols)
      for document in documents {
        let isExpected =
          conjuncts.allSatisfy { $0.matches(document.fields, name: .string(document.id)) }
          && required.allSatisfy { $0.value(in: document.fields, name: .null) != nil }
          && (lifetime == nil || !Self.isOver(document.fields["c"]))
        let isAccepted = try program.accepts(
          DocumentView(document.row.bytes), document.key.bytes)
        guard isAccepted != isExpected else { continue }
        Issue.record("seed \(seed): \(conjuncts) \(required) of \(document.fields)")
        return
      }
    }
  }

  @Test(arguments: Seeds.first(3))
  func `Damaged rows are accepted, refused or reported, and nothing worse`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    let path = try CollectionPath("items")
    let naming = DocumentNaming(
      CollectionPattern(path), Keyspace(rawValue: 40), collection: path)
    var symbols = SymbolTable()
    for _ in 0..<100 {
      let fields = Self.fields(&samples)
      let row = try ValueEncoder.document(
        fields, createTime: Timestamp(unchecked: 1), symbols: &symbols
      ).bytes
      let document = Document(id: "d", key: [], row: row, fields: fields)
      let programs = (0..<10).map { _ in
        RowProgram(
          [Self.tree(&samples, [document], depth: 1)], required: [], ["c"], endingAfter: 0, naming,
          symbols)
      }
      for _ in 0..<20 {
        var bytes = row
        let offset = samples.random.below(bytes.count)
        bytes[offset] ^= 1 << UInt8(samples.random.below(8))
        if samples.random.oneIn(3) { bytes.removeLast(samples.random.below(bytes.count)) }
        for program in programs where !program.needsKeys {
          do throws(MalformedBytes) {
            _ = try program.accepts(DocumentView(bytes.bytes), RawSpan())
          } catch {
            #expect(error.offset <= bytes.count, "seed \(seed): \(error)")
          }
        }
      }
    }
  }

  // MARK: - Chance

  private static func isOver(_ value: Value?) -> Bool {
    value?.timestamp.map { $0.microsecondsSince1970 <= moment } ?? false
  }

  private static func fields(_ samples: inout ValueSamples) -> [String: Value] {
    var fields: [String: Value] = [:]
    for name in names where !samples.random.oneIn(4) { fields[name] = value(&samples) }
    // So many fields that a lookup uses binary search.
    if samples.random.oneIn(5) {
      for index in 0..<20 { fields["e\(index)"] = .integer(Int64(index)) }
    }
    return fields
  }

  /// Values that collide: few texts and numbers, arrays and maps of them, or any value.
  private static func value(_ samples: inout ValueSamples) -> Value {
    switch samples.random.below(11) {
    case 10:
      .decimal(DecimalValue("\(samples.random.below(4)).\(samples.random.below(2) * 5)") ?? .zero)
    case 0: .null
    case 1: .boolean(samples.random.oneIn(2))
    case 2: .integer(Int64(samples.random.below(4)))
    case 3: .double(Double(samples.random.below(8)) / 2)
    case 4, 5: .string(["", "a", "ab", "한", "한글"][samples.random.below(5)])
    case 6: .timestamp(Timestamp(unchecked: Int64(samples.random.below(3)) - 1))
    case 7: .array((0..<samples.random.below(4)).map { _ in scalar(&samples) })
    case 8: .map(["a": scalar(&samples), "b": .map(["a": scalar(&samples)])])
    default: samples.value(depth: 2)
    }
  }

  private static func scalar(_ samples: inout ValueSamples) -> Value {
    switch samples.random.below(5) {
    case 0: .null
    case 1: .integer(Int64(samples.random.below(4)))
    case 2: .string(["a", "ab", "한"][samples.random.below(3)])
    case 3: .double(Double(samples.random.below(4)))
    default: samples.number()
    }
  }

  private static func field(_ samples: inout ValueSamples) -> QueryField {
    let name = names[samples.random.below(names.count)]
    return switch samples.random.below(6) {
    case 0: .field([name, "a"])
    case 1: .field([name, "b", "a"])
    case 2: .field([name, "nobody has this"])
    default: .field([name])
    }
  }

  private static func tree(
    _ samples: inout ValueSamples, _ documents: [Document], depth: Int
  ) -> FilterTree {
    if depth > 0, samples.random.oneIn(3) {
      let trees = (0..<samples.random.below(4)).map { _ in
        tree(&samples, documents, depth: depth - 1)
      }
      return samples.random.oneIn(2) ? .all(trees) : .any(trees)
    }
    guard !samples.random.oneIn(12) else {
      let name = Value.string("d\(samples.random.below(400))")
      let conditions: [FieldFilter.Condition] = [
        .equal(name), .greater(name), .isIn([name]), .hasPrefix(ExactText("d1")),
        .matchesText(TextPattern("D1", .beginning, ignoringCase: true)),
      ]
      return .field(
        FieldFilter(
          field: .documentID, condition: conditions[samples.random.below(conditions.count)]))
    }
    let field = field(&samples)
    // Mostly a value that some document has there, or one near it.
    func operand() -> Value {
      let document = documents[samples.random.below(documents.count)]
      let own = field.value(in: document.fields, name: .null)
      guard let own, !samples.random.oneIn(4) else { return value(&samples) }
      return samples.random.oneIn(4) ? samples.variant(of: own) : own
    }
    func operands() -> [Value] {
      (0..<samples.random.below(5)).map { _ in operand() }.sortedWithoutDuplicates
    }
    func element() -> Value {
      operand().array.flatMap { $0.isEmpty ? nil : $0[0] } ?? scalar(&samples)
    }
    let condition: FieldFilter.Condition =
      switch samples.random.below(12) {
      case 0: .equal(operand())
      case 1: .notEqual(operand())
      case 2: .less(operand())
      case 3: .lessOrEqual(operand())
      case 4: .greater(operand())
      case 5: .greaterOrEqual(operand())
      case 6: .isIn(operands())
      case 7: .notIn(operands())
      case 8: .arrayContains(element())
      case 9: .arrayContainsAny([element(), element(), element()].sortedWithoutDuplicates)
      case 10:
        .matchesText(
          TextPattern(
            operand().string ?? "a",
            [.whole, .beginning, .anywhere][samples.random.below(3)],
            ignoringCase: samples.random.oneIn(2)))
      default: .hasPrefix(ExactText(operand().string ?? "a"))
      }
    return .field(FieldFilter(field: field, condition: condition))
  }
}
