// A whole world for an engine: files in memory, a clock that ticks at each look and jumps when a
// task sleeps, and random numbers from a seed.

package import OndolEngine

package final class SimulatedWorld: Sendable {
  package let fileSystem: SimulatedFileSystem
  package let environment: Environment
  private let clock: Guarded<Int64>
  /// The clock for the time that servers have to answer, which moves only when a test says so.
  private let patience = StandingClock()

  /// - Parameters:
  ///   - clockStep: the microseconds between one look at the clock and the next.
  ///   - threads: `InlineWorkers` or a `SimulationExecutor`, which then runs background tasks as
  ///     well.
  package init(
    fileSystem: SimulatedFileSystem = SimulatedFileSystem(), seed: UInt64,
    startTime: Int64 = 1_000_000_000_000_000, clockStep: Int64 = 1_000,
    threads: any ThreadSource = InlineWorkers()
  ) {
    self.fileSystem = fileSystem
    let clock = Guarded(startTime)
    self.clock = clock
    let random = Guarded(SeededRandom(seed: seed))
    let executor = threads as? SimulationExecutor
    var environment = Environment(
      fileSystem: executor.map { InterleavingFileSystem(fileSystem, $0) } ?? fileSystem,
      now: {
        clock.withLock { time in
          time += clockStep
          return time
        }
      },
      sleep: { microseconds in
        if let executor {
          await executor.doze()
        } else if microseconds > Self.longestNap {
          return await Self.dozeUntilCancelled()
        }
        clock.withLock { $0 += microseconds }
      },
      random: { random.withLock { $0.next() } }, threads: threads, executor: executor)
    environment.vault = TestedEncryption.vault
    environment.timeOut = { [patience] in await patience.doze(microseconds: $0) }
    self.environment = environment
  }

  /// Lets a number of seconds pass.
  package func pass(seconds: Int64) {
    clock.withLock { $0 += seconds * 1_000_000 }
  }

  /// Lets a part of the servers' answer time pass.
  package func timeOut() { patience.turn(bySeconds: 86_400) }

  /// Without an executor that decides the order, real threads do, and a sleep that ended at once
  /// would let a day pass between two lines of a test: contents would be given up before their use.
  /// So only naps end, those of repeated looks.
  private static let longestNap: Int64 = 1_000_000

  private static func dozeUntilCancelled() async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    await withTaskCancellationHandler {
      for await _ in stream {}
    } onCancel: {
      continuation.finish()
    }
  }
}
