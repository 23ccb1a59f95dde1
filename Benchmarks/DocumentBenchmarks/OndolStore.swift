// Ondol through its public interface, as an app calls it: Codable documents in, snapshots out, and
// each call awaited separately.

import Foundation
import Ondol
import Peers

final class OndolStore: DocumentStore {
  static let name = "Ondol"
  static let version = "of this package"
  static let settings = ".process, four shards, checksums verified on every load from disk"

  let database: Database

  private init(_ database: Database) {
    self.database = database
  }

  static func open(_ directory: String, cacheBytes: Int) async throws -> OndolStore {
    let options = Database.Options(durability: .process, cacheSize: cacheBytes)
    return OndolStore(try await Database.open(at: directory + "/data.ondol", options: options))
  }

  private func collection(_ place: DocumentPlace) -> CollectionReference {
    database.collection(place.rawValue)
  }

  func prepare() async throws {
    let diary = collection(.diary)
    try await diary.createIndex(on: ["email"])
    try await diary.createIndex(on: ["user", "date"])
    try await diary.createIndex(on: ["category", "-price"])
  }

  func write(_ records: [IdentifiedRecord], to place: DocumentPlace) async throws {
    let collection = collection(place)
    let batch = database.batch()
    for identified in records {
      try batch.setData(from: identified.record, forDocument: collection.document(identified.id))
    }
    try await batch.commit()
  }

  func get(_ ids: [String]) async throws -> UInt64 {
    let diary = collection(.diary)
    var checksum = Checksum()
    for id in ids { checksum.add(try await diary.document(id).getDocument()) }
    return checksum.value
  }

  /// The same calls from the main actor.
  @MainActor
  func getOnMainActor(_ ids: [String]) async throws -> UInt64 {
    let diary = collection(.diary)
    var checksum = Checksum()
    for id in ids { checksum.add(try await diary.document(id).getDocument()) }
    return checksum.value
  }

  func decode(_ ids: [String]) async throws -> UInt64 {
    let diary = collection(.diary)
    var checksum = Checksum()
    for id in ids {
      let record = try await diary.document(id).getDocument(as: Record.self)
      checksum.add(record.checksum)
    }
    return checksum.value
  }

  func equality(_ emails: [String]) async throws -> UInt64 {
    let diary = collection(.diary)
    return try await documents(emails) { diary.whereField("email", isEqualTo: $0) }
  }

  func weeks(_ queries: [WeekQuery]) async throws -> UInt64 {
    let diary = collection(.diary)
    return try await documents(queries) {
      diary.whereField("user", isEqualTo: $0.user).whereField("date", in: $0.dates)
        .order(by: "date")
    }
  }

  func pages(_ queries: [PageQuery]) async throws -> UInt64 {
    let diary = collection(.diary)
    return try await documents(queries) {
      diary.whereField("category", isEqualTo: $0.category)
        .order(by: "price", descending: true).start(after: [$0.price])
        .limit(to: PageQuery.length)
    }
  }

  func scan(_ names: [String]) async throws -> UInt64 {
    let archive = collection(.archive)
    return try await documents(names) { archive.whereField("name", isEqualTo: $0) }
  }

  func decodeAll() async throws -> UInt64 {
    let records = try await collection(.export).getDocuments().data(as: Record.self)
    return records.reduce(0) { $0 &+ $1.checksum }
  }

  private var listing: CollectionReference { database.collection("listing") }

  func write(_ files: [(id: String, file: ListedFile)]) async throws {
    let batch = database.batch()
    for (id, file) in files { try batch.setData(from: file, forDocument: listing.document(id)) }
    try await batch.commit()
  }

  func build(_ index: ListingIndex) async throws {
    switch index {
    case .section: try await listing.createIndex(on: ["section"])
    case .sectionAndEnding: try await listing.createIndex(on: ["section", "ending"])
    }
  }

  func countAll() async throws -> UInt64 {
    UInt64(try await listing.count.getAggregation().count)
  }

  func countDeep() async throws -> UInt64 {
    let deep = listing.whereField("depth", isGreaterThan: ListedFile.depth)
    return UInt64(try await deep.count.getAggregation().count)
  }

  func groupBySection() async throws -> UInt64 {
    try await groups(listing.query, by: "section")
  }

  func groupByPackage() async throws -> UInt64 {
    try await groups(
      listing.whereField("ending", isEqualTo: ListedFile.ending), by: "package")
  }

  private func groups(_ query: Query, by field: FieldPath) async throws -> UInt64 {
    var checksum = Checksum()
    for group in try await query.count.group(by: field).getAggregation() {
      checksum.add(group: group[field] ?? "", count: group.aggregation.count)
    }
    return checksum.value
  }

  func paths(_ query: PathQuery) async throws -> UInt64 {
    let found = listing.whereField("path", isGreaterThanOrEqualTo: query.lower)
      .whereField("path", isLessThan: query.upper).order(by: "path")
      .limit(to: PathQuery.length)
    var checksum = Checksum()
    for document in try await found.getDocuments().documents {
      checksum.add(document["path"] as String? ?? "")
    }
    return checksum.value
  }

  private func documents<Asked>(
    _ queries: [Asked], _ query: (Asked) -> Query
  ) async throws -> UInt64 {
    var checksum = Checksum()
    for asked in queries {
      for document in try await query(asked).getDocuments().documents { checksum.add(document) }
    }
    return checksum.value
  }

  func settle() async throws {
    try await database.compact()
  }

  func close() async throws {
    try await database.close()
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
