// `ondol pipe`: the text form of pipelines, and what is said of a wrong one.

import Foundation
import Testing

@Suite struct `Pipelines by the ondol program` {
  let scratch: ScratchDirectory
  let shop: String

  init() throws {
    scratch = try ScratchDirectory()
    shop = scratch.path("shop.ondol")
  }

  private func fill() async throws {
    let lines = [
      #"{"id":"a","kind":"lamp","price":30,"tags":["oak","new"]}"#,
      #"{"id":"b","kind":"lamp","price":50,"tags":["oak"]}"#,
      #"{"id":"c","kind":"chair","price":80}"#,
    ]
    let imported = try await scratch.ondol(
      "import", shop, "-", "--into", "items", "--id-field", "id",
      input: lines.joined(separator: "\n"))
    try #require(imported.status == 0, "\(imported.messages)")
  }

  /// A value of a row, whatever form a number has.
  private enum Cell: Decodable, Equatable, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral
  {
    case text(String)
    case number(Double)

    init(stringLiteral text: String) { self = .text(text) }
    init(integerLiteral number: Int) { self = .number(Double(number)) }

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let number = try? value.decode(Double.self) {
        self = .number(number)
      } else {
        self = .text(try value.decode(String.self))
      }
    }
  }

  private func rows(_ pipeline: String) async throws -> [[String: Cell]] {
    let result = try await scratch.ondol("pipe", shop, pipeline, "--format", "jsonl")
    #expect(result.status == 0, "\(result.messages)")
    return try result.output.split(separator: "\n").map { line in
      let row = try JSONDecoder().decode([String: Cell?].self, from: Data(line.utf8))
      return row.compactMapValues(\.self).filter { $0.key != "__name__" }
    }
  }

  @Test func `Stages in a line give their rows`() async throws {
    try await fill()
    #expect(
      try await rows(
        "items | aggregate n = count(), mean = average(price) by kind | sort mean desc")
        == [["kind": "chair", "n": 1, "mean": 80], ["kind": "lamp", "n": 2, "mean": 40]])
    #expect(
      try await rows("items | where tags has 'oak' and not price > 40 | select kind, price")
        == [["kind": "lamp", "price": 30]])
    #expect(
      try await rows(
        "items | unnest tags as tag | aggregate n = count() by tag | sort n desc | limit 1")
        == [["tag": "oak", "n": 2]])
    #expect(
      try await rows("items | select twice = price * 2 - 10 / 3 | sort twice | limit 1")
        == [["twice": 57]])
    #expect(
      try await rows(
        "items | where kind in ['chair'] | union (items | where price = 30) | aggregate n = count()"
      )
        == [["n": 2]])
    #expect(
      try await rows(
        "items | window place = rank() by kind sort price desc | where place = 1 | select price"
          + " | sort price"
      )
        == [["price": 50], ["price": 80]])
  }

  @Test func `A plan has its stages, and a wrong text its position`() async throws {
    try await fill()
    let plan = try await scratch.ondol(
      "pipe", shop, "items | where price > 40 | aggregate n = count()", "--analyze")
    #expect(plan.output.contains("collection, where: 2 rows"), "\(plan.output)")
    #expect(plan.output.contains("aggregate: 1 row"), "\(plan.output)")
    for wrong in [
      "", "items |", "items | nothing", "items | where (a", "items | limit x", "items | where a =",
      "items | sort a b", "items | aggregate count()", "items | where \"a", "items/x",
      String(repeating: "(", count: 10_000),
      "items | where \(String(repeating: "(", count: 10_000))",
    ] {
      let result = try await scratch.ondol("pipe", shop, wrong)
      #expect(result.status == 2, "\(wrong.prefix(40)): \(result.messages)")
    }
    let unknown = try await scratch.ondol("pipe", shop, "items | where no_such(a)")
    #expect(unknown.status == 1 && unknown.messages.contains("no_such"), "\(unknown.messages)")
  }
}
