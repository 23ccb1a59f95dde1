// Ondol's index of words, through the interface that an app would use, and what a write pays for
// unaffected listeners to a search.

import BenchmarkKit
import Foundation
import Ondol
import Peers

final class OndolSearchStore: SearchStore {
  static let name = "Ondol"
  static let settings = ".process, tokenizer 1"
  static let findsWords = true

  private let database: Database
  private let texts: CollectionReference

  private init(_ database: Database) {
    self.database = database
    texts = database.collection("texts")
  }

  private static func database(in directory: String) async throws -> Database {
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true)
    let database = try await Database.open(
      at: directory + "/db", options: .init(durability: .process, cacheSize: 256 << 20))
    try await database.collection("texts").createSearchIndex(on: ["body"])
    return database
  }

  static func open(_ directory: String) async throws -> OndolSearchStore {
    OndolSearchStore(try await database(in: directory))
  }

  func put(_ texts: [SearchedText]) async throws {
    if texts.count == 1 {
      for text in texts {
        try await self.texts.document("d\(text.id)").setData(["body": text.text])
      }
      return
    }
    let batch = database.batch()
    for text in texts {
      try batch.setData(["body": text.text], forDocument: self.texts.document("d\(text.id)"))
    }
    try await batch.commit()
  }

  func settle() async throws {
    try await database.settleSearchIndexes(of: "texts")
  }

  private func search(_ question: SearchQuestion, in query: Query) -> SearchQuery {
    switch question {
    case .words(let words): query.search(words.joined(separator: " "), in: "body")
    case .phrase(let words): query.search("\"\(words.joined(separator: " "))\"", in: "body")
    case .prefix(let start): query.search(start + "*", in: "body")
    case .syllables(let text): query.search(text, in: "body")
    }
  }

  func top(_ questions: [SearchQuestion]) async throws -> Int {
    var bytes = 0
    for question in questions {
      for match in try await search(question, in: texts.limit(to: 10)).getMatches() {
        bytes += (match.document["body"] as String?)?.utf8.count ?? 0
      }
    }
    return bytes
  }

  func count(_ question: SearchQuestion) async throws -> Int {
    try await search(question, in: texts.query).count()
  }

  func close() async throws { try await database.close() }
}

extension OndolSearchStore {
  /// The cost of a put beside many listeners to other words, relative to one without listeners.
  /// Both take turns, so that the machine's state affects both alike.
  static func besideSearches(_ plan: Plan, in directory: String) async throws -> Double {
    let databases = [
      try await database(in: directory + "/alone"), try await database(in: directory + "/beside"),
    ]
    let texts = databases.map { $0.collection("texts") }
    var listeners: [Updates<[SearchMatch]>.Iterator] = []
    for number in 0..<Plan.listeners {
      let word = Vocabulary.latin.words[Texts.oftenWritten + number]
      var listener = texts[1].query.search(word, in: "body").snapshots.makeAsyncIterator()
      guard try await listener.next()?.isEmpty == true else { throw WrongResult() }
      listeners.append(listener)
    }
    var times: [[Double]] = [[], []]
    let size = 100
    for group in 0..<plan.puts / size {
      for side in [0, 1] {
        let time = try await microseconds {
          for number in 0..<size {
            try await texts[side].document("d\(group * size + number)")
              .setData(["body": Texts.oftenWritten(group * size + number)])
          }
        }
        times[side].append(time)
      }
    }
    _ = listeners.count
    for database in databases { try await database.close() }
    return median(times[1]) / median(times[0])
  }
}

/// A search without matches returned one.
private struct WrongResult: Error {}
