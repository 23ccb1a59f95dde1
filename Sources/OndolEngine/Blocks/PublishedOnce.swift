// A value that is made once, late, and then read by all threads at the cost of one load: no lock,
// no reference count. Frequent readers keep the `Reader`, which leads to the value without its
// owner.

import Synchronization

/// Nothing at first, then one permanent value.
@safe struct PublishedOnce<Value: BitwiseCopyable>: ~Copyable, @unchecked Sendable {
  // Safe to share: it is a constant address of an atomic.
  let reader: Reader

  /// Leads to the value. Valid as long as the `PublishedOnce`.
  @safe struct Reader: BitwiseCopyable, @unchecked Sendable {
    // Safe to share: the value is written before its address, and not changed afterwards.
    fileprivate let address: UnsafeMutablePointer<Atomic<UInt>>

    /// The value; nil until it is published.
    @inline(__always)
    var value: Value? {
      let address = unsafe address.pointee.load(ordering: .acquiring)
      // Safe: the address is that of an initialised value, which stays until the end.
      return unsafe UnsafePointer<Value>(bitPattern: address)?.pointee
    }
  }

  init() {
    let address = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: 1)
    unsafe address.initialize(to: Atomic(0))
    reader = unsafe Reader(address: address)
  }

  /// Publishes `value`. Must be called at most once.
  func publish(_ value: Value) {
    let memory = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    unsafe memory.initialize(to: value)
    let previous = unsafe reader.address.pointee.exchange(
      UInt(bitPattern: memory), ordering: .releasing)
    precondition(previous == 0, "published twice")
  }

  deinit {
    let value = unsafe reader.address.pointee.load(ordering: .acquiring)
    unsafe UnsafeMutablePointer<Value>(bitPattern: value)?.deallocate()
    unsafe reader.address.deinitialize(count: 1)
    unsafe reader.address.deallocate()
  }
}
