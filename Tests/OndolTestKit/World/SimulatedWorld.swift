// A whole world for an engine: files in memory, a clock that ticks when it is looked at and jumps
// when somebody sleeps, chance from a seed.

package import OndolEngine

package final class SimulatedWorld: Sendable {
  package let fileSystem: SimulatedFileSystem
  package let environment: Environment

  /// - Parameters:
  ///   - clockStep: microseconds that pass from one look at the clock to the next.
  ///   - threads: `InlineWorkers` or a `SimulationExecutor`, which then runs background tasks too.
  package init(
    fileSystem: SimulatedFileSystem = SimulatedFileSystem(), seed: UInt64,
    startTime: Int64 = 1_000_000_000_000_000, clockStep: Int64 = 1_000,
    threads: any ThreadSource = InlineWorkers()
  ) {
    self.fileSystem = fileSystem
    let clock = Guarded(startTime)
    let random = Guarded(SeededRandom(seed: seed))
    let executor = threads as? SimulationExecutor
    environment = Environment(
      fileSystem: executor.map { InterleavingFileSystem(fileSystem, $0) } ?? fileSystem,
      now: {
        clock.withLock { time in
          time += clockStep
          return time
        }
      },
      sleep: { microseconds in
        await executor?.doze()
        clock.withLock { $0 += microseconds }
      },
      random: { random.withLock { $0.next() } }, threads: threads, executor: executor)
  }
}
