// Real processes, really killed: the tool imports and the shop takes orders, on a real disk, until
// a SIGKILL ends them after a random number of acknowledgements. The next open finds everything
// that was acknowledged, and nothing in part.

import Foundation
import Ondol
import OndolTestKit
import Testing

@Suite(.serialized) struct `A process that is killed` {
  private static let batchLength = 1_000

  /// Documents are imported by the thousand, numbered. Each thousand exists whole or not at all.
  @Test(arguments: 0..<10)
  func `while it imports keeps what it acknowledged`(round: Int) async throws {
    try await withTemporaryDirectory { directory in
      var random = SeededRandom(seed: UInt64(round))
      let place = directory.appendingPathComponent("kept.ondol").path
      var found = 0
      for _ in 0..<3 {
        let file = directory.appendingPathComponent("lines.jsonl")
        try lines(from: found + 1, count: 4 * Self.batchLength).write(to: file)
        let durability = random.chance(1, in: 2) ? "power" : "process"
        let child = try Child(
          "ondol",
          [
            "import", place, file.path, "--into", "upload", "--id-field", "n", "--acknowledge",
            "--quiet", "--durability", durability,
          ])
        let acknowledged = try child.kill(after: random.below(4)) { Int($0) } ?? 0
        let count = try await importedCount(at: place)
        #expect(count >= found + acknowledged, "SEED=\(round), .\(durability)")
        #expect(count % Self.batchLength == 0, "SEED=\(round)")
        found = count
      }
      #expect(found > 0, "SEED=\(round)")
    }
  }

  private func lines(from first: Int, count: Int) -> Data {
    let text = (first..<(first + count)).map { number in
      #"{"n": \#(number), "text": "\#(String(repeating: "x", count: number % 50))"}"# + "\n"
    }
    return Data(text.joined().utf8)
  }

  /// Checks that the numbers are a prefix without gaps, each with its text, and returns their
  /// count.
  private func importedCount(at place: String) async throws -> Int {
    let database = try await Database.open(at: place)
    let documents = try await database.collection("upload").getDocuments().documents
    for document in documents {
      let number = try #require(document["n"] as Int?)
      let text: String? = document["text"]
      try #require(document.documentID == "\(number)" && number <= documents.count)
      try #require(text?.count == number % 50)
    }
    try await database.close()
    return documents.count
  }

  /// Orders are numbered without a gap.
  @Test(arguments: 0..<5)
  func `while it takes orders keeps what it acknowledged`(round: Int) async throws {
    try await withTemporaryDirectory { directory in
      var random = SeededRandom(seed: UInt64(round))
      let place = directory.appendingPathComponent("shop.ondol").path
      for _ in 0..<5 {
        let child = try Child("ondol-demo", ["shop", "--at", place, "--kill"])
        let acknowledged = try child.kill(after: 1 + random.below(200)) { line in
          line.hasPrefix("acknowledged ") ? Int(line.dropFirst("acknowledged ".count)) : nil
        }
        let database = try await Database.open(at: place)
        let numbers = try await database.collection("orders").order(by: "number").getDocuments()
          .documents.map { $0["number"] as Int? }
        try await database.close()
        #expect(numbers == Array(1..<(numbers.count + 1)), "SEED=\(round)")
        #expect(numbers.count >= acknowledged ?? 0, "SEED=\(round)")
      }
    }
  }
}
