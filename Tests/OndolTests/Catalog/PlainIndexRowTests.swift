// Building an index makes rows from stored documents, and a write makes them from decoded fields.
// The tests compare the two.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite("Rows of an index from stored documents")
struct PlainIndexRowTests {
  private static let kinds: [[String]] = [
    ["a"], ["-a"], ["a", "-b"], ["-b", "a", "한"], ["m.a"], ["m.a", "m.b"],
  ]

  @Test(arguments: Seeds.first(3))
  func `They are those that a write makes`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    var symbols = SymbolTable(limit: samples.random.oneIn(3) ? 2 : 60_000)
    for number in 0..<600 {
      var fields: [String: Value] = [:]
      for name in ["a", "b", "한"] where !samples.random.oneIn(4) {
        fields[name] = samples.value(depth: 2)
      }
      if samples.random.oneIn(2) {
        fields["m"] = .map(["a": samples.value(depth: 1), "b": .string(samples.text())])
      }
      if samples.random.oneIn(20) {
        fields["a"] = .string(String(repeating: "온돌", count: 400) + samples.text())
      }
      let row = try ValueEncoder.document(
        fields, createTime: Timestamp(unchecked: 1), symbols: &symbols
      ).bytes
      let ancestors = (0..<(number % 3)).map { "x\($0)" + samples.text(maximumLength: 3) }
      let id = "d" + samples.text(maximumLength: 4)
      let documents = Keyspace(rawValue: 40)
      let key = DocumentKey.key(
        prefix: DocumentKey.prefix(documents, ancestors: ancestors), id: id)
      var kind = IndexKind(
        try Self.kinds[samples.random.below(Self.kinds.count)].map { (text) throws in
          try IndexField(text: text)
        })
      kind.isOfGroup = samples.random.oneIn(2)
      let index = IndexDefinition(
        keyspace: Keyspace(rawValue: 41), documents: documents, kind: kind, state: .ready)
      var plain = try #require(
        PlainIndexRows(index, symbols, ancestorCount: ancestors.count))
      let expected = index.rows(of: fields, ancestors: ancestors, id: id).map(\.key)
      let found = try plain.key(of: DocumentView(row.bytes), key.bytes)
      #expect(found.map { [$0] } ?? [] == expected, "seed \(seed): \(kind.name) of \(fields)")
    }
  }
}
