// Threads for blocking calls, and those calls when no thread is available.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct ThreadTests {
  // A system without a free thread once ended the process.
  @Test func `Without a new thread the caller does the work, in its order`() async {
    let attempts = Guarded(0)
    let worker = IOThread(named: "test") { _ in
      attempts.withLock { $0 += 1 }
      return 11
    }
    let order = Guarded<[Int]>([])
    for number in 0..<5 {
      worker.enqueue {
        worker.enqueue { order.withLock { $0.append(-number) } }
        order.withLock { $0.append(number) }
      }
    }
    #expect(order.withLock { $0 } == [0, 0, 1, -1, 2, -2, 3, -3, 4, -4])
    #expect(await worker.perform { 7 } == 7)
    // Each job tries for a thread again.
    #expect(attempts.withLock { $0 } == 6)
    await worker.stop()
  }

  @Test func `All jobs of many tasks are done while threads come and go`() async {
    let attempts = Guarded(0)
    let worker = IOThread(named: "test") { argument in
      let isRefused = attempts.withLock { attempts in
        attempts += 1
        return attempts % 3 != 0
      }
      return isRefused ? 11 : IOThread.detach(argument)
    }
    let done = Guarded(0)
    let isBusy = Guarded(false)
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<100 {
            await worker.perform {
              #expect(!isBusy.withLock { $0 })
              isBusy.withLock { $0 = true }
              done.withLock { $0 += 1 }
              isBusy.withLock { $0 = false }
            }
          }
        }
      }
    }
    #expect(done.withLock { $0 } == 800)
    await worker.stop()
  }
}
