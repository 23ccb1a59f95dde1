// Bytes for what fills megabytes and is written by its owner alone, freed with their last user. Its
// owner fills it from both ends, and may have the pages that come next touched before.

/// Uninitialised memory.
@safe
final class LargeMemory: @unchecked Sendable {
  // Safe: who shares it sees to who writes where; the ends belong to the one who fills it.

  /// From here on large pages pay: rows touch new memory all the time, and each small page of it is
  /// a fault.
  private static let largePageThreshold = 8 << 20

  /// From here on it comes from the system itself, which gets it back at once.
  private static let mappedThreshold = 128 << 10

  let size: Int
  let base: UnsafeMutableRawPointer
  private let isMapped: Bool

  /// How much from an end is touched, or about to be, and how much may be in use before more is.
  private struct End {
    var touched = 0
    var mark: Int
  }

  private var front: End
  private var back: End

  /// The system gives the memory as it is touched.
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

  /// With fewer bytes in use nothing is touched ahead: a few rows shall cost a few small pages.
  private static let firstMark = 16 << 10
  private static let leastStep = 64 << 10
  private static let largestStep = 2 << 20

  /// Whether more should be touched, now that so many bytes from the front and from the back are in
  /// use.
  @inline(__always)
  func lacks(front: Int, back: Int) -> Bool {
    front > self.front.mark || back > self.back.mark
  }

  /// Notes that more will be touched, and answers with what.
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

  /// As much again as is in use, within limits; and more once half of that is used.
  private func advance(_ end: inout End, used: Int) {
    let step = min(max(used, Self.leastStep), Self.largestStep)
    end.touched = min(max(used, end.touched) + step, size)
    end.mark = end.touched == size ? .max : end.touched - step / 2
  }

  /// Has the system give the pages of `range` now, whoever uses them meanwhile. Does nothing where
  /// it cannot: then they come as they are written.
  func populate(_ range: Range<Int>) {
    unsafe SystemMemory.populate(base, range)
  }
}
