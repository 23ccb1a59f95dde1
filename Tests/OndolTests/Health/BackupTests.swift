// Copies of a database during writes: each is some moment of it, whole and sound, or there is none.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `A backup` {
  private let sample = SampleDatabase()

  private func open(_ path: String) async throws -> Database {
    try await Database.open(
      at: path, environment: sample.environment, engineOptions: SampleDatabase.engineOptions)
  }

  private func backup(_ database: Database, to path: String) async throws {
    try await database.backup(to: path, in: sample.environment.fileSystem)
  }

  /// Everything in the sample's collections, except for the field that a schema adds in the
  /// background.
  private func contents(_ database: Database) async throws -> [String: [String: Value]] {
    var all: [String: [String: Value]] = [:]
    for group in ["items", "notes"] {
      for document in try await database.collectionGroup(group).getDocuments().documents {
        var fields = document.data()
        fields["schema"] = nil
        all[document.reference.path] = fields
      }
    }
    return all
  }

  // MARK: - Contents

  @Test func `It has all data, from files and from memory, with its indexes`() async throws {
    let database = try await sample.open()
    try await sample.fill(database)
    try await sample.declareIndexes(database)
    try await database.engine.flush()
    try await sample.fill(database, from: 100, count: 60)
    let before = try await contents(database)
    var last = BackupProgress(completedBytes: 0, totalBytes: 0)
    try await database.backup(to: "copy", in: sample.environment.fileSystem) { last = $0 }
    #expect(last.fraction == 1)
    #expect(last.totalBytes > 0)
    try await sample.fill(database, from: 200, count: 20)

    #expect(
      try await Database.verify(at: "copy", depth: .full, environment: sample.environment) == [])
    let copy = try await open("copy")
    #expect(try await contents(copy) == before)
    let indexes = try await database.collection("items").listIndexes().map(\.name)
    #expect(try await copy.collection("items").listIndexes().map(\.name) == indexes)
    // Both continue independently.
    let newest = try await copy.document("items/new").setData(["n": 1])
    let older = try await copy.document("items/i7").getDocument().updateTime
    #expect(try newest.commitTime > #require(older))
    #expect(try await !database.document("items/new").getDocument().exists)
    try await copy.compact()
    #expect(try await copy.verify() == [])
    try await copy.close()
    try await database.close()
  }

  @Test func `An empty database has one, and so has one after a drop`() async throws {
    let database = try await sample.open()
    try await backup(database, to: "empty")
    try await sample.fill(database)
    try await database.collection("items").drop()
    try await backup(database, to: "dropped")
    for path in ["empty", "dropped"] {
      let copy = try await open(path)
      #expect(try await contents(copy).isEmpty)
      #expect(try await copy.verify() == [])
      try await sample.fill(copy, count: 20)
      #expect(try await copy.verify() == [])
      try await copy.close()
    }
    try await database.close()
  }

  @Test func `Backups while money moves show no moment at which some is missing`() async throws {
    let database = try await sample.open()
    let accounts = database.collection("accounts")
    try await accounts.createIndex(on: ["-balance"])
    for number in 0..<20 {
      try await accounts.document("\(number)").setData([
        "balance": Value.integer(100), "text": .string(String(repeating: "x", count: 700)),
      ])
    }
    let isDone = Guarded(false)
    async let moving: Void = {
      var random = SeededRandom(seed: 7)
      while !isDone.withLock({ $0 }) {
        let (from, to) = (random.below(20), random.below(20))
        let amount = random.below(30)
        try await database.batch()
          .updateData(
            ["balance": FieldValue.increment(-amount)], forDocument: accounts.document("\(from)")
          )
          .updateData(
            ["balance": FieldValue.increment(amount)], forDocument: accounts.document("\(to)")
          )
          .commit(durability: .process)
      }
    }()
    for round in 0..<6 {
      try await backup(database, to: "copy \(round)")
      if round % 2 == 0 { try await database.compact() }
    }
    isDone.withLock { $0 = true }
    try await moving
    for round in 0..<6 {
      let copy = try await open("copy \(round)")
      let documents = try await copy.collection("accounts").getDocuments().documents
      let balances = documents.compactMap { $0.data()["balance"]?.integer }
      #expect(balances.count == 20)
      #expect(balances.reduce(0, +) == 2000, "copy \(round)")
      #expect(try await copy.verify() == [], "copy \(round)")
      try await copy.close()
    }
    try await database.close()
  }

  @Test func `A reader makes the same, beside the writer`() async throws {
    let database = try await sample.open()
    try await sample.fill(database)
    let reader = try await Database.open(
      at: "db", options: Database.Options(access: .readOnly), environment: sample.environment)
    try await sample.fill(database, from: 120, count: 30)
    try await database.compact()
    try await reader.refresh()
    let before = try await contents(reader)
    try await sample.fill(database, from: 160, count: 30)
    try await database.compact()
    try await backup(reader, to: "copy")
    let copy = try await open("copy")
    #expect(try await contents(copy) == before)
    #expect(try await copy.verify() == [])
    try await copy.close()
    try await reader.close()
    try await database.close()
  }

  // MARK: - Through a pipe

  @Test(.disabled(if: TestedEncryption.isOn))
  func `The stream is an archive that tar unpacks into a database`() async throws {
    let database = try await sample.open()
    try await sample.fill(database)
    try await sample.declareIndexes(database)
    var archive: [UInt8] = []
    try await database.backup(into: { archive += $0 })
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("ondol-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let file = directory.appendingPathComponent("backup.tar")
    try Data(archive).write(to: file)
    let tar = Process()
    tar.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    tar.arguments = ["tar", "xf", file.path, "-C", directory.path]
    try tar.run()
    tar.waitUntilExit()
    #expect(tar.terminationStatus == 0)
    let path = directory.appendingPathComponent("backup.ondol").path
    #expect(try await Database.verify(at: path) == [])
    let copy = try await Database.open(at: path)
    #expect(try await contents(copy) == contents(database))
    try await copy.close()

    // The other direction works the same, and a database in memory is copied to disk.
    let other = directory.appendingPathComponent("other.ondol").path
    try await database.backup(to: other)
    #expect(try await Database.verify(at: other) == [])
    try await database.close()
  }

  @Test func `An error of its receiver ends it`() async throws {
    struct Full: Error {}
    let database = try await sample.open()
    try await sample.fill(database, count: 20)
    var pieces = 0
    await #expect(throws: Full.self) {
      try await database.backup(into: { _ in
        pieces += 1
        if pieces == 3 { throw Full() }
      })
    }
    #expect(pieces == 3)
    try await database.close()
  }

  // MARK: - Refusals

  @Test func `It refuses a directory that is not empty`() async throws {
    let database = try await sample.open()
    try await database.document("items/a").setData(["n": 1])
    for path in ["db", "full"] {
      let directory = try sample.environment.fileSystem.openDirectory(at: path, create: true)
      if path == "full" { _ = try directory.create("notes.txt") }
      let names = try directory.list().sorted()
      let error = await #expect(throws: DatabaseError.self) {
        try await backup(database, to: path)
      }
      #expect(error?.code == .alreadyExists)
      #expect(try directory.list().sorted() == names)
    }
    let error = await #expect(throws: DatabaseError.self) {
      try await database.backup(to: "/nowhere/at/all", in: DiskFileSystem())
    }
    #expect(error?.code == .notFound)
    try await database.close()
    let closed = await #expect(throws: DatabaseError.self) {
      try await backup(database, to: "late")
    }
    #expect(closed?.code == .failedPrecondition)
  }

  @Test func `A cancelled one leaves nothing`() async throws {
    let database = try await sample.open()
    try await sample.fill(database)
    try await database.engine.flush()
    let fileSystem = sample.environment.fileSystem
    let running = Guarded<Task<Void, any Error>?>(nil)
    let task = Task {
      while running.withLock({ $0 == nil }) { await Task.yield() }
      try await database.backup(to: "copy", in: fileSystem) { _ in
        running.withLock { $0?.cancel() }
      }
    }
    running.withLock { $0 = task }
    let error = await #expect(throws: DatabaseError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    #expect(try fileSystem.openDirectory(at: "copy", create: false).list() == [])
    try await database.close()
  }

  @Test(arguments: [".seg", ".val"])
  func `Damage is not copied`(part: String) async throws {
    try await sample.make()
    // The largest one has documents. What the opening reads itself is in small ones.
    let sizes = try sample.files(part).map { ($0, try sample.bytes(of: $0).count) }
    let (name, size) = try #require(sizes.max { $0.1 < $1.1 })
    try sample.flip(name, at: size / 2)
    let database = try await sample.open()
    let error = await #expect(throws: DatabaseError.self) {
      try await backup(database, to: "copy")
    }
    #expect(error?.code == .dataLoss)
    #expect(error?.path == name)
    let copy = try sample.environment.fileSystem.openDirectory(at: "copy", create: false)
    #expect(try copy.list() == [])
    try await database.close()
  }

  @Test(arguments: Seeds.first(4))
  func `After any power cut it is whole or not a database`(seed: UInt64) async throws {
    let fileSystem = SimulatedFileSystem()
    let world = SimulatedWorld(fileSystem: fileSystem, seed: seed)
    let sample = SampleDatabase(world.environment)
    let database = try await sample.open()
    try await sample.fill(database, count: 60)
    let before = try await contents(database)
    fileSystem.keepPictures()
    try await database.backup(to: "copy", in: fileSystem)
    fileSystem.note(1)
    try await database.document("items/late").setData(["n": 1])
    let pictures = fileSystem.takePictures()
    try await database.close()

    var random = SeededRandom(seed: seed)
    var whole = 0
    for picture in pictures {
      let storage = picture.storage.afterPowerCut(seed: random.next())
      let later = SimulatedWorld(fileSystem: SimulatedFileSystem(storage: storage), seed: seed)
      let copy: Database
      do {
        copy = try await Database.open(
          at: "copy", options: Database.Options(access: .readOnly),
          environment: later.environment)
      } catch {
        #expect(picture.note == 0, "SEED=\(seed): \(picture.operation): \(error)")
        continue
      }
      whole += 1
      #expect(try await contents(copy) == before, "SEED=\(seed): \(picture.operation)")
      try await copy.close()
      let findings = try await Database.verify(
        at: "copy", depth: .full, environment: later.environment)
      // One copy of the superblock may be torn.
      let errors = findings.filter { $0.severity == .error }
      #expect(errors == [], "SEED=\(seed): \(picture.operation)")
    }
    #expect(whole > 0 && whole < pictures.count, "SEED=\(seed)")
  }
}
