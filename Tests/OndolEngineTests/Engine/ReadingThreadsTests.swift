// Waiting on the threads for cold reads. There was once one thread, on which whole queries ran one
// after another. A get that missed the cache waited for a scan's end, and nothing could stop a scan
// whose task was cancelled.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `Threads for cold reads` {
  /// A read of a number of steps, each of which takes one.
  private static func read(
    _ steps: Int, on threads: ReadingThreads, canBeCancelled: Bool = false,
    _ note: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws(EngineError) -> Int {
    try await threads.perform { (turn) throws(EngineError) in
      for step in 0..<steps {
        note(step)
        try turn.step(canBeCancelled: canBeCancelled)
      }
      return steps
    }
  }

  /// More steps than any read here takes unless it waits for something that never comes.
  private static let never = 20_000_000

  @Test func `A short read is done while more long ones than threads go on`() async throws {
    let threads = ReadingThreads(IOThreads())
    let asked = Tally()
    let done = Tally()
    let endless = Tally()
    try await withThrowingTaskGroup { group in
      for _ in 0..<3 * ReadingThreads.count {
        group.addTask {
          // Each continues until the short read is done.
          try await threads.perform { (turn) throws(EngineError) in
            var steps = 0
            while done.value == 0, steps < Self.never {
              steps += asked.value
              try turn.step(canBeCancelled: false)
            }
            if steps == Self.never { endless.increase() }
          }
        }
      }
      group.addTask {
        asked.increase()
        _ = try await Self.read(3, on: threads) { step in if step == 2 { done.increase() } }
      }
      try await group.waitForAll()
    }
    #expect(endless.value == 0)
    await threads.stop()
  }

  @Test func `A long read is done while short ones keep coming`() async throws {
    let threads = ReadingThreads(IOThreads())
    let done = Tally()
    let shorts = Tally()
    try await withThrowingTaskGroup { group in
      for _ in 0..<2 * ReadingThreads.count {
        group.addTask {
          while done.value == 0, shorts.value < Self.never {
            _ = try await Self.read(2, on: threads)
            shorts.increase()
          }
        }
      }
      for _ in 0..<2 {
        group.addTask { _ = try await Self.read(4_000, on: threads) }
      }
      group.addTask {
        _ = try await Self.read(4_000, on: threads) { if $0 == 3_999 { done.increase() } }
      }
      try await group.waitForAll()
    }
    #expect(shorts.value < Self.never)
    await threads.stop()
  }

  @Test func `Reads that are given up for others are done in the end, at thrice the cost at most`()
    async throws
  {
    let steps = 20_000
    let threads = ReadingThreads(IOThreads())
    let taken = Tally()
    let readers = 4 * ReadingThreads.count
    try await withThrowingTaskGroup { group in
      for _ in 0..<readers {
        group.addTask {
          let done = try await Self.read(steps, on: threads) { _ in taken.increase() }
          #expect(done == steps)
        }
      }
      try await group.waitForAll()
    }
    #expect(taken.value >= readers * steps)
    #expect(taken.value <= 3 * readers * steps)
    await threads.stop()
  }

  @Test func `A read ends at the step at which its task is cancelled, whichever that is`() throws {
    for last in 0..<60 {
      try SimulationExecutor.run(seed: UInt64(last)) { executor in
        let threads = ReadingThreads(executor)
        let taken = Tally()
        let task = Guarded<Task<Int, any Error>?>(nil)
        let reading = Task(executorPreference: executor) {
          try await Self.read(1_000, on: threads, canBeCancelled: true) { step in
            taken.set(step + 1)
            if step == last { task.withLock { $0?.cancel() } }
          }
        }
        task.withLock { $0 = reading }
        await #expect(throws: EngineError.cancelled) { try await reading.value }
        #expect(taken.value == last + 1)
        await threads.stop()
      }
    }
  }

  @Test func `A read that others wait for does not end with its task`() async throws {
    let threads = ReadingThreads(IOThreads())
    let reading = Task { try await Self.read(1_000, on: threads) }
    reading.cancel()
    #expect(try await reading.value == 1_000)
    await threads.stop()
  }

  @Test func `Several reads wait for the device at once`() async throws {
    let threads = ReadingThreads(IOThreads())
    let inside = Guarded((now: 0, most: 0))
    await withTaskGroup { group in
      for _ in 0..<ReadingThreads.count {
        group.addTask {
          await threads.perform { _ in
            inside.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            // Until all have arrived: one after another, the first would wait forever.
            while inside.withLock({ $0.most }) < ReadingThreads.count {}
            inside.withLock { $0.now -= 1 }
          }
        }
      }
    }
    #expect(inside.withLock { $0.most } == ReadingThreads.count)
    await threads.stop()
  }

  @Test func `Stopping waits for every read, and reads are possible afterwards`() async throws {
    let threads = ReadingThreads(IOThreads())
    let done = Tally()
    await withTaskGroup { group in
      for _ in 0..<100 {
        group.addTask {
          _ = try? await Self.read(100, on: threads)
          done.increase()
        }
      }
      await group.waitForAll()
      await threads.stop()
    }
    #expect(done.value == 100)
    #expect(try await Self.read(3, on: threads) == 3)
    await threads.stop()
  }
}
