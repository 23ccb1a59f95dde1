// A door that threads wait at: what hashes passwords can be held there.

import Foundation

/// Closed until it is opened, then open for good.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func wait() {
    semaphore.wait()
    semaphore.signal()
  }

  func open() { semaphore.signal() }
}
