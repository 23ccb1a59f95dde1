// The system calls of an open. It is part of every launch of an app, so no file is opened twice
// within a moment. The savings must not harm a database that is damaged in one place.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct OpeningTests {
  @Test func `A database that was closed in good order has each of its files opened once`()
    async throws
  {
    let files = CountingFileSystem()
    var environment = Environment.memory()
    environment.fileSystem = files
    let engine = try await Engine.open(at: "db", environment: environment)
    try await engine.put([rowKey("first"): [1]], durability: .power)
    try await engine.close()

    files.opened.withLock { $0 = [:] }
    let again = try await Engine.open(at: "db", environment: environment)
    let opened = files.opened.withLock { $0 }
    #expect(opened.keys.sorted().map { $0.prefix(3) } == ["LOG", "MAN", "SUP"], "\(opened)")
    #expect(opened.values.allSatisfy { $0 == 1 }, "\(opened)")
    #expect(try again.rows().map { $0.value } == [[1]])
    try await again.close()
  }

  /// Every set of unreadable slots, with two epochs in the file: the newest readable one is used,
  /// whatever its neighbour's state.
  @Test func `A superblock is read as long as one of its slots can be`() throws {
    let file = try MemoryDirectory().create(Superblock.name)
    for epoch: UInt64 in [4, 5] {
      let superblock = Superblock(
        identity: testIdentity, epoch: epoch, manifest: FileNumber(rawValue: epoch),
        shardCount: 1, created: 0, written: 0)
      try superblock.write(to: file)
    }
    for set in 0..<16 {
      let unreadable = (0..<4).filter { set >> $0 & 1 == 1 }
      let holed = HoledFile(base: file, holes: unreadable.map { Superblock.slotOffsets[$0] })
      let left = Set(0..<4).subtracting(unreadable)
      if left.isEmpty {
        #expect(throws: EngineError.self) { try Superblock.read(from: holed) }
      } else {
        let epoch: UInt64 = left.contains(1) || left.contains(3) ? 5 : 4
        #expect(try Superblock.read(from: holed).epoch == epoch, "without \(unreadable)")
      }
    }
  }
}

/// A file whose slots are unreadable in some places.
private final class HoledFile: ForwardingFile {
  let base: any File
  private let holes: [UInt64]

  init(base: any File, holes: [UInt64]) {
    self.base = base
    self.holes = holes
  }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    for hole in holes where offset < hole + 4096 && hole < offset + UInt64(count) {
      throw .io(operation: "pread", file: name, offset: hole, errno: 5)
    }
    return try base.read(at: offset, count: count)
  }
}

/// Files in memory that count how often each is opened.
private final class CountingFileSystem: FileSystem {
  let opened = Guarded<[String: Int]>([:])
  private let base = MemoryFileSystem()

  func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory {
    CountingDirectory(try base.openDirectory(at: path, create: create), self)
  }
}

private final class CountingDirectory: ForwardingDirectory {
  let base: any Directory
  private let files: CountingFileSystem

  init(_ base: any Directory, _ files: CountingFileSystem) {
    self.base = base
    self.files = files
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    files.opened.withLock { $0[name, default: 0] += 1 }
    return try base.open(name, access: access)
  }
}
