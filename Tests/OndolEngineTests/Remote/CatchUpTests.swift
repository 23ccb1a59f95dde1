// How a process makes the commits of others visible while they never pause.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `A process that catches up with others` {
  /// It asked until there was nothing new. As long as others committed as fast as it asked, it
  /// neither caught up nor sent its own commits.
  @Test func `Ends with what there was when it began`() async throws {
    let world = SimulatedWorld(seed: 1)
    let store = SimulatedStore(seed: 1, environment: world.environment)
    let engine = try await Engine.open(on: store, environment: world.environment)
    let left = Guarded(300)
    store.beforeNews {
      let number = left.withLock { left in
        left = max(0, left - 1)
        return left
      }
      guard number > 0 else { return }
      var group = RemoteGroup(origin: 1, part: Int64(number), known: store.head)
      group.commits = [[RemoteWrite(key: [0, 1, 0, 0, UInt8(number % 200)], value: [0, 1])]]
      let answer = try? await store.append(group)
      guard case .done? = answer else {
        Issue.record("\(String(describing: answer))")
        return
      }
    }
    _ = try await engine.refresh()
    var batch = Batch()
    batch.put([0, 1, 0, 0, 255].bytes, [1].bytes)
    _ = try await engine.commit(batch, durability: .power)
    #expect(left.withLock { $0 } > 250)
    #expect(try await engine.snapshot().get([0, 1, 0, 0, 255]) != nil)
    try await engine.close()
  }
}
