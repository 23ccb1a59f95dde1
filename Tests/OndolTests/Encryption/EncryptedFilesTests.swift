// Files of an encrypted database that someone without the key exchanges, renames, truncates and
// restores from earlier copies. The database then shows the stored state, or an older state of all
// of it, and never anything else.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

@Suite struct EncryptedFilesTests {
  private static func text(_ number: Int) -> String {
    String(repeating: "text \(number) ", count: number % 20 == 0 ? 300 : 10)
  }

  /// Documents in order, so that each state is a prefix of the list, and blobs.
  private func write(_ range: Range<Int>, _ database: Database) async throws {
    for number in range {
      var fields: [String: Value] = ["text": .string(Self.text(number))]
      if number % 40 == 0 {
        let bytes = [UInt8](Self.text(number).utf8) + [UInt8](repeating: 1, count: 50 * number)
        fields["blob"] = .blob(try await database.storage.put(bytes))
      }
      try await database.document("c/d\(number)").setData(fields, durability: .power)
    }
  }

  /// Returns the number of documents, all of them as written; nil if something is reported as
  /// wrong.
  private func count(_ place: EncryptedPlace) async throws -> Int? {
    var count = 0
    do throws(DatabaseError) {
      let database = try await Self.open(place)
      do throws(DatabaseError) {
        let found = try await database.collection("c").getDocuments().documents
        var numbers: Set<Int> = []
        for document in found {
          guard let number = Int(document.documentID.dropFirst()) else { return -1 }
          guard document["text"] == Self.text(number) else { return -1 }
          if let blob = document["blob"] as BlobReference? {
            let bytes = try await Array(database.storage.data(of: blob))
            guard bytes.starts(with: Self.text(number).utf8) else { return -1 }
          }
          numbers.insert(number)
        }
        guard numbers == Set(0..<numbers.count) else { return -1 }
        count = numbers.count
        try await database.close()
      } catch {
        try? await database.close()
        throw error
      }
    } catch {
      #expect(
        [.dataLoss, .notFound, .permissionDenied, .internal].contains(error.code), "\(error)")
      return nil
    }
    return count
  }

  private static func open(_ place: EncryptedPlace) async throws(DatabaseError) -> Database {
    var options = Database.Options(cacheSize: 256 << 10, shardCount: 1)
    options.encryption = EncryptedPlace.key
    return try await Database.open(
      at: "/db", options: options, environment: place.environment,
      engineOptions: EncryptedPlace.engineOptions)
  }

  private func replace(
    _ name: String, with bytes: [UInt8], in directory: any Directory
  ) throws {
    try? directory.remove(name)
    try directory.create(name).write(bytes.bytes, at: 0)
  }

  @Test(arguments: Seeds.first(2))
  func `Only stored states are shown`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let place = EncryptedPlace()
    var old: [String: [UInt8]] = [:]
    for life in 0..<3 {
      let database = try await Self.open(place)
      try await write((life * 100)..<(life * 100 + 100), database)
      if life < 2 { try await database.close() }
      // The last life ends in a kill.
      for (name, bytes) in try place.files() where life < 2 && old[name] == nil {
        old[name] = bytes
      }
    }
    let storage = place.fileSystem.storage.afterKill()
    let whole = EncryptedPlace(SimulatedFileSystem(storage: storage))
    #expect(try await count(whole) == 300)
    var (refused, older, same) = (0, 0, 0)
    for trial in 0..<80 {
      var changed = EncryptedPlace(SimulatedFileSystem(storage: storage))
      changed.seed = seed &+ UInt64(trial)
      let files = try changed.files().filter { $0.name != "LOCK" && $0.name != "RESERVE" }
        .sorted { $0.name < $1.name }
      let directory = try changed.directory()
      let (one, other) = (random.pick(files), random.pick(files))
      var what = one.name
      switch random.below(4) {
      case 0:
        what = "\(one.name) and \(other.name) exchanged"
        try replace(one.name, with: other.bytes, in: directory)
        try replace(other.name, with: one.bytes, in: directory)
      case 1:
        what += " cut"
        try replace(
          one.name, with: Array(one.bytes.prefix(random.below(max(1, one.bytes.count)))),
          in: directory)
      case 2:
        what += " as it was"
        try replace(one.name, with: old[one.name] ?? one.bytes, in: directory)
      default:
        what += " twice, again as \(other.name)"
        try replace(other.name, with: one.bytes, in: directory)
      }
      let found = try await count(changed)
      #expect(found != -1, "SEED=\(seed), trial \(trial): \(what)")
      if let found { if found == 300 { same += 1 } else { older += 1 } } else { refused += 1 }
    }
    #expect(refused > 20, "SEED=\(seed): \(refused) refused, \(older) older, \(same) the same")
  }
}
