// Contents that are made from others, while others are made. The body that makes one may derive
// another, run a transaction, or wait for another derivation. A call that would wait for itself is
// refused at once, and a waiting call can be cancelled. Each body runs in a simulated world, which
// ends with an error as soon as a task waits and nothing is left to run.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct DerivationTests {
  private static func photo(in world: WatchedWorld) async throws -> StorageReference {
    let photo = world.database.storage.reference(withPath: "a.png")
    try await photo.putData(Array("picture".utf8))
    return photo
  }

  private static func bytes(
    of blob: BlobReference, in database: Database
  ) async throws -> [UInt8] {
    Array(try await database.storage.data(of: blob))
  }

  // It once waited for itself forever, and so did everyone who derived the same content later.
  @Test func `Deriving within its own making is refused at once`() throws {
    try WatchedWorld.run(seed: 1) { world in
      let photo = try await Self.photo(in: world)
      let error = await #expect(throws: DatabaseError.self) {
        try await photo.derive("small") { bytes in
          let again = try await photo.derive("small") { $0.prefix(1) }
          return bytes + (try await Self.bytes(of: again, in: world.database))
        }
      }
      #expect(error?.code == .failedPrecondition)
      #expect(error?.message.contains("\"small\"") == true)
      let small = try await photo.derive("small") { $0.prefix(2) }
      #expect(try await Self.bytes(of: small, in: world.database) == Array("pi".utf8))
    }
  }

  @Test func `Deriving within the making of another works, and is made once`() throws {
    for seed in Seeds.first(8) {
      try WatchedWorld.run(seed: seed) { world in
        let photo = try await Self.photo(in: world)
        let made = Guarded(0)
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
          for name in ["medium", "large", "medium", "large"] {
            group.addTask {
              let blob = try await photo.derive(name) { _ in
                let small = try await photo.derive("small") { bytes in
                  made.withLock { $0 += 1 }
                  return bytes.prefix(1)
                }
                return try await Self.bytes(of: small, in: world.database) + Array(name.utf8)
              }
              return try await Self.bytes(of: blob, in: world.database)
            }
          }
          let all = try await group.reduce(into: Set()) { $0.insert($1) }
          #expect(all == [Array("pmedium".utf8), Array("plarge".utf8)], "ONDOL_SEED=\(seed)")
        }
        #expect(made.withLock { $0 } == 1)
      }
    }
  }

  /// Three contents, each made from the next: a circle, whichever begins.
  @Test func `A circle of makings through several tasks is refused, and none of them hangs`() throws
  {
    var refusals = 0
    for seed in Seeds.first(40) {
      refusals += try WatchedWorld.run(seed: seed) { world in
        let photo = try await Self.photo(in: world)
        @Sendable func make(_ number: Int) async throws -> BlobReference {
          try await photo.derive("\(number)") { bytes in
            let other = try await make((number + 1) % 3)
            return bytes + (try await Self.bytes(of: other, in: world.database))
          }
        }
        return try await withThrowingTaskGroup(of: Bool.self) { group in
          for number in 0..<3 {
            group.addTask {
              let error = await #expect(throws: DatabaseError.self) { _ = try await make(number) }
              return error?.code == .failedPrecondition
            }
          }
          return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
      }
    }
    #expect(refusals == 3 * Seeds.first(40).count)
  }

  @Test func `Transactions and makings may be within each other`() throws {
    try WatchedWorld.run(seed: 1) { world in
      let (database, photo) = (world.database, try await Self.photo(in: world))
      let small = try await photo.derive("small") { bytes in
        try await database.runTransaction { transaction in
          try transaction.setData(["n": bytes.count], forDocument: database.document("made/small"))
        }
        try await database.document("made/beside").setData(["n": 1])
        return bytes.prefix(1)
      }
      try await database.runTransaction { transaction in
        let medium = try await photo.derive("medium") { $0.prefix(3) }
        try transaction.setData(
          ["small": small, "length": medium.length], forDocument: database.document("photos/p"))
      }
      #expect(try await database.document("made/small").getDocument()["n"] as Int? == 7)
      #expect(try await database.document("photos/p").getDocument().data().count == 2)
      let error = await #expect(throws: DatabaseError.self) {
        try await database.runTransaction { _ in
          _ = try await photo.derive("large") { bytes in
            try await database.runTransaction { inner in
              try inner.setData(["n": 1], forDocument: database.document("made/large"))
            }
            return bytes
          }
        }
      }
      #expect(error?.code == .failedPrecondition)
    }
  }

  /// A task holds a gate and waits for a making, whose maker needs the gate: it goes without.
  @Test func `A making whose transaction loses its races does not wait for a gate`() throws {
    for seed in Seeds.first(8) {
      try WatchedWorld.run(seed: seed) { world in
        let (database, photo) = (world.database, try await Self.photo(in: world))
        let document = database.document("c/d")
        try await document.setData(["n": 0])
        @Sendable func small() async throws -> BlobReference {
          try await photo.derive("small") { bytes in
            var attempts = 0
            try await database.runTransaction { transaction in
              attempts += 1
              _ = try transaction.getDocument(document)
              if attempts <= 5 { try await world.apart { try await Self.increment(document) } }
              try transaction.updateData(["m": attempts], forDocument: document)
            }
            return bytes
          }
        }
        let maker = world.start { try await small() }
        var attempts = 0
        try await database.runTransaction { transaction in
          attempts += 1
          _ = try transaction.getDocument(database.document("c/e"))
          if attempts <= 3 {
            try await world.apart { try await database.document("c/e").setData(["n": 1]) }
          } else {
            _ = try await small()
          }
          try transaction.setData(["n": attempts], forDocument: database.document("c/f"))
        }
        _ = try await maker.value
      }
    }
  }

  private static func increment(_ document: DocumentReference) async throws {
    try await document.updateData(["n": FieldValue.increment(1)], durability: .memory)
  }

  @Test func `A wait for another's derivation ends when cancelled, and when the database closes`()
    throws
  {
    for closes in [false, true] {
      try WatchedWorld.run(seed: 1) { world in
        let photo = try await Self.photo(in: world)
        let (hasBegun, mayEnd) = (Guarded(false), Guarded(false))
        let maker = world.start {
          try await photo.derive("small") { bytes in
            hasBegun.withLock { $0 = true }
            while !mayEnd.withLock({ $0 }) { await Task.yield() }
            return bytes
          }
        }
        while !hasBegun.withLock({ $0 }) { await Task.yield() }
        let waiter = world.start { try await photo.derive("small") { $0.prefix(1) } }
        for _ in 0..<200 { await Task.yield() }
        if closes { try await world.database.close() } else { waiter.cancel() }
        let error = await #expect(throws: DatabaseError.self) { _ = try await waiter.value }
        #expect(error?.code == (closes ? .failedPrecondition : .cancelled))
        mayEnd.withLock { $0 = true }
        if closes {
          await #expect(throws: DatabaseError.self) { _ = try await maker.value }
        } else {
          #expect(try await Self.bytes(of: maker.value, in: world.database).count == 7)
        }
      }
    }
  }
}
