// Ondol's listeners: iterators that have received their first snapshot. The unaffected ones stay as
// they are. Each listens to another user, or to another range of prices.

import BenchmarkKit
import Ondol

enum OndolListeners: ObservedEngine {
  static let name = "Ondol"

  static func measure(
    _ workload: Workload, _ plan: Plan, in directory: String
  ) async throws -> Figure? {
    switch workload {
    case .writeBeside100000: Figure(try await ratio(listeners: 100_000, plan, directory))
    case .writeBeside1000: Figure(try await ratio(listeners: 1_000, plan, directory))
    case .delivery: try await delivery(beside: 0, plan, directory)
    case .deliveryBeside1000: try await delivery(beside: 999, plan, directory)
    case .deliveryBeside100000: try await delivery(beside: 99_999, plan, directory)
    case .besideWriter: try await deliveryBesideWriter(plan, directory)
    case .identical: Figure(try await identical(plan, directory))
    case .largeResult: try await largeResult(plan, directory)
    case .idle: Figure(try await idle(plan, directory))
    }
  }

  private typealias Listener = Updates<QuerySnapshot>.Iterator

  private static func open(_ directory: String) async throws -> Database {
    try await Database.open(
      at: directory, options: .init(durability: .process, cacheSize: 256 << 20))
  }

  /// Listeners to one user or one range of prices each. None of them listens to the written
  /// documents.
  private static func listen(
    _ count: Int, to orders: CollectionReference
  ) async throws -> [Listener] {
    var listeners: [Listener] = []
    for number in 0..<count {
      let query =
        number % 2 == 0
        ? orders.whereField("user", isEqualTo: number)
        : orders.whereField("price", isGreaterThan: Double(number))
          .whereField("price", isLessThan: Double(number) + 0.5)
      var listener = query.snapshots.makeAsyncIterator()
      _ = try await listener.next()
      listeners.append(listener)
    }
    return listeners
  }

  private static func fields(_ number: Int) -> [String: any FieldContent] {
    [
      "user": -1 - number % 1_000, "price": -Double(number), "status": "open",
      "note": "delivered to the door, with a signature",
    ]
  }

  private static func ratio(
    listeners count: Int, _ plan: Plan, _ directory: String
  ) async throws -> Double {
    let alone = try await open(directory + "/alone")
    let beside = try await open(directory + "/beside")
    let orders = [alone.collection("orders"), beside.collection("orders")]
    for collection in orders {
      try await collection.createIndex(on: ["user"])
      try await collection.createIndex(on: ["price"])
    }
    let listeners = try await listen(count, to: orders[1])
    // Both take turns, so that the machine's state affects both alike.
    var times: [[Double]] = [[], []]
    for group in 0..<plan.groups {
      for side in [0, 1] {
        let time = try await microseconds {
          for number in 0..<plan.groupSize {
            let place = group * plan.groupSize + number
            try await orders[side].document("d\(place % 5_000)").setData(fields(place))
          }
        }
        times[side].append(time)
      }
    }
    _ = listeners.count
    try await alone.close()
    try await beside.close()
    return median(times[1]) / median(times[0])
  }

  /// Times from the call of a write to the listener that has the snapshot.
  private static func delivery(
    beside count: Int, _ plan: Plan, _ directory: String
  ) async throws -> Figure? {
    let database = try await open(directory)
    let orders = database.collection("orders")
    try await orders.createIndex(on: ["user"])
    try await orders.createIndex(on: ["price"])
    let others = try await listen(count, to: orders)
    var listener = orders.whereField("user", isEqualTo: -7).snapshots.makeAsyncIterator()
    _ = try await listener.next()
    var times: [Double] = []
    let clock = ContinuousClock()
    for number in 0..<plan.deliveries {
      let start = clock.now
      async let write = orders.document("d").setData(["user": -7, "price": -1, "count": number])
      while let snapshot = try await listener.next(),
        snapshot.documents.first?["count"] != number
      {}
      times.append((clock.now - start).microseconds)
      _ = try await write
    }
    _ = others.count
    try await database.close()
    return Figure(microseconds: times)
  }

  /// Times from the call of a write to a listener that knows the writer only from its files. The
  /// writes are further apart than the shortest interval between the reader's looks.
  private static func deliveryBesideWriter(
    _ plan: Plan, _ directory: String
  ) async throws -> Figure? {
    let database = try await open(directory)
    let document = database.document("orders/d")
    try await document.setData(["count": -1])
    let reader = try await Database.open(at: directory, options: .init(access: .readOnly))
    var listener = reader.document("orders/d").snapshots.makeAsyncIterator()
    _ = try await listener.next()
    var times: [Double] = []
    let clock = ContinuousClock()
    for number in 0..<plan.deliveries / 10 {
      try await Task.sleep(for: .milliseconds(15))
      let start = clock.now
      try await document.setData(["count": number])
      while let snapshot = try await listener.next(), snapshot.get("count") != number {}
      times.append((clock.now - start).microseconds)
    }
    try await reader.close()
    try await database.close()
    return Figure(microseconds: times)
  }

  /// Times until all of 10,000 listeners with the same query have the snapshot, each in a task of
  /// its own.
  private static func identical(_ plan: Plan, _ directory: String) async throws -> Double {
    let database = try await open(directory)
    let orders = database.collection("orders")
    let query = orders.whereField("status", isEqualTo: "open")
    let (heard, hears) = AsyncStream<Void>.makeStream()
    return try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<10_000 {
        group.addTask {
          for try await _ in query.snapshots { hears.yield() }
        }
      }
      var answers = heard.makeAsyncIterator()
      for _ in 0..<10_000 { await answers.next() }
      var times: [Double] = []
      for round in 0..<5 {
        let clock = ContinuousClock()
        let start = clock.now
        try await orders.document("d").setData(["status": "open", "round": round])
        for _ in 0..<10_000 { await answers.next() }
        times.append((clock.now - start).microseconds)
      }
      try await database.close()
      try await group.waitForAll()
      return median(times) / 1_000
    }
  }

  /// The cost for a listener of a snapshot with many documents of which one has changed, including
  /// its changes.
  private static func largeResult(_ plan: Plan, _ directory: String) async throws -> Figure? {
    let database = try await open(directory)
    let orders = database.collection("orders")
    for start in stride(from: 0, to: plan.documents, by: 1_000) {
      let batch = database.batch()
      for number in start..<min(start + 1_000, plan.documents) {
        try batch.setData(fields(number), forDocument: orders.document("d\(number)"))
      }
      try await batch.commit()
    }
    var listener = orders.order(by: "price").snapshots.makeAsyncIterator()
    _ = try await listener.next()
    var times: [Double] = []
    for number in 0..<plan.deliveries {
      try await orders.document("d\(number * 7_919 % plan.documents)")
        .setData(fields(number + plan.documents))
      let clock = ContinuousClock()
      let start = clock.now
      let snapshot = try await listener.next()
      guard snapshot?.documentChanges.count == 1 else { throw WrongSnapshot() }
      times.append((clock.now - start).microseconds)
    }
    try await database.close()
    return Figure(microseconds: times)
  }

  /// The growth of the process while an idle listener leaves many writes unread.
  private static func idle(_ plan: Plan, _ directory: String) async throws -> Double {
    let without = try await memory(listening: false, plan, directory + "/without")
    let with = try await memory(listening: true, plan, directory + "/with")
    let largeWithout = try await largeMemory(
      listening: false, plan, directory + "/large-without")
    let largeWith = try await largeMemory(listening: true, plan, directory + "/large-with")
    return Double(max(0, with - without, largeWith - largeWithout)) / 1e6
  }

  /// The growth of memory while large documents enter a result that nobody reads.
  private static func largeMemory(
    listening: Bool, _ plan: Plan, _ directory: String
  ) async throws -> Int {
    let database = try await open(directory)
    let papers = database.collection("papers")
    let text = String(repeating: "x", count: 200_000)
    for number in 0..<plan.largeSleptThrough {
      try await papers.document("p\(number)").setData(["isRead": false, "text": text])
    }
    try await database.compact()
    var listener = papers.whereField("isRead", isEqualTo: true).snapshots.makeAsyncIterator()
    if listening { _ = try await listener.next() }
    let before = ProcessMemory.current()?.residentBytes ?? 0
    for number in 0..<plan.largeSleptThrough {
      try await papers.document("p\(number)").updateData(["isRead": true])
    }
    let after = ProcessMemory.current()?.residentBytes ?? 0
    if listening {
      guard try await listener.next()?.count == plan.largeSleptThrough else {
        throw WrongSnapshot()
      }
    }
    try await database.close()
    return after - before
  }

  private static func memory(
    listening: Bool, _ plan: Plan, _ directory: String
  ) async throws -> Int {
    let database = try await open(directory)
    let orders = database.collection("orders")
    var listener = orders.snapshots.makeAsyncIterator()
    if listening { _ = try await listener.next() }
    for start in stride(from: 0, to: plan.sleptThrough, by: 100) {
      let batch = database.batch()
      for number in start..<(start + 100) {
        try batch.setData(fields(number), forDocument: orders.document("d\(number % 100_000)"))
      }
      try await batch.commit()
    }
    let memory = ProcessMemory.current()?.residentBytes ?? 0
    if listening {
      guard try await listener.next()?.count == min(plan.sleptThrough, 100_000) else {
        throw WrongSnapshot()
      }
    }
    try await database.close()
    return memory
  }
}
