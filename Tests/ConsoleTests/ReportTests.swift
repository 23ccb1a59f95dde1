// The route of reports: rows, columns, the chart's columns, the explanation, and mistakes with
// their place.

import Foundation
import Ondol
import OndolConsole
import Testing

@Suite struct `The console's reports` {
  private func bench() async throws -> ConsoleBench {
    let bench = try await ConsoleBench(.read)
    for (id, genre, price) in [("a", "novel", 3), ("b", "craft", 5), ("c", "novel", 4)] {
      try await bench.database.document("books/\(id)").setData(["genre": genre, "price": price])
    }
    return bench
  }

  @Test func `A group with one number has a chart, and columns in the order of the stage`()
    async throws
  {
    let bench = try await bench()
    let (status, text, _) = try await bench.ask(
      "POST", "report",
      #"{"pipeline": "books | aggregate n = sum(price) by genre | sort n desc","#
        + #" "explain": "analyze"}"#
    )
    #expect(status == 200)
    let rows =
      #"{"rows":[{"fields":{"genre":"novel","n":{"$numberLong":"7"}}},"#
      + #"{"fields":{"genre":"craft","n":{"$numberLong":"5"}}}],"columns":["genre","n"],"#
      + #""more":false,"chart":{"label":"genre","value":"n"},"explanation":["#
    #expect(text.hasPrefix(rows), "\(text)")
    #expect(text.contains("aggregate: 2 rows") && text.hasSuffix(#""follows":true}"#))
  }

  @Test func `Rows that are documents have their paths, and a plan reads nothing`() async throws {
    let bench = try await bench()
    let rows = try await bench.ask(
      "POST", "report", #"{"pipeline": "books | where price > 4 | add double = price * 2"}"#)
    #expect(
      rows.text.hasPrefix(
        #"{"rows":[{"path":"books/b","fields":{"double":{"$numberLong":"10"},"genre":"craft","#
          + #""price":{"$numberLong":"5"}}}],"columns":["double","genre","price"],"more":false"#),
      "\(rows.text)")
    #expect(!rows.text.contains("chart"))
    let plan = try await bench.ask(
      "POST", "report", #"{"pipeline": "books | unnest tags", "explain": "plan"}"#)
    #expect(plan.text.hasPrefix(#"{"explanation":["Tree:""#), "\(plan.text)")
    #expect(plan.text.hasSuffix(#""follows":false}"#))
  }

  @Test func `A mistake has its place in bytes, and wrong requests are refused`() async throws {
    let bench = try await bench()
    let mistake = try await bench.ask(
      "POST", "report", #"{"pipeline": "books | where 제목 = \"온돌\" | limits 3"}"#)
    #expect(mistake.status == 400)
    #expect(mistake.text.contains(#""offset":34"#), "\(mistake.text)")
    #expect(mistake.text.contains("is no stage"))
    for wrong in [
      "{}", #"{"pipeline": 3}"#, #"{"pipeline": "books", "explain": "x"}"#,
      #"{"pipeline": "books", "limit": 3}"#, #"{"pipeline": "books | where nothing(x)"}"#,
      #"{"pipeline": "\#(String(repeating: "x", count: 40_000))"}"#,
    ] {
      #expect(try await bench.status("POST", "report", wrong) == 400, "\(wrong.prefix(60))")
    }
    #expect(try await bench.status("GET", "report") == 404)
  }

  @Test func `An answer has at most a thousand rows`() async throws {
    let bench = try await bench()
    let batch = bench.database.batch()
    for number in 0..<1_100 {
      try batch.setData(["n": number], forDocument: bench.database.document("many/\(number)"))
    }
    try await batch.commit()
    let many = try await bench.ask("POST", "report", #"{"pipeline": "many | select n"}"#)
    #expect(many.text.contains(#""more":true"#))
    #expect(many.text.components(separatedBy: #""path":"#).count == 1_001)
  }

  @Test func `The page is a document of its own`() async throws {
    let bench = try await bench()
    for file in ["reports", "assets/reports.js", "assets/reports.css"] {
      #expect(try await bench.ask("GET", "/\(file)", isAPI: false).status == 200)
    }
  }
}
