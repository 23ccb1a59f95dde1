// A check of an encrypted database's files without its key: whole files are found whole, and a
// flipped byte is found wherever a checksum is unencrypted.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

@Suite struct VerifyWithoutKeyTests {
  /// A database with every kind of file.
  private func filled(
    _ place: EncryptedPlace, _ key: Database.Encryption? = EncryptedPlace.key, seed: UInt64
  ) async throws -> Database {
    let database = try await place.open(key)
    var random = SeededRandom(seed: seed)
    for number in 0..<200 {
      let bytes = random.bytes(number % 20 == 0 ? 4_000 : 200)
      try await database.document("c/d\(number)").setData(["bytes": Value.bytes(bytes)])
      if number == 150 { try await database.engine.flush() }
    }
    for length in [3_000, 30_000, 300_000] {
      let blob = try await database.storage.put(random.bytes(length))
      try await database.document("blobs/\(length)").setData(["blob": blob])
    }
    return database
  }

  private func verify(_ place: EncryptedPlace) async throws -> KeylessVerification {
    try await Database.verifyWithoutKey(at: "/db", environment: place.environment)
  }

  private func copy(_ place: EncryptedPlace) -> EncryptedPlace {
    EncryptedPlace(SimulatedFileSystem(storage: place.fileSystem.storage))
  }

  private func size(_ place: EncryptedPlace, _ suffix: String) throws -> UInt64 {
    try place.files().filter { $0.name.hasSuffix(suffix) }
      .reduce(0) { $0 + UInt64($1.bytes.count) }
  }

  @Test func `A whole database has no findings, open, copied and closed`() async throws {
    let place = EncryptedPlace()
    let database = try await filled(place, seed: 1)
    let open = try await verify(place)
    // A mark, or a log created ahead: never damage.
    #expect(open.findings.filter { $0.severity == .error } == [])
    try await database.compact()
    try await database.close()
    let closed = try await verify(place)
    #expect(closed.findings == [])
    // All except one content in a file of its own, whose header counts.
    let content = try size(place, ".content")
    #expect(content > 300_000)
    #expect(closed.uncheckedBytes == content - 64)
    #expect(closed.checkedBytes > 200_000)
  }

  @Test func `A database in the clear is for the other check`() async throws {
    let place = EncryptedPlace()
    try await place.open(nil).close()
    let error = await #expect(throws: DatabaseError.self) { try await verify(place) }
    #expect(error?.code == .failedPrecondition)
  }

  /// Everywhere except in the frames of contents with a file of their own, and in unused space.
  @Test(arguments: Seeds.first(3))
  func `A bit turned over is found, and in its file`(seed: UInt64) async throws {
    let place = EncryptedPlace()
    let database = try await filled(place, seed: seed)
    try await database.close()
    var random = SeededRandom(seed: seed)
    let mark = 1_024..<1_080
    var kinds: [String: Int] = [:]
    for (name, bytes) in try place.files() where name != "LOCK" && name != "RESERVE" {
      let end = name.hasSuffix(".content") ? 64 : bytes.count
      // Zeros may be unused space, and nothing shows that a log had a mark there.
      let places = (0..<end).filter {
        bytes[$0] != 0 && !(name.hasPrefix("LOG-") && mark.contains($0))
      }
      for _ in 0..<(places.isEmpty ? 0 : 12) {
        let offset = random.pick(places)
        let broken = copy(place)
        let turned = [bytes[offset] ^ UInt8(1 << random.below(8))]
        let file = try broken.directory().open(name, access: .readWrite)
        try file.write(turned.bytes, at: UInt64(offset))
        let findings = try await verify(broken).findings
        #expect(
          findings.contains { $0.file == name }, "SEED=\(seed): \(name) at \(offset): \(findings)")
        #expect(findings.allSatisfy { $0.file == name }, "SEED=\(seed): \(findings)")
        let kind = name.split { $0 == "-" || $0 == "." }.first { UInt64($0) == nil }
        kinds[kind.map(String.init) ?? name, default: 0] += 1
      }
    }
    for kind in ["SUPER", "MANIFEST", "LOG", "seg", "val", "pack", "content"] {
      #expect(kinds[kind, default: 0] > 0, "SEED=\(seed): none in a file of kind \(kind)")
    }
  }

  @Test func `Damage in rows, values, packs and commits is an error`() async throws {
    let place = EncryptedPlace()
    let database = try await filled(place, seed: 4)
    try await database.document("c/last").setData(["n": 1], durability: .power)
    try await database.document("c/later").setData(["n": 2], durability: .power)
    // As after a kill: the log has commits and was not closed.
    let killed = copy(place)
    try await database.close()
    for (name, bytes) in try killed.files() {
      let offset: Int
      if name.hasPrefix("LOG-") {
        guard bytes.count > 4_096, bytes[4_096..<4_104].contains(where: { $0 != 0 }) else {
          continue
        }
        offset = 4_160
      } else if [".seg", ".val", ".pack"].contains(where: name.hasSuffix) {
        offset = bytes.count > 400 ? 200 : 70
      } else {
        continue
      }
      let broken = copy(killed)
      let file = try broken.directory().open(name, access: .readWrite)
      try file.write([bytes[offset] ^ 0x10].bytes, at: UInt64(offset))
      let errors = try await verify(broken).findings.filter { $0.severity == .error }
      #expect(errors.map(\.file) == [name], "\(name): \(errors)")
    }
  }

  @Test func `While keys are changed, files of both kinds are looked at`() async throws {
    let start = EncryptedPlace()
    try await filled(start, nil, seed: 5).close()
    var looks = 0
    for operation in stride(from: 10, to: 100_000, by: 37) {
      let fileSystem = SimulatedFileSystem(storage: start.fileSystem.storage)
      let place = EncryptedPlace(fileSystem)
      let database = try await place.open(nil)
      fileSystem.cutPower(before: fileSystem.operations + operation)
      let isDone = (try? await database.encrypt(with: [EncryptedPlace.key])) != nil
      try? await database.close()
      let left = EncryptedPlace(
        SimulatedFileSystem(storage: fileSystem.storage.afterPowerCut(seed: UInt64(operation))))
      if let found = try? await verify(left) {
        looks += 1
        // The next open removes a file that was being written when the power went.
        try await left.open().close()
        let names = try left.files().map(\.name)
        let errors = found.findings.filter { $0.severity == .error }
        #expect(
          errors.allSatisfy { !names.contains($0.file ?? "") },
          "before operation \(operation): \(errors)")
        if let after = try? await verify(left) {
          #expect(after.findings.filter { $0.severity == .error } == [])
        }
      }
      if isDone { break }
    }
    #expect(looks > 2)
  }
}
