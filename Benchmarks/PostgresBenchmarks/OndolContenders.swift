// Ondol through its public interface, as an app calls it: on the server, and in files.

import CPeers
import Foundation
import Ondol
import OndolEngine
import OndolPostgres
import Peers
import Synchronization

/// Ondol, independent of the place of its rows.
class OndolDocuments {
  fileprivate let database: Database
  fileprivate let store: CountingStore?

  init(_ database: Database, _ store: CountingStore? = nil) {
    self.database = database
    self.store = store
  }

  private var diary: CollectionReference { database.collection("diary") }

  func prepare() async throws {
    try await diary.createIndex(on: ["email"])
    try await diary.createIndex(on: ["user", "date"])
    try await diary.createIndex(on: ["category", "-price"])
  }

  func load(_ records: [IdentifiedRecord]) async throws {
    let batch = database.batch()
    for record in records { try batch.setData(from: record.record, forDocument: place(record)) }
    try await batch.commit()
  }

  private func place(_ record: IdentifiedRecord) -> DocumentReference { diary.document(record.id) }

  func settle() async throws {}

  func get(_ ids: [String]) async throws -> UInt64 {
    let diary = diary
    var checksum = Checksum()
    for id in ids { checksum.add(try await diary.document(id).getDocument()) }
    return checksum.value
  }

  func page(_ query: PageQuery) async throws -> UInt64 {
    let found = diary.whereField("category", isEqualTo: query.category)
      .order(by: "price", descending: true).start(after: [query.price])
      .limit(to: PageQuery.length)
    var checksum = Checksum()
    for document in try await found.getDocuments().documents { checksum.add(document) }
    return checksum.value
  }

  func write(_ record: IdentifiedRecord) async throws {
    try await place(record).setData(from: record.record)
  }

  func write(
    _ records: [IdentifiedRecord], writers: Int, for duration: Duration
  ) async throws -> Int {
    let end = ContinuousClock.now + duration
    let diary = diary
    return try await withThrowingTaskGroup(of: Int.self) { group in
      for writer in 0..<writers {
        group.addTask {
          var count = 0
          while ContinuousClock.now < end {
            let record = records[(writer + count * writers) % records.count]
            try await diary.document(record.id).setData(from: record.record)
            count += 1
          }
          return count
        }
      }
      return try await group.reduce(0, +)
    }
  }

  private var bell: DocumentReference { database.collection("bells").document("bell") }

  func announce(_ number: Int64) async throws {
    try await bell.setData(["number": number])
  }

  func listen(ready: () -> Void, _ body: (Int64) -> Bool) async throws {
    var isFirst = true
    for try await snapshot in bell.snapshots {
      if isFirst {
        isFirst = false
        ready()
      } else if let number = snapshot["number"] as Int64?, !body(number) {
        return
      }
    }
  }

  var trips: Int? { store?.trips }

  func close() async throws {
    try await database.close()
  }
}

/// On the server.
final class OndolOnServer: OndolDocuments, Contender, @unchecked Sendable {
  static let name = "Ondol"
  static let settings =
    "on PostgreSQL, \(Plan.cacheBytes >> 30) GiB of cache, every write waits until it is durable"
  static let isShared = true

  static func open(_ number: Int, at place: Place) async throws -> OndolOnServer {
    let store = CountingStore(try PostgresStore(place.server(number)))
    let options = Database.Options(cacheSize: Plan.cacheBytes)
    let database = try await Database.open(on: DatabaseStore { store }, options: options)
    return OndolOnServer(database, store)
  }
}

/// In files.
final class OndolInFiles: OndolDocuments, Contender, @unchecked Sendable {
  static let name = "Ondol embedded"
  static let settings = "in files, \(Plan.cacheBytes >> 30) GiB of cache, .power"
  static let isShared = false

  static func open(_ number: Int, at place: Place) async throws -> OndolInFiles {
    let options = Database.Options(durability: .power, cacheSize: Plan.cacheBytes)
    return OndolInFiles(
      try await Database.open(at: place.directory + "/data.ondol", options: options))
  }

  static func openToRead(at place: Place) async throws -> OndolInFiles {
    let options = Database.Options(cacheSize: Plan.cacheBytes, access: .readOnly)
    return OndolInFiles(
      try await Database.open(at: place.directory + "/data.ondol", options: options))
  }
}

extension Checksum {
  fileprivate mutating func add(_ document: DocumentSnapshot) {
    guard let name = document["name"] as String?, let user = document["user"] as Int? else {
      return
    }
    add(name: name, user: user)
  }
}

/// A store that counts its row requests.
final class CountingStore: RemoteStore {
  private let store: PostgresStore
  private let count = Atomic(0)

  init(_ store: PostgresStore) { self.store = store }

  var trips: Int { count.load(ordering: .relaxed) }

  var name: String { store.name }

  func open(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await store.open(process)
  }

  func append(_ group: RemoteGroup) async throws(EngineError) -> RemoteAppend {
    try await store.append(group)
  }

  func outcome(
    of part: Int64, from origin: Int64
  ) async throws(EngineError) -> CommitPoint? {
    try await store.outcome(of: part, from: origin)
  }

  func commits(
    behind point: CommitPoint, atMost most: Int
  ) async throws(EngineError) -> RemoteNews {
    try await store.commits(behind: point, atMost: most)
  }

  func waitForCommits(
    behind point: CommitPoint, atMost microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    try await store.waitForCommits(behind: point, atMost: microseconds)
  }

  func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    store.observeReach(observer)
  }

  func rows(
    from lower: [UInt8], to upper: [UInt8], reversed: Bool, atMost most: Int,
    asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow] {
    count.add(1, ordering: .relaxed)
    return try store.rows(from: lower, to: upper, reversed: reversed, atMost: most, asOf: base)
  }

  func rows(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow] {
    count.add(1, ordering: .relaxed)
    return try store.rows(at: keys, asOf: base)
  }

  func rowsAtOnce(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]? {
    let rows = try store.rowsAtOnce(at: keys, asOf: base)
    if rows != nil { count.add(1, ordering: .relaxed) }
    return rows
  }

  func pin(
    _ point: CommitPoint, for process: Int64, microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    try await store.pin(point, for: process, microseconds: microseconds)
  }

  func processes(pinnedFor microseconds: Int64) async throws(EngineError) -> Set<Int64> {
    try await store.processes(pinnedFor: microseconds)
  }

  func forget() async throws(EngineError) -> Int { try await store.forget() }

  func history(
    behind sequence: SequenceNumber, atMost most: Int
  ) async throws(EngineError) -> RemoteHistory {
    try await store.history(behind: sequence, atMost: most)
  }

  func trimHistory(
    to retention: HistoryRetention?
  ) async throws(EngineError) -> SequenceNumber {
    try await store.trimHistory(to: retention)
  }

  func drop(_ keyspaces: [UInt32]) async throws(EngineError) { try await store.drop(keyspaces) }

  func skip(to point: CommitPoint) async throws(EngineError) -> Bool {
    try await store.skip(to: point)
  }

  func remove(_ process: Int64) async throws(EngineError) -> Bool {
    try await store.remove(process)
  }

  func putContent(
    _ id: [UInt8], part: Int, _ bytes: [UInt8], whileThereIs row: [UInt8]
  ) async throws(EngineError) -> Bool {
    try await store.putContent(id, part: part, bytes, whileThereIs: row)
  }

  func countContent(_ id: [UInt8]) async throws(EngineError) -> Int {
    try await store.countContent(id)
  }

  func content(_ id: [UInt8], in range: Range<Int>) throws(EngineError) -> [UInt8] {
    count.add(1, ordering: .relaxed)
    return try store.content(id, in: range)
  }

  func removeContent(_ id: [UInt8]) async throws(EngineError) {
    try await store.removeContent(id)
  }

  func clock() async throws(EngineError) -> Int64 { try await store.clock() }

  func synchronize() async throws(EngineError) { try await store.synchronize() }

  func close(_ process: Int64) async { await store.close(process) }
}
