// A failed sync of the database's directory ends writing, whichever operation requested it.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct SyncedDirectoryTests {
  // A pack whose name could not be made durable was once created again later, and flushes continued
  // with a directory that the system might have dropped.
  @Test func `A failed sync of names for a content ends all writing`() async throws {
    let fileSystem = SimulatedFileSystem()
    let world = SimulatedWorld(fileSystem: fileSystem, seed: 1)
    let engine = try await Engine.open(at: "/db", environment: world.environment)
    try await engine.put([rowKey("a"): [1]], durability: .power)
    fileSystem.inject([Fault(failing: [.syncDirectory], errno: 5)])
    await #expect(throws: EngineError.self) {
      _ = try await engine.contents.append(
        [UInt8](repeating: 1, count: 50_000), digest: [UInt8](repeating: 1, count: 32))
    }
    fileSystem.inject([])
    let commit = await #expect(throws: EngineError.self) {
      try await engine.put([rowKey("b"): [1]], durability: .power)
    }
    let flush = await #expect(throws: EngineError.self) { try await engine.flush() }
    for error in [commit, flush] {
      guard case .poisoned? = error else {
        Issue.record("\(error.map { "\($0)" } ?? "nothing") does not say that writing ended")
        continue
      }
    }
    #expect(try await engine.snapshot().get(rowKey("a")) == [1])
    try? await engine.close()
    let again = try await Engine.open(at: "/db", environment: world.environment)
    try await again.put([rowKey("b"): [1]], durability: .power)
    try await again.close()
  }
}
