// How commits come together for one sync. Those with `.power` that are placed while a sync is under
// way leave their frames to the next one, which writes them all at once. And before that begins,
// the log's thread gives those whom the last one satisfied a moment to commit again: else writers
// fall into two camps that wait for each other's syncs, and each sync covers half of what it could.

extension Sequencer {
  /// Bytes of a commit from which its committer writes it: longer ones had better not be copied
  /// where others wait.
  private static let longFrame = 64 << 10

  /// Whether a write may wait for others, `length` bytes in all: nobody waits for a `.memory`
  /// commit's, and those that come while a sync is under way go into one write with one sync.
  func mayPutOff(
    _ write: borrowing PendingWrite, _ state: borrowing State, _ durability: Durability,
    length: UInt64
  ) -> Bool {
    guard length < options.deferredBytes else { return false }
    return durability == .memory
      || durability == .power && state.isSyncing && write.frame.count < Self.longFrame
  }

  /// Microseconds of a pause; systems make about twice as many of it.
  private static let pause: Int64 = 50
  /// Pauses are made only where a sync takes so many times as long.
  private static let leastSyncs: Int64 = 10
  /// And take no more than this part of one, all together.
  private static let largestShare: Int64 = 4

  /// Waits on the log's thread while commits come, until all are there that are awaited.
  func gather() {
    var (present, longest) = state.withLock { state in
      (
        state.gathered < state.awaited ? state.gathered : nil,
        state.syncDuration < Self.leastSyncs * Self.pause
          ? 0 : state.syncDuration / Self.largestShare
      )
    }
    let start = environment.now()
    while let before = present, environment.now() &- start < longest {
      syncWorker.pause(microseconds: Self.pause)
      present = state.withLock { state in
        let isWorthIt = state.gathered > before && state.gathered < state.awaited
        return isWorthIt ? state.gathered : nil
      }
    }
  }

  /// Notes how long a sync took, by which the next one's patience is measured.
  func noteSync(duration: Int64) {
    state.withLock { $0.syncDuration = max(0, duration) }
  }
}
