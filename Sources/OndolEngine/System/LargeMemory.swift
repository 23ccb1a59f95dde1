// Memory of several megabytes that only its owner writes, and that is freed with its last user. The
// owner fills it from both ends, and may have the next pages touched in advance.

/// Uninitialised memory.
@safe
final class LargeMemory: @unchecked Sendable {
  // Safe: its users decide which of them writes where. The ends belong to the user that fills it.

  /// Large pages pay from this size on: rows touch new memory constantly, and each small page of it
  /// costs a page fault.
  private static let largePageThreshold = 8 << 20

  /// From this size on, the memory comes directly from the system, which gets it back at once.
  private static let mappedThreshold = 128 << 10

  let size: Int
  let base: UnsafeMutableRawPointer
  private let isMapped: Bool

  /// How much from one end is touched, or about to be, and how much may be used before more is.
  private struct End {
    var touched = 0
    var mark: Int
  }

  private var front: End
  private var back: End

  /// The system provides the memory as it is touched.
  init(_ size: Int) {
    self.size = size
    let alignment = size >= Self.largePageThreshold ? 2 << 20 : 64 << 10
    if size >= Self.mappedThreshold,
      let mapped = unsafe SystemMemory.map(size, alignedTo: alignment)
    {
      unsafe base = mapped
      isMapped = true
    } else {
      unsafe base = .allocate(byteCount: size, alignment: 64)
      isMapped = false
    }
    let mark = isMapped ? Self.firstMark : .max
    front = End(mark: mark)
    back = End(mark: mark)
  }

  deinit {
    if isMapped {
      unsafe SystemMemory.unmap(base, size)
    } else {
      unsafe base.deallocate()
    }
  }

  /// Tells the system that all of it is about to be used.
  func expectUse() {
    if size >= Self.largePageThreshold { unsafe adviseLargePages(base, size) }
  }

  // MARK: - Touching ahead

  /// Below this usage, nothing is touched in advance, because a few rows should cost only a few
  /// small pages.
  private static let firstMark = 16 << 10
  private static let leastStep = 64 << 10
  private static let largestStep = 2 << 20

  /// Whether more should be touched, given this many bytes in use from the front and from the back.
  @inline(__always)
  func lacks(front: Int, back: Int) -> Bool {
    front > self.front.mark || back > self.back.mark
  }

  /// Records that more will be touched, and returns the ranges.
  func expect(front used: Int, back usedAtBack: Int) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    if used > front.mark {
      let old = front.touched
      advance(&front, used: used)
      ranges.append(max(old, used)..<max(old, used, front.touched))
    }
    if usedAtBack > back.mark {
      let old = back.touched
      advance(&back, used: usedAtBack)
      ranges.append(size - max(old, usedAtBack, back.touched)..<size - max(old, usedAtBack))
    }
    return ranges
  }

  /// As much again as is in use, within limits. It grows further once half of that is used.
  private func advance(_ end: inout End, used: Int) {
    let step = min(max(used, Self.leastStep), Self.largestStep)
    end.touched = min(max(used, end.touched) + step, size)
    end.mark = end.touched == size ? .max : end.touched - step / 2
  }

  /// Makes the system provide the pages of `range` now, regardless of concurrent use. If that is
  /// unsupported it does nothing, and the pages are provided as they are written.
  func populate(_ range: Range<Int>) {
    unsafe SystemMemory.populate(base, range)
  }
}
