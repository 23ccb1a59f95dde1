// The memory of long batches. A batch of a thousand rows fills some hundred kilobytes, and
// allocators give so much back to the system when the commit is done and get it anew for the next
// one: clearing those pages took a loading database longer than all else that it did with the rows.
// So what one batch has filled serves the next.

/// Keeps one frame's memory between batches, for all databases of the process.
enum FrameMemory {
  /// Shorter frames are the allocator's: it has such memory at hand.
  static let leastCapacity = 64 << 10
  /// Longer ones are not kept.
  private static let mostCapacity = 8 << 20

  private static let kept = Guarded<[UInt8]>([])

  /// `frame` with room for `count` bytes, and as much again for more.
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

  /// Takes the memory of a frame that is written.
  static func giveBack(_ frame: consuming [UInt8]) {
    guard frame.capacity >= leastCapacity, frame.capacity <= mostCapacity else { return }
    frame.removeAll(keepingCapacity: true)
    kept.withLock { kept in
      if kept.capacity < frame.capacity { kept = frame }
    }
  }

  /// Lets go of what is kept.
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
