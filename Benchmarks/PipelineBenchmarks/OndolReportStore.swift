// The reports as Ondol's pipelines, over documents as an app would store them: a sale refers to its
// seller, and its tags are an array.

import BenchmarkKit
import Foundation
import Ondol
import Peers

final class OndolReportStore: ReportStore {
  static let name = "Ondol"
  static let settings = ".process, default memory (64 MiB cache, 128 MiB for pipelines), no index"

  private let database: Database

  private init(_ database: Database) {
    self.database = database
  }

  static func open(_ directory: String) async throws -> OndolReportStore {
    OndolReportStore(
      try await Database.open(at: directory + "/db", options: .init(durability: .process)))
  }

  func load(_ count: Int) async throws {
    try await put(Sale.sellers(of: count)) { seller in
      ("sellers/s\(seller)", ["country": .string(Sale.country(ofSeller: seller))])
    }
    try await put(count) { number in
      let sale = Sale(number, of: count)
      let seller = try DocumentPath("sellers/s\(sale.seller)")
      return (
        "sales/\(number)",
        [
          "kind": .string(sale.kind), "customer": .integer(Int64(sale.customer)),
          "session": .integer(Int64(sale.session)), "price": .double(sale.price),
          "amount": .integer(Int64(sale.amount)), "city": .string(sale.city),
          "tags": .array(sale.tags.map { .string($0) }), "seller": .reference(seller),
          "title": .string(sale.title), "day": .integer(Int64(sale.day)),
        ]
      )
    }
  }

  private func put(
    _ count: Int, _ document: (Int) throws -> (path: String, fields: [String: Value])
  ) async throws {
    for start in stride(from: 0, to: count, by: Plan.batchSize) {
      let batch = database.batch()
      for number in start..<min(start + Plan.batchSize, count) {
        let (path, fields) = try document(number)
        try batch.setData(fields, forDocument: database.document(path))
      }
      try await batch.commit()
    }
  }

  /// The pipeline of a report, and its columns.
  private func pipeline(_ report: Report) -> (Pipeline, [FieldPath]) {
    let sales = database.pipeline().collection("sales")
    switch report {
    case .filterAndCount:
      return (
        sales.where(Field("price").greaterThan(500.0) && Field("city").equal("city 7"))
          .aggregate(.count().as("n")), ["n"]
      )
    case .groupByTen:
      return (
        sales.aggregate(
          .count().as("n"), Field("price").average().as("mean"), groups: [Field("kind")]),
        ["kind", "n", "mean"]
      )
    case .groupByThousands:
      return (
        sales.aggregate(Field("amount").sum().as("sum"), groups: [Field("customer")]),
        ["customer", "sum"]
      )
    case .groupByMany:
      return (sales.aggregate(.count().as("n"), groups: [Field("session")]), ["session", "n"])
    case .groupByTwo:
      return (
        sales.aggregate(
          Field("price").sum().as("sum"), groups: [Field("kind"), Field("city")]),
        ["kind", "city", "sum"]
      )
    case .topOfGroup:
      return (
        sales.window(
          .rowNumber().as("place"), groups: [Field("kind")],
          orders: [Field("amount").descending()]
        ).where(Field("place").lessThanOrEqual(10)).select(Field("kind"), Field("amount")),
        ["kind", "amount"]
      )
    case .join:
      return (
        sales.lookup(Field("seller"), as: "seller")
          .aggregate(.count().as("n"), groups: [Field("seller.country").as("country")]),
        ["country", "n"]
      )
    case .distinct: return (sales.distinct(Field("city"), Field("day")), ["city", "day"])
    case .unnest:
      return (
        sales.unnest(Field("tags").as("tag")).aggregate(.count().as("n"), groups: [Field("tag")]),
        ["tag", "n"]
      )
    case .pattern:
      return (
        sales.where(Field("title").regexContains(Report.expression)).aggregate(.count().as("n")),
        ["n"]
      )
    case .share:
      return (
        sales.window(.total(Field("price")).as("all"), groups: [Field("kind")])
          .where(Field("price").divide(Field("all")).multiply(100_000.0).greaterThan(1.5))
          .aggregate(.count().as("n"), groups: [Field("kind")]), ["kind", "n"]
      )
    }
  }

  func answer(_ report: Report, hashes: Bool) async throws -> ReportAnswer? {
    let (pipeline, columns) = pipeline(report)
    var answer = ReportAnswer()
    for row in try await pipeline.execute() {
      if hashes {
        answer.add(columns.map { Self.text(row.get($0)) })
      } else {
        for column in columns { answer.seen &+= Self.look(at: row.get(column)) }
      }
    }
    return answer
  }

  private static func look(at value: Value?) -> Int {
    switch value {
    case .integer(let number)?: Int(truncatingIfNeeded: number)
    case .string(let text)?: text.utf8.count
    case nil, .null?: 0
    default: 1
    }
  }

  private static func text(_ value: Value?) -> String {
    switch value {
    case .integer(let number)?: "\(number)"
    case .double(let number)?: String(format: "%.4f", number)
    case .string(let text)?: text
    default: "-"
    }
  }

  /// What a write pays for a report that is followed: sums of a tenth as many groups as documents.
  func measureWrites(_ plan: Plan, _ result: inout SuiteResult) async throws {
    // The first ones find what the load has left to do.
    _ = try await writeTime(plan)
    let plain = try await writeTime(plan)
    let sums = database.pipeline().collection("sales")
      .aggregate(Field("amount").sum().as("sum"), groups: [Field("seller")])
    let begun = AsyncStream.makeStream(of: Void.self)
    let following = Task {
      var count = 0
      for try await snapshot in sums.snapshots {
        count += snapshot.count
        begun.continuation.yield()
      }
      return count
    }
    var first = begun.stream.makeAsyncIterator()
    await first.next()
    let followed = try await writeTime(plan)
    following.cancel()
    _ = try? await following.value
    result.note(Workload.write, plain)
    result.note(Workload.followedWrite, followed)
    result.note(Workload.followedByPlain, followed / plain)
  }

  /// The median of microseconds of a write, over stretches of 200.
  private func writeTime(_ plan: Plan) async throws -> Double {
    var times: [Double] = []
    for turn in 0..<40 {
      let time = try await microseconds {
        for number in 0..<200 {
          let sale = (turn * 200 + number) * 7_919 % plan.documents
          try await database.document("sales/\(sale)").updateData(
            ["amount": FieldValue.increment(1)], durability: .power)
        }
      }
      times.append(time / 200)
    }
    return median(times)
  }

  func close() async throws { try await database.close() }
}
