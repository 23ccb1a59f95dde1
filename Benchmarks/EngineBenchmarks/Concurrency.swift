// Many concurrent users of one database. Engines whose calls block get a thread for each user, as
// their own programs would. Ondol gets tasks. A thread is an executor here, so that the code exists
// once.

import Foundation
import Peers

/// Runs `body` for `0..<count` concurrently, each on a thread of its own or as a task of the pool.
func concurrently<R: Sendable>(
  _ count: Int, onThreads: Bool, _ body: @escaping @Sendable (Int) async throws -> R
) async throws -> [R] {
  let threads = onThreads ? (0..<count).map { _ in ThreadExecutor() } : []
  defer { for thread in threads { thread.stop() } }
  return try await withThrowingTaskGroup(of: (Int, R).self) { group in
    for index in 0..<count {
      group.addTask(executorPreference: onThreads ? threads[index] : nil) {
        (index, try await body(index))
      }
    }
    var results: [(Int, R)] = []
    for try await result in group { results.append(result) }
    return results.sorted { $0.0 < $1.0 }.map(\.1)
  }
}

/// A thread as an executor.
///
/// `@unchecked`: the jobs are accessed only under the lock.
private final class ThreadExecutor: TaskExecutor, @unchecked Sendable {
  private let condition = NSCondition()
  private var jobs: [UnownedJob] = []
  private var isStopped = false

  init() {
    let thread = Thread { self.run() }
    thread.start()
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    condition.withLock {
      jobs.append(job)
      condition.signal()
    }
  }

  func stop() {
    condition.withLock {
      isStopped = true
      condition.signal()
    }
  }

  private func run() {
    while let job = next() {
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }

  private func next() -> UnownedJob? {
    condition.withLock {
      while jobs.isEmpty, !isStopped { condition.wait() }
      return jobs.isEmpty ? nil : jobs.removeFirst()
    }
  }
}
