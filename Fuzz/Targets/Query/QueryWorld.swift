// The databases for the queries, created once.

import Dispatch
import Ondol
import OndolEngine
import OndolTestKit

/// The same documents twice, with indexes and without.
final class QueryWorld: Sendable {
  static let shared = makeInBackground()

  let plain: DatabaseSnapshot
  let indexed: DatabaseSnapshot
  let evaluator: NaiveEvaluator

  static let collections = [
    ["shop"], ["users", "a", "posts"], ["users", "b", "posts"], ["posts"],
  ]

  private init() async throws {
    let databases = [try await Database.inMemory(), try await Database.inMemory()]
    var builder = ModelBuilder(
      input: FuzzInput(
        {
          var chance = Chance(8); return chance.bytes(8_000)
        }()))
    var documents: [ModelDocument] = []
    for (path, count) in zip(Self.collections, [30, 12, 12, 6]) {
      for index in 0..<count {
        let path = path + [ModelBuilder.ids[index % 3] + "d\(index)"]
        let document = ModelDocument(path: path, fields: builder.fields())
        documents.append(document)
        for database in databases {
          try await database.document(path.joined(separator: "/"))
            .setData(document.fields.mapValues { $0 as any FieldContent }, durability: .memory)
        }
      }
    }
    for path in Self.collections {
      let collection = databases[1].collection(path.joined(separator: "/"))
      for fields in [["a"], ["-b", "a"], ["m.x"]] { try await collection.createIndex(on: fields) }
      try await collection.createIndex(onArray: "t")
    }
    try await databases[1].collectionGroup("posts").createIndex(on: ["a", "-c"])
    plain = databases[0].snapshot()
    indexed = databases[1].snapshot()
    evaluator = NaiveEvaluator(documents: documents)
  }

  /// The fuzzer's call is not async, and waits here once.
  private static func makeInBackground() -> QueryWorld {
    let made = Guarded<QueryWorld?>(nil)
    let isMade = DispatchSemaphore(value: 0)
    Task {
      do {
        let world = try await QueryWorld()
        made.withLock { $0 = world }
      } catch {
        demand(false, "\(error)")
      }
      isMade.signal()
    }
    isMade.wait()
    guard let world = made.withLock({ $0 }) else { preconditionFailure("no world was made") }
    return world
  }
}
