// A gate that threads wait at. Tests hold password hashing there.

import Foundation

/// Closed until it is opened, then open permanently.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func wait() {
    semaphore.wait()
    semaphore.signal()
  }

  func open() { semaphore.signal() }
}
