// A database with contents for tests: small limits, a world of its own, and holders that have keys
// like documents but are none.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

struct ContentFixture {
  let world: SimulatedWorld
  let database: Database
  /// The keyspace of the holders' keys.
  private let keyspace: Keyspace

  var store: ContentStore { database.contents }

  /// Limits at which a few kilobytes fill packs.
  static var smallLimits: EngineOptions {
    var options = EngineOptions()
    options.packSize = 256 << 10
    options.packedContentSize = 64 << 10
    options.inlineContentSize = 100
    options.memtableSize = 256 << 10
    return options
  }

  init(
    _ world: SimulatedWorld, grace: Duration = .zero, lease: Duration = .seconds(86_400),
    _ limits: EngineOptions = smallLimits, changes: Database.ChangeRetention? = nil
  ) async throws {
    self.world = world
    var options = Database.Options(changeRetention: changes)
    options.blobGracePeriod = grace
    options.blobLease = lease
    // The tests run the reclaimer's passes, because its timers do not fire in such a world.
    database = try await Database.open(
      at: "/db", options: options, environment: world.environment, engineOptions: limits)
    try await database.document("holders/none").setData([:])
    let family = try #require(try await database.families().first { $0.root == "holders" })
    keyspace = try #require(family.collections[CollectionPattern(["holders"])]?.keyspace)
  }

  /// Incompressible bytes.
  static func noise(_ count: Int, seed: UInt64) -> [UInt8] {
    var random = SeededRandom(seed: seed)
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  /// The key of a row that holds a content.
  private func row(_ name: String) -> [UInt8] {
    DocumentKey.key(keyspace, ancestors: [], id: name)
  }

  /// Stores bytes and makes the row hold them, in one commit.
  @discardableResult
  func put(_ bytes: [UInt8], _ name: String, durability: OndolEngine.Durability = .process)
    async throws -> BlobDigest
  {
    let staged = try await store.stage(bytes)
    try await change(durability, bringing: staged) {
      $0.add(staged.digest, holder: row(name))
    }
    return staged.digest
  }

  func hold(_ digest: BlobDigest, _ name: String) async throws {
    try await change { $0.add(digest, holder: row(name)) }
  }

  func release(_ digest: BlobDigest, _ name: String) async throws {
    try await change { $0.remove(digest, holder: row(name)) }
  }

  /// Commits a change of holders.
  func change(
    _ durability: OndolEngine.Durability = .process, bringing staged: StagedContent? = nil,
    _ body: @Sendable (inout ContentHolding) -> Void
  ) async throws {
    var holding = ContentHolding()
    body(&holding)
    if let staged { holding.bring(staged) }
    while true {
      let batch = try await store.read { [holding] (rows) throws(DatabaseError) in
        var batch = Batch()
        batch.basis = rows.snapshot.sequence
        try holding.settle(into: &batch, rows)
        return batch
      }
      do throws(EngineError) {
        _ = try await database.engine.commit(batch, durability: durability)
        staged?.finish(after: nil)
        return
      } catch .stale {
        continue
      } catch {
        staged?.finish(after: DatabaseError(error))
        throw error
      }
    }
  }

  /// Returns all bytes of a content; nil if it is not stored.
  func bytes(of digest: BlobDigest) async throws -> [UInt8]? {
    guard let reader = try await store.reader(of: digest) else { return nil }
    return try await reader.read(0..<reader.length)
  }

  /// Reclaims everything that can be reclaimed, in as many passes as necessary.
  @discardableResult
  func reclaim() async throws -> ReclaimReport {
    var sum = ReclaimReport()
    while true {
      let report = try await store.reclaimer.reclaim()
      sum.contents += report.contents
      sum.bytes += report.bytes
      sum.files += report.files
      sum.moved += report.moved
      if report == ReclaimReport() { return sum }
    }
  }

  /// The files of contents.
  func files() throws -> [ContentFile] {
    try store.contents.listFiles().sorted { $0.number < $1.number }
  }
}
