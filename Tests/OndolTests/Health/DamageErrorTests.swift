// The errors that an app gets for damage: the file and the place. SimulationTests' `Damaged files`
// checks that no answer is wrong, and `Verifying files` that checks find it.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Damage to a file` {
  private static func expect(
    _ error: DatabaseError, names file: String, _ place: String
  ) {
    #expect(error.code == .dataLoss, "\(place): \(error)")
    #expect(error.path == file, "\(place): \(error)")
    #expect(error.message.contains(" byte "), "\(place): \(error)")
  }

  /// Reads all documents, by their keys and by their indexes.
  private static func readAll(_ database: Database) async throws {
    let items = database.collection("items")
    _ = try await items.getDocuments()
    _ = try await database.collectionGroup("notes").getDocuments()
    _ = try await items.whereField("n", isGreaterThan: 0).getDocuments()
    _ = try await items.whereField("tags", arrayContains: "t1").getDocuments()
  }

  /// Whatever bit is flipped, a read that notices it names the file and the place. Bytes that no
  /// read here needs are skipped. The end of the list of files may be taken for an unfinished edit.
  /// Then the error names the missing log that the edit had removed.
  @Test(arguments: [(".seg", 8), (".val", 4), ("MANIFEST-", 20)])
  func `is an error with its name and the place in it`(part: String, places: Int) async throws {
    let sample = SampleDatabase()
    try await sample.make()
    var told = 0
    for name in try sample.files(part) {
      let bytes = try sample.bytes(of: name)
      for offset in stride(from: 0, to: bytes.count, by: max(1, bytes.count / places)) {
        try sample.flip(name, at: offset)
        var opened: Database?
        do {
          let database = try await Database.open(
            at: "db", options: .init(access: .readOnly), environment: sample.environment,
            engineOptions: SampleDatabase.engineOptions)
          opened = database
          try await Self.readAll(database)
        } catch let error as DatabaseError {
          let place = "bit of byte \(offset) of \(name)"
          if part == "MANIFEST-", offset > bytes.count * 9 / 10, error.path != name {
            #expect(error.code == .dataLoss, "\(place): \(error)")
            #expect(error.message.contains("the log is missing"), "\(place): \(error)")
          } else {
            Self.expect(error, names: name, place)
          }
          told += 1
        }
        try await opened?.close()
        try sample.replace(name, with: bytes)
      }
    }
    #expect(told >= places / 2, "\(told)")
  }

  @Test func `that takes all of it away is one with its name`() async throws {
    let sample = SampleDatabase()
    try await sample.make()
    for name in try sample.files(".seg").prefix(4) + sample.files(".val").prefix(2) {
      let bytes = try sample.bytes(of: name)
      try sample.directory().remove(name)
      var opened: Database?
      let error = await #expect(throws: DatabaseError.self) {
        let database = try await Database.open(
          at: "db", options: .init(access: .readOnly), environment: sample.environment,
          engineOptions: SampleDatabase.engineOptions)
        opened = database
        try await Self.readAll(database)
      }
      #expect(error?.code == .notFound && error?.path == name, "\(String(describing: error))")
      try await opened?.close()
      try sample.directory().create(name).write(bytes.bytes, at: 0)
    }
  }

  @Test func `is also reported for a log`() async throws {
    let world = SimulatedWorld(seed: 1)
    let writer = try await Database.open(at: "db", environment: world.environment)
    for number in 0..<10 { try await writer.document("items/i\(number)").setData(["n": number]) }
    let left = SampleDatabase(
      SimulatedWorld(fileSystem: world.fileSystem.kill(), seed: 2).environment)
    let name = try #require(
      try left.files("LOG-").last { try left.bytes(of: $0).contains { $0 != 0 } })
    try left.flip(name, at: 4_096 + 60)
    let error = await #expect(throws: DatabaseError.self) { try await left.open() }
    Self.expect(try #require(error), names: name, "a frame of \(name)")
    try? await writer.close()
  }
}
