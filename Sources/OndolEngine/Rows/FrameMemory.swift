// The memory of long batches. A batch of a thousand rows fills several hundred kilobytes.
// Allocators return such memory to the system after the commit and request it again for the next
// one. Clearing those pages took a loading database longer than all its other work with the rows.
// So the memory of one batch is reused for the next.

/// Keeps one frame's memory between batches, for all databases of the process.
enum FrameMemory {
  /// Shorter frames are left to the allocator, which has such memory at hand.
  static let leastCapacity = 64 << 10
  /// Longer ones are not kept.
  private static let mostCapacity = 8 << 20

  private static let kept = Guarded<[UInt8]>([])

  /// `frame` with space for `count` bytes, and as much again for growth.
  ///
  /// - Complexity: O(bytes of `frame`).
  static func enlarge(_ frame: consuming [UInt8], to count: Int) -> [UInt8] {
    var larger = take()
    if larger.capacity < count {
      larger = []
      larger.reserveCapacity(max(count, frame.count + min(frame.count, mostCapacity)))
    }
    larger += frame
    return larger
  }

  /// Takes over the memory of a written frame.
  static func giveBack(_ frame: consuming [UInt8]) {
    guard frame.capacity >= leastCapacity, frame.capacity <= mostCapacity else { return }
    frame.removeAll(keepingCapacity: true)
    kept.withLock { kept in
      if kept.capacity < frame.capacity { kept = frame }
    }
  }

  /// Releases the kept memory.
  static func clear() {
    _ = take()
  }

  private static func take() -> [UInt8] {
    kept.withLock { kept in
      defer { kept = [] }
      return kept
    }
  }
}
