// A reader that listens while other processes write, one after another, and are killed. It receives
// only whole commits, never goes back, and finally shows what a new read shows.

import Foundation
import Ondol
import OndolEngine
import OndolTestKit
import Testing

@Suite(.serialized) struct `A reader beside other processes` {
  private static let batchLength = 1_000

  /// The snapshots of a listener.
  private struct Shown {
    var count = 0
    var snapshots = 0
  }

  @Test(arguments: 0..<3)
  func `receives their commits, each as a whole, and continues after their end`(
    round: Int
  ) async throws {
    try await withTemporaryDirectory { directory in
      var random = SeededRandom(seed: UInt64(round))
      let place = directory.appendingPathComponent("followed.ondol").path
      try await Database.open(at: place).close()
      let reader = try await Database.open(at: place, options: .init(access: .readOnly))
      let upload = reader.collection("upload")
      let (counts, countIs) = AsyncStream.makeStream(of: Int.self)
      let listening = Task { try await Self.follow(upload) { countIs.yield($0) } }
      let adding = Task { try await Self.followSum(of: upload) }
      var found = 0
      for life in 0..<3 {
        let file = directory.appendingPathComponent("lines.jsonl")
        try Self.lines(from: found + 1, count: 3 * Self.batchLength).write(to: file)
        let child = try Child(
          "ondol",
          [
            "import", place, file.path, "--into", "upload", "--id-field", "n", "--acknowledge",
            "--quiet", "--durability", random.chance(1, in: 2) ? "power" : "process",
          ])
        let acknowledged = try child.kill(after: random.below(3)) { Int($0) } ?? 0
        // A further life, in this process, recovers what the kill left.
        let writer = try await Database.open(at: place)
        found = try await writer.collection("upload").count.getAggregation().count
        #expect(found >= acknowledged, "SEED=\(round)")
        if life == 1 { try await writer.compact() }
        try await writer.close()
      }
      // The listener must receive the very last commit.
      let writer = try await Database.open(at: place)
      let batch = writer.batch()
      for number in (found + 1)...(found + Self.batchLength) {
        try batch.setData(
          ["n": number, "text": ""], forDocument: writer.document("upload/\(number)"))
      }
      try await batch.commit()
      try await writer.close()
      for await count in counts where count == found + Self.batchLength { break }

      let last = try await upload.order(by: "n").getDocuments().documents.map(\.documentID)
      #expect(last == (1...(found + Self.batchLength)).map { "\($0)" }, "SEED=\(round)")
      try await reader.close()
      let shown = try await listening.value
      #expect(shown.count == last.count, "SEED=\(round)")
      #expect(try await adding.value <= last.count, "SEED=\(round)")
      print("A reader beside processes: \(shown.snapshots) snapshots of \(shown.count) documents")
    }
  }

  private static func lines(from first: Int, count: Int) -> Data {
    let text = (first..<(first + count)).map { #"{"n": \#($0), "text": "\#($0 % 7)"}"# + "\n" }
    return Data(text.joined().utf8)
  }

  private static func follow(
    _ upload: CollectionReference, _ tell: (Int) -> Void
  ) async throws -> Shown {
    var shown = Shown()
    var numbers: [Int] = []
    for try await snapshot in upload.order(by: "n").snapshots {
      for change in snapshot.documentChanges {
        #expect(change.type == .added)
        numbers.insert(
          try #require(change.document["n"] as Int?), at: try #require(change.newIndex))
      }
      #expect(numbers == Array(1..<(snapshot.count + 1)))
      #expect(snapshot.count % batchLength == 0)
      #expect(snapshot.count >= shown.count)
      shown.count = snapshot.count
      shown.snapshots += 1
      tell(shown.count)
    }
    return shown
  }

  private static func followSum(of upload: CollectionReference) async throws -> Int {
    var last = 0
    for try await total in upload.aggregate([.count(), .sum("n")]).snapshots {
      #expect(total.count % batchLength == 0)
      #expect(total.count >= last)
      #expect(total[.sum("n")] == Value.integer(Int64(total.count * (total.count + 1) / 2)))
      last = total.count
    }
    return last
  }
}
