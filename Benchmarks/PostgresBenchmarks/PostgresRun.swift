// One engine's run: a server of its own with documents, warm and cold reads of them, and writes by
// one writer, by many of one process and by many processes. The suite compares the engines' reads.

import BenchmarkKit
import CPeers
import Foundation
import OndolPostgresTestKit
import Peers

struct PostgresRun {
  let task: SuiteTask<Plan>
  let server: PostgresServer

  private var plan: Plan { task.plan }

  init(_ task: SuiteTask<Plan>) throws {
    self.task = task
    server = try PostgresServer(
      settings: "fsync = on\nshared_buffers = 512MB", in: Self.serverDirectory(task.directory))
  }

  /// The directory of the databases, if the server's user may enter it and its name is short.
  private static func serverDirectory(_ directory: String) -> String {
    var place = URL(filePath: directory).standardizedFileURL
    let path = place.path
    guard path.utf8.count < 60 else { return "/tmp" }
    // If this process runs as root, the server runs as another user.
    while getuid() == 0, place.path != "/" {
      let attributes = try? FileManager.default.attributesOfItem(atPath: place.path)
      let mode = attributes?[.posixPermissions] as? NSNumber
      guard let mode, mode.intValue & 1 == 1 else { return "/tmp" }
      place.deleteLastPathComponent()
    }
    return path
  }

  static func place(_ server: String, _ directory: String) -> Place {
    Place(
      server: { "postgresql:///postgres?host=\(server)&user=postgres&ondol=number\($0)" },
      directory: directory)
  }

  private var place: Place { Self.place(server.directory, task.directory) }

  /// The records of one of several writers.
  static func records(_ plan: Plan, _ number: Int, _ writers: Int) -> [IdentifiedRecord] {
    let count = min(512, plan.documents / writers)
    return (0..<count).map { Record.identified($0 * writers + number, of: plan.documents) }
  }

  func measure<Engine: Contender>(_ type: Engine.Type) async throws -> SuiteResult {
    var result = SuiteResult(engine: type.name, settings: type.settings)
    let engine = try await type.open(0, at: place)
    try await load(engine)
    try await write(engine, &result)
    try await read(engine, &result)
    if wants(.delivery) { try await deliver(engine, &result) }
    try await engine.close()
    try await readCold(type, &result)
    if type.isShared {
      if wants(.loneWriters) { try await writeAlone(type, .loneWriters, over: 1, &result) }
      if type == OndolOnServer.self {
        if wants(.over4) { try await writeAlone(type, .over4, over: 4, &result) }
        if wants(.over16) { try await writeAlone(type, .over16, over: 16, &result) }
      }
    }
    return result
  }

  private func wants(_ workload: Workload) -> Bool { plan.workloads.contains(workload) }

  private func load(_ engine: some Contender) async throws {
    try await engine.prepare()
    for start in stride(from: 0, to: plan.documents, by: Plan.documentsPerBatch) {
      let end = min(start + Plan.documentsPerBatch, plan.documents)
      try await engine.load((start..<end).map { Record.identified($0, of: plan.documents) })
    }
    try await engine.settle()
  }

  // MARK: - Reading

  private var ids: [String] {
    var random = SplitMix(state: 16)
    return (0..<plan.documents).shuffled(using: &random).prefix(plan.gets).map(Record.id)
  }

  private func read(_ engine: some Contender, _ result: inout SuiteResult) async throws {
    guard wants(.getWarm) else { return }
    let ids = ids
    let checksum = try await engine.get(ids)
    var times: [Double] = []
    for _ in 0..<plan.passes {
      times.append(
        try await microseconds { _ = try await engine.get(ids) } / Double(ids.count))
    }
    result.note(Workload.getWarm, median(times), checksum: checksum)
  }

  private func readCold<Engine: Contender>(
    _ type: Engine.Type, _ result: inout SuiteResult
  ) async throws {
    if wants(.getCold) {
      let engine = try await type.open(0, at: place)
      // The first query finds out which collections exist, once in a process's life.
      _ = try await engine.get(["none"])
      var times: [Double] = []
      var checksum = Checksum()
      for id in ids {
        times.append(try await microseconds { checksum.add(try await engine.get([id])) })
      }
      result.note(
        Workload.getCold, median(times), checksum: checksum.value,
        spread: Spread(microseconds: times))
      try await engine.close()
    }
    guard wants(.queryCold) || wants(.queryTrips) else { return }
    let engine = try await type.open(0, at: place)
    _ = try await engine.page(PageQuery(category: "none", price: 0))
    try await waitForRest(engine)
    var times: [Double] = []
    var trips: [Int] = []
    var checksum = Checksum()
    // Each category once, because a second page of one would find its index in memory.
    for number in 0..<plan.queries {
      let price = Record.price(number + Record.categories * (plan.documents / 100))
      let query = PageQuery(category: Record.category(number), price: price)
      let before = engine.trips
      times.append(try await microseconds { checksum.add(try await engine.page(query)) })
      if let before, let after = engine.trips { trips.append(after - before) }
    }
    result.note(
      Workload.queryCold, median(times), checksum: checksum.value,
      spread: Spread(microseconds: times))
    result.note(Workload.queryTrips, trips.max().map(Double.init))
    try await engine.close()
  }

  /// Waits until the background reads of opening are over, because they belong to no query.
  private func waitForRest(_ engine: some Contender) async throws {
    var trips = engine.trips
    while true {
      try await Task.sleep(for: Plan.rest)
      if engine.trips == trips { return }
      trips = engine.trips
    }
  }

  // MARK: - Writing

  private func write(_ engine: some Contender, _ result: inout SuiteResult) async throws {
    let records = Self.records(plan, 0, 8)
    if wants(.write) {
      var times: [Double] = []
      for number in 0..<plan.writes {
        times.append(
          try await microseconds { try await engine.write(records[number % records.count]) })
      }
      result.note(Workload.write, median(times), spread: Spread(microseconds: times))
    }
    if wants(.writers) {
      let count = try await engine.write(
        records, writers: Plan.writers, for: plan.duration)
      result.note(Workload.writers, Double(count) / (plan.duration / .seconds(1)))
    }
  }

  private func helper(_ role: Role) throws -> Helper {
    var task = task
    task.plan.role = role
    task.plan.server = server.directory
    return try Helper(task)
  }

  private func writeAlone<Engine: Contender>(
    _ type: Engine.Type, _ workload: Workload, over databases: Int, _ result: inout SuiteResult
  ) async throws {
    for number in 0..<databases {
      let engine = try await type.open(number, at: place)
      try await engine.prepare()
      try await engine.close()
    }
    let helpers = try (0..<Plan.loneWriters).map {
      try helper(.writer(number: $0, database: $0 % databases))
    }
    for helper in helpers { try helper.begin() }
    result.note(workload, try helpers.reduce(0) { try $0 + $1.result().reduce(0, +) })
  }

  // MARK: - Listening

  private func deliver(_ engine: some Contender, _ result: inout SuiteResult) async throws {
    try await engine.announce(1)
    let listener = try helper(.listener)
    try listener.begin()
    for _ in 0..<plan.deliveries {
      try await Task.sleep(for: Plan.pause)
      try await engine.announce(now())
    }
    try await Task.sleep(for: .seconds(1))
    try await engine.announce(0)
    let delays = try listener.result().sorted()
    guard delays.count >= plan.deliveries * 9 / 10 else {
      throw ChildFailure(description: "only \(delays.count) of \(plan.deliveries) deliveries")
    }
    result.note(Workload.delivery, percentile(0.95, ofSorted: delays))
  }
}
