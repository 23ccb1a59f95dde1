// Descriptors that end together with their directory. Closing a database releases all of them at
// once, although snapshots, cursors and the database object may live on and refer to files. Their
// next call to a file reports that it is closed. A running call keeps its descriptor until it
// returns, so that no call reaches a different file that has received the same number.

internal import COndol
internal import OndolPlatform
internal import Synchronization

/// An open file or directory of the system.
final class Descriptor: Sendable {
  /// Marks the descriptor for closing, in addition to the number of running calls.
  private static let closed: UInt64 = 1 << 63

  private let number: CInt
  private let owner: OpenDescriptors
  private let calls = Atomic<UInt64>(0)

  fileprivate init(_ number: CInt, _ owner: OpenDescriptors) {
    self.number = number
    self.owner = owner
  }

  deinit {
    owner.forget(self)
    close()
  }

  /// Lends the number to `body` while it runs. Throws `.closed` after the end.
  func use<R>(_ body: (CInt) throws(EngineError) -> R) throws(EngineError) -> R {
    guard begin() else { throw .closed }
    defer { end() }
    return try body(number)
  }

  /// The same for optional work; nil after the end.
  @discardableResult
  func lend<R>(_ body: (CInt) -> R) -> R? {
    guard begin() else { return nil }
    defer { end() }
    return body(number)
  }

  /// Closes the descriptor, or leaves that to the last running call.
  func close() {
    let before = calls.bitwiseOr(Self.closed, ordering: .sequentiallyConsistent).oldValue
    if before == 0 { endDescriptor(number) }
  }

  private func begin() -> Bool {
    var count = calls.load(ordering: .relaxed)
    while count & Self.closed == 0 {
      let (isExchanged, current) = calls.weakCompareExchange(
        expected: count, desired: count + 1, ordering: .acquiring)
      if isExchanged { return true }
      count = current
    }
    return false
  }

  private func end() {
    let left = calls.subtract(1, ordering: .releasing).newValue
    if left == Self.closed { endDescriptor(number) }
  }
}

/// The descriptors of a directory and its files.
final class OpenDescriptors: Sendable {
  private struct Entry: Sendable {
    weak var descriptor: Descriptor?
  }

  /// Nil once they are closed.
  private let entries = Guarded<[ObjectIdentifier: Entry]?>([:])

  /// Takes over a descriptor. If the others are closed, it closes this one at once.
  func add(_ number: CInt) -> Descriptor {
    let descriptor = Descriptor(number, self)
    let isOpen = entries.withLock { entries in
      entries?[ObjectIdentifier(descriptor)] = Entry(descriptor: descriptor)
      return entries != nil
    }
    if !isOpen { descriptor.close() }
    return descriptor
  }

  /// Closes all present and future descriptors.
  func close() {
    let all = entries.withLock { entries in
      defer { entries = nil }
      return entries?.values.compactMap(\.descriptor) ?? []
    }
    for descriptor in all { descriptor.close() }
  }

  fileprivate func forget(_ descriptor: Descriptor) {
    entries.withLock { $0?[ObjectIdentifier(descriptor)] = nil }
  }
}

/// `close`, callable where a method has the same name.
func endDescriptor(_ number: CInt) { _ = close(number) }
