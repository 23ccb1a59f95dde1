// Threads that many databases share. The order of jobs is pure, and random tests check the rules
// that any order must keep. The threads themselves are real, and the tests check their number and
// the fate of jobs.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct `Jobs that take turns` {
  private typealias Queues = JobQueues<Int>

  /// A number of queues for each of a number of databases. Every fourth one is slow.
  private func makeQueues(_ databases: UInt64, _ each: UInt64) -> [Queues.Queue] {
    (0..<databases * each).map { number in
      Queues.Queue(
        number: number, database: DatabaseTurn(rawValue: number / each), isSlow: number % 4 == 3)
    }
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func `Every job runs once, after those before it in its queue and beside none of them`(
    seed: UInt64
  ) throws {
    var random = SeededRandom(seed: seed)
    let all = makeQueues(UInt64.random(in: 1...6, using: &random), 5)
    var queues = Queues()
    var waiting: [Queues.Queue: [Int]] = [:]
    var running: [Queues.Queue] = []
    for step in 0..<3_000 {
      // Most of the time more jobs come than go, then fewer.
      let isFilling = step / 300 % 2 == 0
      if Int.random(in: 0..<10, using: &random) < (isFilling ? 6 : 3) {
        let queue = try #require(all.randomElement(using: &random))
        let isIdle = waiting[queue, default: []].isEmpty && !running.contains(queue)
        let isHeldUp = queue.isSlow && running.contains(where: \.isSlow)
        #expect(queues.append(step, to: queue) == (isIdle && !isHeldUp), "seed \(seed)")
        waiting[queue, default: []].append(step)
      } else if Bool.random(using: &random), !running.isEmpty {
        let ended = running.remove(at: Int.random(in: running.indices, using: &random))
        queues.end(of: ended)
      } else {
        let isSlowRunning = running.contains(where: \.isSlow)
        let mayRun = waiting.filter { queue, jobs in
          !jobs.isEmpty && !running.contains(queue) && !(queue.isSlow && isSlowRunning)
        }
        guard let next = queues.next() else {
          #expect(mayRun.isEmpty, "seed \(seed), step \(step)")
          continue
        }
        #expect(mayRun[next.queue]?.first == next.job, "seed \(seed), step \(step)")
        waiting[next.queue]?.removeFirst()
        running.append(next.queue)
      }
      for queue in all {
        let isBusy = running.contains(queue) || !waiting[queue, default: []].isEmpty
        #expect(queues.isBusy(queue) == isBusy, "seed \(seed), step \(step)")
      }
    }
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func `Between two jobs of a database each other that waits has one`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let all = makeQueues(5, 3).filter { !$0.isSlow }
    var queues = Queues()
    for queue in all {
      for job in 0..<Int.random(in: 1...30, using: &random) { _ = queues.append(job, to: queue) }
    }
    var rounds: [[DatabaseTurn]] = [[]]
    while let next = queues.next() {
      queues.end(of: next.queue)
      if rounds[rounds.count - 1].contains(next.queue.database) { rounds.append([]) }
      rounds[rounds.count - 1].append(next.queue.database)
    }
    // A queue that is missing in a round has nothing left, nor in any later round.
    for (round, later) in zip(rounds, rounds.dropFirst()) {
      #expect(Set(later).isSubset(of: round), "seed \(seed)")
    }
    #expect(Set(rounds[0]).count == 5)
  }

  @Test func `A database at rest takes nothing`() {
    var line = FairLine<Int>()
    for number in 0..<1_000 { line.append(number, of: DatabaseTurn(rawValue: UInt64(number % 7))) }
    var seen: Set<Int> = []
    while let number = line.popFirst() { seen.insert(number) }
    #expect(seen.count == 1_000)
    #expect(line.isEmpty)
  }
}

@Suite struct `Threads that databases share` {
  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func `Jobs of many queues are all done, in order, on few threads`(seed: UInt64) async {
    var random = SeededRandom(seed: seed)
    let most = Int.random(in: 1...4, using: &random)
    let attempts = Guarded(0)
    let refusals = Int.random(in: 0...3, using: &random)
    let lane = ThreadLane("test", most: most) { argument in
      let isRefused = attempts.withLock { attempts in
        attempts += 1
        return attempts <= refusals
      }
      return isRefused ? 11 : IOThread.detach(argument)
    }
    let workers = (0..<30).map { number in
      LaneWorker(
        in: lane, of: DatabaseTurn(rawValue: UInt64(number / 3)), isSlow: number % 5 == 4)
    }
    let orders = Guarded([[Int]](repeating: [], count: workers.count))
    await withTaskGroup { group in
      for (place, worker) in workers.enumerated() {
        group.addTask {
          for job in 0..<200 {
            if job % 50 == 49 {
              await worker.perform { orders.withLock { $0[place].append(job) } }
            } else {
              worker.enqueue { orders.withLock { $0[place].append(job) } }
            }
          }
          await worker.stop()
          #expect(orders.withLock { $0[place] } == Array(0..<200), "seed \(seed)")
        }
      }
    }
    #expect(lane.threadCount <= most, "seed \(seed)")
  }

  // As when a flush waits for a slow device: others have the other thread.
  @Test func `A job that takes long keeps one thread, and slow ones never have all`() async {
    let lane = ThreadLane("test", most: 2)
    let isOpen = Tally()
    let slow = (0..<4).map { number in
      LaneWorker(in: lane, of: DatabaseTurn(rawValue: number), isSlow: true)
    }
    let began = Tally()
    for worker in slow {
      worker.enqueue {
        began.increase()
        while isOpen.value == 0 { worker.pause(microseconds: 100) }
      }
    }
    let quick = LaneWorker(in: lane, of: DatabaseTurn(rawValue: 9))
    for number in 0..<100 {
      #expect(await quick.perform { number } == number)
    }
    #expect(began.value <= 1)
    isOpen.increase()
    for worker in slow { await worker.stop() }
    #expect(began.value == 4)
  }

  @Test func `Without a new thread the caller does the work, in its order`() async {
    let lane = ThreadLane("test", most: 3) { _ in 11 }
    let worker = LaneWorker(in: lane, of: DatabaseTurn(rawValue: 1))
    let order = Guarded<[Int]>([])
    for number in 0..<5 {
      worker.enqueue {
        worker.enqueue { order.withLock { $0.append(-number) } }
        order.withLock { $0.append(number) }
      }
    }
    #expect(order.withLock { $0 } == [0, 0, 1, -1, 2, -2, 3, -3, 4, -4])
    #expect(await worker.perform { 7 } == 7)
    #expect(lane.threadCount == 0)
    await worker.stop()
  }

  @Test func `A job's references are released after it has run, and its worker may go before`()
    async
  {
    final class Owner: Sendable {
      let tally: Tally
      let worker: LaneWorker
      init(_ tally: Tally, _ worker: LaneWorker) {
        (self.tally, self.worker) = (tally, worker)
      }
      // A released object may have more work, on the same lane.
      deinit { worker.enqueue { [tally] in tally.increase() } }
    }
    let lane = ThreadLane("test", most: 1)
    let tally = Tally()
    let worker = LaneWorker(in: lane, of: DatabaseTurn(rawValue: 1))
    for _ in 0..<100 {
      let owner = Owner(tally, LaneWorker(in: lane, of: DatabaseTurn(rawValue: 2)))
      worker.enqueue { withExtendedLifetime(owner) {} }
    }
    await worker.stop()
    // The lane's one thread runs the owners' remaining work, a job at each turn.
    for _ in 0..<200 { await worker.perform {} }
    #expect(tally.value == 100)
  }
}
