// Logs whose first page is lost, with both copies of the header: what can be read of them, what is
// said to be damage, and what becomes of the rest.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct HeadlessLogTests {
  /// A database that was killed behind so many commits in its newest log.
  private struct Killed {
    let world: SimulatedWorld
    let directory: any Directory
    let manifest: Manifest

    static func make(commits: Int) async throws -> Killed {
      let first = SimulatedWorld(seed: 3)
      let engine = try await Engine.open(at: "/db", environment: first.environment)
      for number in 0..<commits {
        try await engine.put([rowKey("\(number)"): [1]], durability: .power)
      }
      let world = SimulatedWorld(fileSystem: first.fileSystem.kill(), seed: 4)
      let directory = try world.environment.fileSystem.openDirectory(at: "/db", create: false)
      let slots = try directory.open(Superblock.name, access: .readOnly)
      let manifest = try Manifest.load(
        try Superblock.read(from: slots), directory: directory, environment: world.environment,
        rotationSize: 1 << 20)
      return Killed(world: world, directory: directory, manifest: manifest)
    }

    /// The newest log that was used.
    func log() throws -> any File {
      var names: [String] = []
      let numbers = try directory.list().compactMap { FileNumber.parse($0, prefix: "LOG-") }
      for number in numbers.sorted() {
        let file = try directory.open(number.logName, access: .readOnly)
        let bytes = try file.read(at: 0, count: 64 << 10)
        if bytes.contains(where: { $0 != 0 }) { names.append(number.logName) }
      }
      return try directory.open(try #require(names.last), access: .readWrite)
    }

    func lose(pages: Int) throws {
      let log = try log()
      let length = min(pages * 4096, Int(try log.size()))
      try log.write([UInt8](repeating: 0xa5, count: length).bytes, at: 0)
    }

    func recover(naming: Bool) throws -> Recovery {
      var state = manifest.state
      if !naming { state.namedLogs = [:] }
      var recovery = Recovery(
        directory: directory, identity: manifest.superblock.identity, manifest: state,
        memtableSize: 1 << 20)
      try recovery.replay(try directory.list())
      return recovery
    }
  }

  @Test func `A named log is read without its header`() async throws {
    let killed = try await Killed.make(commits: 30)
    try killed.lose(pages: 1)
    let recovery = try killed.recover(naming: true)
    #expect(recovery.commits.count == 30)
    #expect(recovery.headless.count == 1 && recovery.unread.isEmpty && !recovery.isClean)
    let engine = try await Engine.open(at: "/db", environment: killed.world.environment)
    #expect(try engine.rows().count == 30)
    try await engine.close()
    let again = try await Engine.open(at: "/db", environment: killed.world.environment)
    #expect(try again.rows().count == 30)
    try await again.close()
  }

  // As an older version left it: the frames cannot be told from those of another file, but they do
  // tell that more was acknowledged.
  @Test func `A log that nobody named is said to be damaged, and not taken for unused`()
    async throws
  {
    let killed = try await Killed.make(commits: 30)
    try killed.lose(pages: 1)
    let error = #expect(throws: EngineError.self) { _ = try killed.recover(naming: false) }
    guard case .corrupt? = error else {
      Issue.record("\(error.map { "\($0)" } ?? "nothing") is not about damage")
      return
    }
  }

  @Test func `A log of which nothing can be read, and for which nothing vouches, is set aside`()
    async throws
  {
    let killed = try await Killed.make(commits: 1)
    let log = try killed.log()
    try killed.lose(pages: 2)
    let bytes = try log.read(at: 0, count: 1 << 20)
    let engine = try await Engine.open(at: "/db", environment: killed.world.environment)
    #expect(try engine.rows().isEmpty)
    try await engine.put([rowKey("a"): [1]], durability: .power)
    try await engine.close()
    let aside = try killed.directory.open(log.name + ".unread", access: .readOnly)
    #expect(try aside.read(at: 0, count: 1 << 20) == bytes)
    #expect(try !killed.directory.list().contains(log.name))
    let again = try await Engine.open(at: "/db", environment: killed.world.environment)
    #expect(try again.rows().count == 1)
    try await again.close()
  }

  @Test func `The mark vouches for frames that have none behind them`() async throws {
    let killed = try await Killed.make(commits: 3)
    let log = try killed.log()
    try log.write([UInt8](repeating: 0, count: 4096).bytes, at: 4096)
    let error = #expect(throws: EngineError.self) { _ = try killed.recover(naming: true) }
    guard case .corrupt(let file, let offset, _)? = error else {
      Issue.record("\(error.map { "\($0)" } ?? "nothing") is not about damage")
      return
    }
    #expect(file == log.name && offset == 4096)
  }
}
