// Damage to files, each kind of file in turn: it is found, with its correct name.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Verifying files` {
  private let sample = SampleDatabase()

  // MARK: - Nothing is wrong

  @Test(arguments: VerificationDepth.allCases)
  func `A sound database has no findings, whether it is open, killed or closed`(
    depth: VerificationDepth
  ) async throws {
    let database = try await sample.open()
    #expect(try await database.verify(depth: depth) == [])
    try await sample.fill(database)
    try await sample.declareIndexes(database)
    #expect(try await database.verify(depth: depth) == [])
    #expect(try await sample.verify(depth) == [])
    try await database.engine.flush()
    try await sample.fill(database, from: 60, count: 20)
    #expect(try await sample.verify(depth) == [])
    try await database.compact()
    try await database.collection("items").drop()
    #expect(try await sample.verify(depth) == [])
    try await database.close()
    #expect(try await sample.verify(depth) == [])
    let error = await #expect(throws: DatabaseError.self) {
      try await database.verify(depth: depth)
    }
    #expect(error?.code == .failedPrecondition)
  }

  /// A merge that was done when the database was closed once left its files, which nothing named
  /// and only the next open removed.
  @Test(arguments: Seeds.first(60))
  func `A closed database has no file that counts for nothing`(seed: UInt64) async throws {
    try await sample.make()
    let files = try FileInspector(at: "db", environment: sample.environment)
    #expect(try files.leftFiles() == [], "seed \(seed)")
  }

  @Test func `It says how far it is`() async throws {
    try await sample.make()
    var last = VerificationProgress()
    let findings = try await Database.verify(
      at: "db", depth: .full, environment: sample.environment
    ) { last = $0 }
    #expect(findings == [])
    #expect(last.completedBytes == last.totalBytes)
    #expect(last.totalBytes > 0)
    let database = try await sample.open()
    let contents = try await database.contents()
    #expect(last.documents == contents.collections.reduce(0) { $0 + $1.documents })
    try await database.close()
  }

  @Test func `A database that is written meanwhile has no findings`() async throws {
    let database = try await sample.open()
    try await sample.declareIndexes(database)
    let (moments, writerIsHere) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    async let writing: Void = {
      defer { writerIsHere.finish() }
      for round in 0..<4 {
        writerIsHere.yield()
        try await sample.fill(database, from: 40 * round, count: 80)
        writerIsHere.yield()
        try await database.compact()
      }
    }()
    for await _ in moments { #expect(try await sample.verify() == []) }
    try await writing
    try await database.close()
  }

  @Test func `A missing database is reported`() async throws {
    let missing = await #expect(throws: DatabaseError.self) { try await sample.verify() }
    #expect(missing?.code == .notFound)
    _ = try sample.environment.fileSystem.openDirectory(at: "db", create: true)
    let empty = await #expect(throws: DatabaseError.self) { try await sample.verify() }
    #expect(empty?.code == .dataLoss)
    #expect(try sample.directory().list() == [])
  }

  @Test func `A cancelled check ends`() async throws {
    try await sample.make()
    let sample = sample
    let check = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await sample.verify()
    }
    check.cancel()
    let error = await #expect(throws: DatabaseError.self) { try await check.value }
    #expect(error?.code == .cancelled)
  }

  // MARK: - Flipped bits

  @Test(arguments: Seeds.first(8))
  func `A flipped bit in a data file is found, and the file is named`(seed: UInt64) async throws {
    try await sample.make()
    var random = SeededRandom(seed: seed)
    for (part, kinds) in [
      (".seg", Set<Finding.Kind>([.segment, .block, .order, .count, .pointer])),
      (".val", [.valueFile, .value, .count, .pointer]),
    ] {
      let names = try sample.files(part)
      try #require(!names.isEmpty, "the sample has no \(part)")
      let name = names[random.below(names.count)]
      let bytes = try sample.bytes(of: name)
      let offset = random.below(bytes.count)
      try sample.flip(name, at: offset, bit: random.below(8))
      let findings = try await sample.verify(.blocks)
      #expect(!findings.isEmpty, "seed \(seed): \(name) at \(offset)")
      #expect(
        findings.contains { $0.file == name && $0.severity == .error && kinds.contains($0.kind) },
        "seed \(seed): \(name) at \(offset): \(findings)")
      try sample.replace(name, with: bytes)
    }
    #expect(try await sample.verify() == [], "seed \(seed)")
  }

  @Test func `Several broken blocks are all found, with their places`() async throws {
    try await sample.make()
    let name = try #require(
      try sample.files(".seg").max { try sample.bytes(of: $0).count < sample.bytes(of: $1).count })
    for offset in [70, 2_000] { try sample.flip(name, at: offset) }
    let findings = try await sample.verify(.blocks).filter { $0.kind == .block }
    #expect(findings.count == 2)
    #expect(findings.allSatisfy { $0.file == name && $0.offset != nil && $0.hint != nil })
    #expect(findings[0].offset == 64)
  }

  @Test func `A broken copy of the superblock is a warning, four are an error`() async throws {
    try await sample.make()
    for (count, slot) in [0, 4_096, 65_536, 69_632].enumerated() {
      try sample.flip("SUPER", at: slot + 72)
      let findings = try await sample.verify(.structure).filter { $0.kind == .superblock }
      #expect(findings.contains { $0.offset == UInt64(slot) })
      #expect(findings.allSatisfy { $0.severity == (count < 3 ? .warning : .error) })
    }
  }

  @Test func `A broken manifest is an error`() async throws {
    try await sample.make()
    let name = try #require(try sample.files("MANIFEST-").first)
    for offset in [8, 64 + 60] {
      let bytes = try sample.bytes(of: name)
      try sample.flip(name, at: offset)
      let findings = try await sample.verify()
      #expect(findings.map(\.kind) == [.manifest], "at \(offset)")
      #expect(findings.first?.file == name)
      #expect(findings.first?.severity == .error)
      try sample.replace(name, with: bytes)
    }
  }

  @Test func `A broken copy of a log's header is a warning`() async throws {
    try await sample.make()
    let name = try #require(try sample.files("LOG-").first)
    try sample.flip(name, at: 2_048 + 16)
    let findings = try await sample.verify()
    #expect(findings.map(\.kind) == [.log])
    #expect(findings.first?.severity == .warning)
    #expect(findings.first?.offset == 2_048)
  }

  // MARK: - Logs of a database that was not closed

  @Test func `Damage to acknowledged commits is an error, remains of a torn one are not`()
    async throws
  {
    let world = SimulatedWorld(seed: 1)
    let writer = try await Database.open(at: "db", environment: world.environment)
    for number in 0..<10 { try await writer.document("items/i\(number)").setData(["n": 1]) }
    let fileSystem = world.fileSystem.kill()
    let left = SampleDatabase(SimulatedWorld(fileSystem: fileSystem, seed: 2).environment)
    #expect(try await left.verify() == [])
    let name = try #require(
      try left.files("LOG-").last { try left.bytes(of: $0).contains { $0 != 0 } })
    let bytes = try left.bytes(of: name)

    try left.flip(name, at: 4_096 + 60)
    let damaged = try await left.verify()
    #expect(damaged.map(\.kind) == [.log])
    #expect(damaged.first?.severity == .error)
    #expect(damaged.first?.file == name)
    #expect(damaged.first?.offset == 4_096)

    let end = (bytes.lastIndex { $0 != 0 } ?? 0) / 8 * 8 + 8
    var torn = bytes + [UInt8](repeating: 0, count: max(0, end + 64 - bytes.count))
    for offset in end..<(end + 40) { torn[offset] = 7 }
    try left.replace(name, with: torn)
    let remains = try await left.verify()
    #expect(remains.map(\.kind) == [.log])
    #expect(remains.first?.severity == .warning)
    #expect(remains.first?.offset == UInt64(end))
    #expect(remains.first?.message.hasPrefix("40 bytes") == true)
  }

  /// Recovery needs no such log, so only a follower of the database would have met it.
  @Test func `Damage to commits in the kept history is found`() async throws {
    let options = Database.Options(changeRetention: .init(duration: nil, bytes: nil))
    let database = try await Database.open(
      at: "db", options: options, environment: sample.environment,
      engineOptions: SampleDatabase.engineOptions)
    for round in 0..<3 {
      try await sample.fill(database, from: 200 * round, count: 200)
      try await database.engine.flush()
    }
    try await database.close()
    #expect(try await sample.verify() == [])
    let logs = try sample.files("LOG-").sorted {
      $0.count == $1.count ? $0 < $1 : $0.count < $1.count
    }
    try #require(logs.count > 2)
    for name in [logs[0], logs[1]] {
      let bytes = try sample.bytes(of: name)
      try sample.flip(name, at: 4_096 + 60)
      for depth in VerificationDepth.allCases {
        let findings = try await sample.verify(depth)
        #expect(findings.map(\.kind) == [.log])
        #expect(findings.first?.file == name)
        #expect(findings.first?.severity == .error)
      }
      try sample.directory().remove(name)
      #expect(try await sample.verify(.structure).map(\.kind) == [.log])
      try sample.directory().create(name).write(bytes.bytes, at: 0)
    }
    #expect(try await sample.verify() == [])
  }

  // MARK: - Missing and short files

  @Test func `A missing file is named`() async throws {
    for (part, kind) in [
      (".seg", Finding.Kind.segment), (".val", .valueFile), ("LOG-", .log),
      ("MANIFEST-", .manifest), ("SUPER", .superblock),
    ] {
      let sample = SampleDatabase()
      try await sample.make()
      let name = try #require(try sample.files(part).first)
      try sample.directory().remove(name)
      for depth in VerificationDepth.allCases {
        let findings = try await sample.verify(depth)
        #expect(findings.contains { $0.kind == kind && $0.file == name && $0.severity == .error })
        #expect(findings.allSatisfy { $0.file == name }, "\(findings)")
      }
    }
  }

  @Test func `A file that was cut short is named`() async throws {
    for (part, kind) in [
      (".seg", Finding.Kind.segment), (".val", .valueFile), ("LOG-", .log),
      ("MANIFEST-", .manifest), ("SUPER", .superblock),
    ] {
      let sample = SampleDatabase()
      try await sample.make()
      let name = try #require(try sample.files(part).first)
      let bytes = try sample.bytes(of: name)
      // A manifest that is cut between two edits is an older one, which names files that are gone.
      // Up to seven zeros fill an edit up, so one of two cuts eight bytes apart is inside an edit.
      var isNamed = false
      for length in [bytes.count / 2, bytes.count / 2 - 8] {
        try sample.replace(name, with: Array(bytes.prefix(length)))
        let findings = try await sample.verify()
        isNamed = findings.contains { $0.kind == kind && $0.file == name }
        #expect(isNamed || kind == .manifest && !findings.isEmpty, "\(name): \(findings)")
        if isNamed { break }
      }
      #expect(isNamed, "\(name)")
    }
  }
}
