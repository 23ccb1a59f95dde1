// A server that does not answer: calls end within their time, and a write reports that it was not
// made, or that its outcome is unknown, which is reported later. Cancelling also ends a call, and
// the queue of requests is bounded. Time passes when a test says so.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `A server that does not answer` {
  private let world = SimulatedWorld(seed: 1)
  private let store: SimulatedStore
  private let way: MortalStore

  init() {
    store = SimulatedStore(seed: 1, environment: world.environment)
    way = MortalStore(store)
  }

  private func open(_ options: EngineOptions = EngineOptions()) async throws -> Database {
    let database = try await Database.open(
      at: store.name, environment: world.environment, engineOptions: options, on: way)
    try await database.document("items/lamp").setData(["price": 30])
    return database
  }

  /// Lets time pass until a call has ended, and returns its error.
  private func error(
    of call: @escaping @Sendable () async throws -> Void
  ) async -> DatabaseError? {
    let isOver = Guarded(false)
    return await withTaskGroup(of: DatabaseError?.self) { tasks in
      tasks.addTask {
        defer { isOver.withLock { $0 = true } }
        do {
          try await call()
          return nil
        } catch {
          return error as? DatabaseError
        }
      }
      while !isOver.withLock({ $0 }) {
        world.timeOut()
        await Task.yield()
      }
      return await tasks.next() ?? nil
    }
  }

  @Test func `Has a write end in doubt that is on its way, and others undone`() async throws {
    let database = try await open()
    way.stop(behind: 0)
    let sent = Task<Void, any Error> {
      try await database.document("items/lamp").updateData(["price": 40])
    }
    while !way.hasStopped { await Task.yield() }
    let waiting = await error { try await database.document("items/desk").setData(["price": 9]) }
    #expect(waiting?.code == .deadlineExceeded)
    #expect(waiting?.pendingWrite == nil)
    #expect(waiting?.message.contains("nothing was written") == true)
    let doubt = await error { _ = try await sent.value }
    #expect(doubt?.code == .deadlineExceeded)
    let pending = try #require(doubt?.pendingWrite)
    let told = Guarded<WriteOutcome?>(nil)
    let failure = await error {
      let outcome = try await database.outcome(of: pending)
      told.withLock { $0 = outcome }
    }
    #expect(failure == nil && told.withLock { $0 } == .pending)
    let late = await error { try await database.refresh() }
    #expect(late?.code == .deadlineExceeded)
    way.goOn()
    guard case .committed(let version) = try await database.outcome(of: pending) else {
      Issue.record("a write that was made is not told to be")
      return
    }
    let lamp = try await database.document("items/lamp").getDocument()
    #expect(lamp["price"] as Int? == 40 && lamp.version == version)
    // A withdrawn write is not made later.
    try await database.refresh()
    #expect(try await !database.document("items/desk").getDocument().exists)
    try await database.close()
  }

  @Test func `Has a call end when it is cancelled`() async throws {
    let database = try await open()
    way.stop(behind: 0)
    let calls = [
      Task<Void, any Error> {
        try await database.document("items/lamp").updateData(["price": 40])
      },
      Task<Void, any Error> { try await database.refresh() },
    ]
    while !way.hasStopped { await Task.yield() }
    for call in calls {
      call.cancel()
      let error = await #expect(throws: DatabaseError.self) { try await call.value }
      #expect(error?.code == .cancelled)
    }
    way.goOn()
    try await database.close()
  }

  @Test func `Is not waited for by more than there is room for`() async throws {
    var options = EngineOptions()
    options.waitingCommits = 2
    let database = try await open(options)
    // They are then in memory, so that a write of one waits in line and not for the existing rows.
    for number in 0..<3 { try await database.document("items/\(number)").setData(["price": 0]) }
    way.stop(behind: 0)
    var writes = [
      Task<Void, any Error> {
        try await database.document("items/lamp").updateData(["price": 40])
      }
    ]
    while !way.hasStopped { await Task.yield() }
    var refusal: DatabaseError?
    let refusals = Guarded<[DatabaseError]>([])
    for number in 0..<3 {
      writes.append(
        Task<Void, any Error> {
          do throws(DatabaseError) {
            try await database.document("items/\(number)").setData(["price": number + 1])
          } catch {
            refusals.withLock { $0.append(error) }
          }
        })
    }
    while refusal == nil {
      refusal = refusals.withLock { $0.first }
      await Task.yield()
    }
    #expect(refusal?.code == .resourceExhausted)
    way.goOn()
    for write in writes { try await write.value }
    #expect(refusals.withLock { $0.count } == 1)
    let items = try await database.collection("items").getDocuments().documents
    #expect(items.count { $0["price"] as Int? == 0 } == 1)
    try await database.close()
  }

  @Test func `Is given a time that can be`() async {
    let error = await #expect(throws: DatabaseError.self) {
      try await Database.inMemory(options: Database.Options(serverTimeout: .zero))
    }
    #expect(error?.code == .invalidArgument)
  }
}
