// Counts upkeep work and write stalls since the database was opened.

internal import Synchronization

/// Sums since the database was opened.
package struct UpkeepTotals: Sendable, Equatable {
  package var flushes = 0
  package var flushedBytes: UInt64 = 0
  package var compactions = 0
  /// Segments that changed their level without being read.
  package var movedSegments = 0
  package var compactionBytesRead: UInt64 = 0
  package var compactionBytesWritten: UInt64 = 0
  /// Commits that were delayed because upkeep fell behind, and the total delay in microseconds.
  package var delays = 0
  package var delayMicroseconds: Int64 = 0
  /// Commits that found every memtable full.
  package var stops = 0
}

/// The totals, shared between threads.
final class UpkeepCounters: Sendable {
  private let totals = Guarded(UpkeepTotals())

  var current: UpkeepTotals { totals.withLock { $0 } }

  func noteFlush(_ outputs: [SegmentMetadata]) {
    totals.withLock { totals in
      totals.flushes += 1
      totals.flushedBytes += outputs.reduce(0) { $0 + $1.sizeBytes }
    }
  }

  func note(_ plan: CompactionPlan, _ outputs: [SegmentMetadata]) {
    totals.withLock { totals in
      if plan.isMove {
        totals.movedSegments += outputs.count
        return
      }
      totals.compactions += 1
      totals.compactionBytesRead += plan.sizeBytes
      totals.compactionBytesWritten += outputs.reduce(0) { $0 + $1.sizeBytes }
    }
  }

  func noteDelay(microseconds: Int64) {
    totals.withLock { totals in
      totals.delays += 1
      totals.delayMicroseconds += microseconds
    }
  }

  func noteStop() {
    totals.withLock { $0.stops += 1 }
  }
}
