// A value that is made once, late, and then read by everybody at the cost of one load: no lock, no reference
// count.

import Synchronization

/// Nothing at first, then one value for good.
@safe struct PublishedOnce<Value: BitwiseCopyable>: ~Copyable, @unchecked Sendable {
  // Safe to share: the value is written before its address is, and not changed afterwards.
  private let address = Atomic<UInt>(0)

  init() {}

  @inline(__always)
  var value: Value? {
    let address = address.load(ordering: .acquiring)
    // Safe: the address is that of an initialised value, which stays until the end.
    return unsafe UnsafePointer<Value>(bitPattern: address)?.pointee
  }

  /// Publishes `value`. Must be called at most once.
  func publish(_ value: Value) {
    let memory = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    unsafe memory.initialize(to: value)
    let previous = address.exchange(UInt(bitPattern: memory), ordering: .releasing)
    precondition(previous == 0, "published twice")
  }

  deinit {
    unsafe UnsafeMutablePointer<Value>(bitPattern: address.load(ordering: .acquiring))?.deallocate()
  }
}
