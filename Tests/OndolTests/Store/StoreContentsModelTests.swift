// Contents that several processes put, replace, read and delete on a store, while it loses requests
// and answers and fails over, and while some of the processes die in the middle: compared with a
// model of each path's content. Finally only contents with a path exist.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// One history of a few processes, decided by a seed.
private final class ContentHistory {
  private let seed: UInt64
  private let world: SimulatedWorld
  private let store: SimulatedStore
  private var random: SeededRandom
  /// Each path's content, by the seed of its bytes.
  private var model: [String: (length: Int, seed: UInt64)] = [:]
  private var databases: [Database] = []
  /// The dead ones, which nobody closes.
  private var dead: [Database] = []

  private static let faults = StoreFaults(lostRequests: 30, lostAnswers: 30)

  init(seed: UInt64) {
    self.seed = seed
    world = SimulatedWorld(seed: seed)
    store = SimulatedStore(seed: seed, environment: world.environment)
    random = SeededRandom(seed: seed)
  }

  private func open(on way: any RemoteStore) async throws -> Database {
    var options = Database.Options()
    options.blobGracePeriod = .zero
    while true {
      do throws(DatabaseError) {
        return try await Database.open(
          at: "store", options: options, environment: world.environment, on: way)
      } catch {
        // A call without an answer is repeated.
        guard error.code == .unavailable else { throw error }
      }
    }
  }

  func run(steps: Int) async throws {
    for _ in 0..<2 { databases.append(try await open(on: store)) }
    store.faults = Self.faults
    for _ in 0..<steps { try await step() }
    store.faults = .none
    try await settle()
  }

  private func step() async throws {
    let database = random.pick(databases)
    let path = "file\(random.below(3))"
    switch random.below(10) {
    case 0...2: try await put(path, with: database)
    case 3...5: try await read(path, with: database)
    case 6:
      try await database.refresh()
      if model[path] != nil { try await database.storage.reference(withPath: path).delete() }
      model[path] = nil
    case 7: _ = try await database.contents.reclaimer.reclaim()
    case 8: try await die(at: path)
    default:
      // Not for so long that the pins expire, which are renewed in the background.
      world.pass(seconds: Int64(random.below(100)))
      for database in databases {
        try await database.engine.flush()
        await database.engine.forgetVersions()
      }
    }
  }

  private func put(_ path: String, with database: Database) async throws {
    let content = (length: 1 + random.below(900_000), seed: UInt64(random.below(6)))
    let bytes = ContentFixture.noise(content.length, seed: content.seed)
    try await database.storage.reference(withPath: path).putData(bytes)
    model[path] = content
  }

  private func read(_ path: String, with database: Database) async throws {
    try await database.refresh()
    guard let content = model[path] else { return }
    let bytes = ContentFixture.noise(content.length, seed: content.seed)
    let lower = random.below(bytes.count)
    let upper = lower + 1 + random.below(bytes.count - lower)
    var found: [UInt8] = []
    let reference = database.storage.reference(withPath: path)
    for try await piece in reference.bytes(in: lower..<upper) { found += piece }
    let isSame = found == Array(bytes[lower..<upper])
    #expect(isSame, "\(path), \(lower)..<\(upper), seed \(seed)")
  }

  /// A process begins an upload, dies in it or after it, and never commits it.
  private func die(at path: String) async throws {
    let way = MortalStore(store)
    let database = try await open(on: way)
    let intake = database.contents.beginIntake()
    try await intake.append(ContentFixture.noise(1 + random.below(900_000), seed: random.next()))
    let staged = try await random.chance(1, in: 2) ? intake.finish() : nil
    way.die()
    dead.append(database)
    withExtendedLifetime(staged) {}
  }

  /// Finishes everything, and checks what is left.
  private func settle() async throws {
    for path in model.keys.sorted() { try await read(path, with: databases[0]) }
    let last = databases.removeFirst()
    for database in databases { try await database.close() }
    world.pass(seconds: 2 * 3_600)
    try await last.refresh()
    // A reader or a pass of the last process may still be ending.
    for _ in 0..<10_000 where store.partCount != expectedParts {
      _ = try await last.contents.reclaimer.reclaim()
      try await last.engine.flush()
      await last.engine.forgetVersions()
      await Task.yield()
    }
    #expect(store.partCount == expectedParts, "seed \(seed)")
    #expect(try await last.verify(depth: .full) == [], "seed \(seed)")
    try await last.close()
  }

  private var expectedParts: Int {
    let stored = Set(model.values.map { [UInt64($0.length), $0.seed] })
    return stored.reduce(0) { sum, content in
      let length = Int(content[0])
      return length <= 32 << 10
        ? sum : sum + (length + ContentPart.length - 1) / ContentPart.length
    }
  }
}

@Suite struct `Histories of contents on a store` {
  @Test(arguments: Seeds.first(12))
  func `Every path has its bytes, and nothing else stays`(seed: UInt64) async throws {
    try await ContentHistory(seed: seed).run(steps: 40)
  }
}
