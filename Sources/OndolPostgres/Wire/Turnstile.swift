// Resources that one thread at a time may use. A thread that needs one blocks until one is free.
// Readers block by contract, on threads that exist for that purpose.

internal import OndolPlatform

/// Lends out resources.
@safe
final class Turnstile<Element: Sendable>: @unchecked Sendable {
  // Safe: `free` is accessed only between lock and unlock, and both pointers live as long as this
  // object.
  private var free: [Element]
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  init(_ elements: [Element]) {
    free = elements
    unsafe mutex = .allocate(capacity: 1)
    unsafe condition = .allocate(capacity: 1)
    unsafe pthread_mutex_init(mutex, nil)
    unsafe pthread_cond_init(condition, nil)
  }

  deinit {
    unsafe pthread_cond_destroy(condition)
    unsafe pthread_mutex_destroy(mutex)
    unsafe condition.deallocate()
    unsafe mutex.deallocate()
  }

  /// Lends a resource to `body`: the one that was returned last. Blocks until one is free.
  func withOne<R, E: Error>(_ body: (Element) throws(E) -> R) throws(E) -> R {
    let element = take()
    defer { giveBack(element) }
    return try body(element)
  }

  /// Lends a resource to `body` if one is free. If the result is nil, the resource is lent last
  /// from then on.
  func withOneAtOnce<R>(_ body: (Element) -> R?) -> R? {
    unsafe pthread_mutex_lock(mutex)
    let taken = free.popLast()
    unsafe pthread_mutex_unlock(mutex)
    guard let element = taken else { return nil }
    let result = body(element)
    giveBack(element, isLast: result == nil)
    return result
  }

  private func take() -> Element {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    while true {
      if let element = free.popLast() { return element }
      unsafe pthread_cond_wait(condition, mutex)
    }
  }

  private func giveBack(_ element: Element, isLast: Bool = false) {
    unsafe pthread_mutex_lock(mutex)
    if isLast { free.insert(element, at: 0) } else { free.append(element) }
    unsafe pthread_cond_signal(condition)
    unsafe pthread_mutex_unlock(mutex)
  }
}
