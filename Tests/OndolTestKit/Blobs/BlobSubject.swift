// Blobs as the subject of a crash test: rows are contents, with lengths that put them into rows,
// packs and files of their own. One row in five is an object at a storage path. The others are
// documents that refer to their content, and half of these share a second one. Contents are stored
// by a separate put, which a lease keeps until a transaction refers to them, or by the transaction.
// They are replaced and deleted all the time, and reclaimed while others are put.
//
// A read returns every content, as a whole. A life that ends in good order ends with the reclaimer.
// Then no content without a holder may remain, and verification finds nothing wrong.

import Logging
package import Ondol
package import OndolEngine

/// An open database of blobs.
package struct BlobSubject: CrashSubject {
  package static let path = "/db"
  private static let counterCount = 3
  /// The keyspace of a workload whose rows are objects.
  private static let objects: UInt32 = 0x1000

  package let database: Database
  private let path: String
  private let environment: Environment
  private let chance: Guarded<SeededRandom>

  package var makesCommitsOfItsOwn: Bool { true }

  package static func open(
    _ environment: Environment, _ options: SubjectOptions, at path: String = path
  ) async throws -> BlobSubject {
    let silence = Logger(label: "ondol") { _ in SwiftLogNoOpLogHandler() }
    var database = Database.Options(
      durability: .process, cacheSize: 1 << 20, shardCount: options.shardCount, logger: silence)
    database.blobLease = .milliseconds(400)
    database.blobGracePeriod = .milliseconds(5)
    var engine = EngineOptions(options)
    engine.inlineContentSize = 40
    engine.packedContentSize = 1_500
    engine.packSize = 4 << 10
    return BlobSubject(
      database: try await Database.open(
        at: path, options: database, environment: environment, engineOptions: engine),
      path: path, environment: environment,
      chance: Guarded(SeededRandom(seed: environment.random())))
  }

  private func draw<Choice>(_ choose: (inout SeededRandom) -> Choice) -> Choice {
    chance.withLock { choose(&$0) }
  }

  // MARK: - Writing

  package func commit(
    _ changes: [Change], _ durability: OndolEngine.Durability
  ) async throws -> CommitPlace {
    let counter = counter(draw { $0.below(Self.counterCount) })
    let puts = draw { $0.chance(1, in: 2) }
    while true {
      do throws(any Error) {
        let leased = puts ? try await lease(changes) : [:]
        let commit = try await database.run(
          attempts: 1_000, durability: Ondol.Durability(durability)
        ) { transaction in
          for change in changes { try await write(change, leased, transaction) }
          let count = try transaction.getDocument(counter)["commits"] as Int? ?? 0
          try transaction.setData(["commits": count + 1], forDocument: counter)
        }.commit
        guard let receipt = commit.receipt else {
          throw BrokenInvariant("a commit that counts itself has changed nothing")
        }
        return CommitPlace(sequence: receipt.sequence.rawValue, time: receipt.time)
      } catch let error as DatabaseError
        where error.code == .failedPrecondition && error.message.contains("is not stored")
      {
        // The lease ended before the transaction reached it.
        continue
      }
    }
  }

  /// Stores the contents of the documents before the transaction.
  private func lease(_ changes: [Change]) async throws -> [[UInt8]: BlobReference] {
    var leased: [[UInt8]: BlobReference] = [:]
    for value in changes.compactMap(\.value) {
      leased[value] = try await database.storage.put(value, durability: .process)
    }
    return leased
  }

  private func write(
    _ change: Change, _ leased: [[UInt8]: BlobReference], _ transaction: Transaction
  ) async throws {
    let name = Self.name(of: change.key)
    if Self.isObject(change.key) {
      if let value = change.value {
        try await transaction.putData(value, at: "images/\(name)")
      } else if try transaction.getMetadata(at: "images/\(name)") != nil {
        try transaction.deleteObject(at: "images/\(name)")
      }
      return
    }
    let document = database.document("albums/\(name)")
    guard let value = change.value else { return try transaction.deleteDocument(document) }
    let reference = if let known = leased[value] { known } else { try await transaction.put(value) }
    var fields: [String: Value] = ["content": .blob(reference)]
    if change.key.last.map({ $0 % 2 == 0 }) == true {
      fields["others"] = .array([.blob(try await transaction.put(Self.shared)), .blob(reference)])
    }
    try transaction.setData(fields, forDocument: document)
  }

  private func counter(_ number: Int) -> DocumentReference {
    database.document("counters/c\(number)")
  }

  // MARK: - Reading

  package func contents() async throws -> (sequence: UInt64, rows: Rows) {
    var rows: Rows = [:]
    for document in try await database.collection("albums").getDocuments().documents {
      guard let reference = document["content"] as BlobReference? else {
        throw BrokenInvariant("\(document.documentID) has lost its reference")
      }
      rows[try Self.key(named: document.documentID)] = try await bytes(of: reference)
      guard case .array(let others) = document.get("others") as Value? else { continue }
      for case .blob(let other) in others { _ = try await bytes(of: other) }
    }
    for object in try await database.storage.reference(withPath: "images").listAll().items {
      let bytes = try await reading(object.fullPath) {
        try await object.data(maxSize: .max)
      }
      rows[try Self.key(named: object.name)] = Array(bytes)
    }
    var commits = 0
    for number in 0..<Self.counterCount {
      commits += try await counter(number).getDocument()["commits"] as Int? ?? 0
    }
    return (UInt64(commits), rows)
  }

  private func bytes(of reference: BlobReference) async throws -> [UInt8] {
    let bytes = try await reading("\(reference)") { try await database.storage.data(of: reference) }
    guard bytes.count == reference.length else {
      throw BrokenInvariant("\(reference) has \(bytes.count) bytes")
    }
    return Array(bytes)
  }

  /// Reads something that must exist.
  private func reading<Bytes>(
    _ name: String, _ read: () async throws -> Bytes
  ) async throws -> Bytes {
    do {
      return try await read()
    } catch let error as DatabaseError where error.code != .internal {
      throw BrokenInvariant("\(name) cannot be read: \(error)")
    }
  }

  // MARK: - Upkeep

  package func synchronize() async throws { try await database.synchronize() }

  package func flush() async throws { try await database.engine.flush() }

  /// Merges everything that can be merged, and reclaims contents without a holder.
  package func settle() async throws { try await database.compact() }

  package func close() async throws {
    let isAudited = draw { $0.chance(1, in: 3) }
    do {
      if isAudited { try await reclaimAll() }
    } catch {
      // Closing releases the directory.
      try? await database.close()
      throw error
    }
    try await database.close()
    if isAudited { try await audit() }
  }

  /// Reclaims until no content without a holder remains. Merges under way may see an older state.
  private func reclaimAll() async throws {
    // Leases end.
    let wait = environment.sleep
    await wait(1_000_000)
    for _ in 0..<100 {
      try await database.compact()
      let statistics = try await database.storage.statistics()
      if try await heldContents() == statistics.contents, statistics.unheldContents == 0 { return }
      await wait(1_000_000)
    }
    let statistics = try await database.storage.statistics()
    throw BrokenInvariant(
      "\(try await heldContents()) contents are held, and these stay: \(statistics)")
  }

  /// The different contents that documents and paths name.
  private func heldContents() async throws -> Int {
    var digests: Set<BlobDigest> = []
    for document in try await database.collection("albums").getDocuments().documents {
      for case .blob(let reference) in document.data().values { digests.insert(reference.digest) }
      guard case .array(let others) = document.get("others") as Value? else { continue }
      for case .blob(let reference) in others { digests.insert(reference.digest) }
    }
    for object in try await database.storage.reference(withPath: "images").listAll().items {
      if let digest = try await object.getMetadata().sha256 { digests.insert(digest) }
    }
    return digests.count
  }

  /// Checks the closed database: nothing is wrong, and no file is unreferenced. If the device also
  /// fails, nothing can be said about the database.
  private func audit() async throws {
    let findings = try await Database.verify(
      at: path, depth: .full, environment: environment
    )
    .filter { $0.severity == .error || $0.kind == .content }
    guard let first = findings.first else { return }
    if let failure = findings.first(where: { $0.message.contains("Input/output error") }) {
      throw DatabaseError(.internal, failure.message)
    }
    throw BrokenInvariant("the database finds \(findings.count) faults in itself: \(first)")
  }

  // MARK: - Names

  private static let shared = Array("what many documents refer to, in one file among others".utf8)

  private static func isObject(_ key: [UInt8]) -> Bool {
    key.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) } == objects
  }

  private static func name(of key: [UInt8]) -> String {
    key.map { String($0, radix: 16) }.joined(separator: "-")
  }

  private static func key(named name: String) throws -> [UInt8] {
    let bytes = name.split(separator: "-").map { UInt8($0, radix: 16) }
    guard !bytes.contains(nil) else { throw BrokenInvariant("\(name) stands for no row") }
    return bytes.compactMap(\.self)
  }
}
