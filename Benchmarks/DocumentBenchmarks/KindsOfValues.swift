// Indexes over kinds of values that peers do not have: how much a page in folded order costs beside
// one in the order of bytes, and an equality with a decimal beside one with an integer. Both of a
// pair return the same number of documents with the same fields, from a collection of their own.

import Foundation
import Ondol
import Peers

/// A document with a text and one number in three forms.
struct Ware: Codable, Sendable {
  static let count = 100_000
  static let collection = "wares"

  var text: String
  var whole: Int
  /// The same number in hundredths, which mostly no double is equal to.
  var exact: Decimal

  init(_ number: Int) {
    text = Self.text(number)
    whole = number
    exact = Self.exact(number)
  }

  /// A different text for each number, a third of them with a capital letter.
  static func text(_ number: Int) -> String {
    let word = words[number % words.count]
    return "\(number % 3 == 0 ? word.capitalized : word) \(number * 7_919 % 1_000_003)"
  }

  static func exact(_ number: Int) -> Decimal { exacts[number] }

  /// Made before anything is measured: a division of decimals takes half as long as a query.
  private static let exacts = (0..<count).map { Decimal($0) / 100 }

  private static let words = ["apple", "banana", "cherry", "damson", "elder", "fig", "grape"]
}

extension OndolStore {
  private var wares: CollectionReference { database.collection(Ware.collection) }

  /// Writes the documents, and then makes their indexes.
  func writeWares() async throws {
    for first in stride(from: 0, to: Ware.count, by: Plan.documentsPerBatch) {
      let batch = database.batch()
      for number in first..<min(first + Plan.documentsPerBatch, Ware.count) {
        try batch.setData(from: Ware(number), forDocument: wares.document(Record.id(number)))
      }
      try await batch.commit()
    }
    try await wares.createIndex(on: ["text"])
    try await wares.createIndex(on: [.ascending("text", comparing: .folded)])
    try await wares.createIndex(on: ["whole"])
    try await wares.createIndex(on: ["exact"])
  }

  /// Finds a page of texts after each of the texts.
  func textPages(_ numbers: [Int], comparing: TextComparison?) async throws -> UInt64 {
    let plain = wares.order(by: "text")
    let ordered = comparing.map { wares.order(by: "text", comparing: $0) } ?? plain
    return try await sum(numbers) {
      ordered.start(after: [Ware.text($0)]).limit(to: PageQuery.length)
    }
  }

  /// Finds the document with each of the integers.
  func wholes(_ numbers: [Int]) async throws -> UInt64 {
    try await sum(numbers) { wares.whereField("whole", isEqualTo: $0) }
  }

  /// Finds the document with each of the decimals.
  func exacts(_ numbers: [Int]) async throws -> UInt64 {
    try await sum(numbers) { wares.whereField("exact", isEqualTo: Ware.exact($0)) }
  }

  private func sum(_ numbers: [Int], _ query: (Int) -> Query) async throws -> UInt64 {
    var checksum = Checksum()
    for number in numbers {
      for document in try await query(number).getDocuments().documents {
        checksum.add(name: document["text"] as String? ?? "", user: document["whole"] as Int? ?? -1)
      }
    }
    return checksum.value
  }
}

extension Queries {
  /// The expected checksums of the pairs.
  func expectedOfWares(_ plan: Plan) -> [Workload: UInt64] {
    let numbers = 0..<Ware.count
    func texts(_ key: (String) -> String) -> [Int] {
      numbers.map { (key: key(Ware.text($0)), number: $0) }
        .sorted { ($0.key, Ware.text($0.number)) < ($1.key, Ware.text($1.number)) }.map(\.number)
    }
    func pages(_ ordered: [Int]) -> UInt64 {
      var places = [Int](repeating: 0, count: ordered.count)
      for (place, number) in ordered.enumerated() { places[number] = place }
      return sum { ordered[(places[$0] + 1)...].prefix(PageQuery.length) }
    }
    let one = sum { [$0] }
    return [
      .textPage: pages(texts { $0 }), .foldedPage: pages(texts { $0.lowercased() }),
      .wholeEquality: one, .exactEquality: one,
    ]
  }

  private func sum(_ found: (Int) -> some Sequence<Int>) -> UInt64 {
    fold(
      wares.map { pass in
        var checksum = Checksum()
        for asked in pass {
          for number in found(asked) { checksum.add(name: Ware.text(number), user: number) }
        }
        return checksum.value
      })
  }
}
