// One run of one engine, in a process of its own. It writes the documents, settles the database,
// closes it and opens it again. Then it times every kind of read in passes, after one untimed pass
// each.

import BenchmarkKit
import CPeers
import Foundation
import Ondol
import Peers

struct DocumentRun {
  private let plan: Plan
  private let queries: Queries
  private var result: SuiteResult

  /// Runs the plan on an engine in an empty directory.
  ///
  /// This leaves the main thread, so that calls come from the pool of tasks.
  @concurrent
  static func perform<Store: DocumentStore>(
    _ type: Store.Type, _ plan: Plan, in directory: String
  ) async throws -> SuiteResult {
    var run = DocumentRun(type, plan)
    let loading = try await Store.open(directory, cacheBytes: Plan.cacheBytes)
    try await run.write(to: loading)
    try await loading.settle()
    try await loading.close()
    writeOutEverything()

    let store = try await Store.open(directory, cacheBytes: Plan.cacheBytes)
    try await run.read(store)
    try await store.close()
    return run.result
  }

  private init(_ type: (some DocumentStore).Type, _ plan: Plan) {
    self.plan = plan
    queries = Queries(plan)
    result = SuiteResult(engine: type.name, settings: "\(type.version): \(type.settings)")
  }

  private mutating func write(to store: some DocumentStore) async throws {
    try await store.prepare()
    let times = try await write(plan.documents, to: .diary, of: store)
    note(
      .batchWrite, Double(plan.documents) / (times.reduce(0, +) / 1e6),
      spread: Spread(microseconds: times))
    if plan.includes(.scan) { _ = try await write(Plan.archived, to: .archive, of: store) }
    if plan.includes(.decodeAll) { _ = try await write(Plan.exported, to: .export, of: store) }
    if plan.workloads.contains(where: \.isOfListing) { try await list(store) }
    if plan.workloads.contains(where: \.isOfWares), let ondol = store as? OndolStore {
      try await ondol.writeWares()
    }
  }

  /// Writes the listing and creates its indexes.
  private mutating func list(_ store: some DocumentStore) async throws {
    for first in stride(from: 0, to: plan.listed, by: Plan.documentsPerBatch) {
      let numbers = first..<min(first + Plan.documentsPerBatch, plan.listed)
      try await store.write(
        numbers.map { (ListedFile.id($0), ListedFile($0, of: plan.listed)) })
    }
    for (workload, index) in [(Workload.buildIndex1, .section), (.buildIndex2, .sectionAndEnding)]
      as [(Workload, ListingIndex)]
    {
      let start = peer_now()
      try await store.build(index)
      note(workload, Double(peer_now() - start) / 1e6)
    }
  }

  /// Writes documents in batches, each made while the clock is stopped. Returns the microseconds
  /// for each batch.
  private func write(
    _ documents: Int, to place: DocumentPlace, of store: some DocumentStore
  ) async throws -> [Double] {
    var times: [Double] = []
    for first in stride(from: 0, to: documents, by: Plan.documentsPerBatch) {
      let batch = (first..<min(first + Plan.documentsPerBatch, documents)).map {
        IdentifiedRecord(id: Record.id($0), record: Record($0, of: documents))
      }
      try await Counting.count(Workload.batchWrite.rawValue, operations: batch.count) {
        let start = peer_now()
        try await store.write(batch, to: place)
        times.append(Double(peer_now() - start) / 1e3)
      }
    }
    return times
  }

  private mutating func read(_ store: some DocumentStore) async throws {
    let (gets, asked) = (plan.getsPerPass * 1_000, plan.queriesPerPass * 1_000)
    try await measure(.get, queries.ids, per: gets) { try await store.get($0) }
    if let ondol = store as? OndolStore {
      try await measure(.getOnMainActor, queries.ids, per: gets) {
        try await ondol.getOnMainActor($0)
      }
    }
    try await measure(.decode, queries.ids, per: gets) { try await store.decode($0) }
    try await measure(.equality, queries.emails, per: asked) { try await store.equality($0) }
    try await measure(.inSeven, queries.weeks, per: asked) { try await store.weeks($0) }
    try await measure(.page, queries.pages, per: asked) { try await store.pages($0) }
    try await measure(.scan, queries.names, per: plan.scansPerPass * 1_000_000) {
      try await store.scan($0)
    }
    let passes: [Void] = Array(repeating: (), count: plan.passes)
    try await measure(.decodeAll, passes, per: 1_000_000) { try await store.decodeAll() }
    try await measure(.countAll, passes, per: 1_000_000) { try await store.countAll() }
    try await measure(.countWhere, passes, per: 1_000_000) { try await store.countDeep() }
    try await measure(.groupByIndex, passes, per: 1_000_000) {
      try await store.groupBySection()
    }
    try await measure(.groupByScan, passes, per: 1_000_000) {
      try await store.groupByPackage()
    }
    try await measure(.prefixScan, queries.paths, per: 1_000_000) { try await store.paths($0) }
    guard let ondol = store as? OndolStore else { return }
    for (workload, comparison) in [(Workload.textPage, nil), (.foldedPage, .folded)]
      as [(Workload, TextComparison?)]
    {
      try await measure(workload, queries.wares, per: asked) {
        try await ondol.textPages($0, comparing: comparison)
      }
    }
    try await measure(.wholeEquality, queries.wares, per: asked) { try await ondol.wholes($0) }
    try await measure(.exactEquality, queries.wares, per: asked) { try await ondol.exacts($0) }
  }

  /// Times passes of many operations, and then the operations of the last pass one by one.
  private mutating func measure<Operation>(
    _ workload: Workload, _ passes: [[Operation]], per nanoseconds: Int,
    _ body: ([Operation]) async throws -> UInt64
  ) async throws {
    guard plan.includes(workload), let last = passes.last else { return }
    let (times, checksum) = try await timeEach(passes, body)
    // Timed separately, so that the clock is no part of the figure.
    var alone: [Double] = []
    for operation in last.map({ [$0] }) {
      let start = peer_now()
      _ = try await body(operation)
      alone.append(Double(peer_now() - start) / 1e3)
    }
    _ = try await Counting.count(workload.rawValue, operations: last.count) {
      try await body(last)
    }
    note(
      workload, median(times) / Double(nanoseconds), checksum: checksum,
      spread: Spread(microseconds: alone))
  }

  /// The same for passes of one operation.
  private mutating func measure<Pass>(
    _ workload: Workload, _ passes: [Pass], per nanoseconds: Int,
    _ body: (Pass) async throws -> UInt64
  ) async throws {
    guard plan.includes(workload), let last = passes.last else { return }
    let (times, checksum) = try await timeEach(passes, body)
    _ = try await Counting.count(workload.rawValue, operations: 1) { try await body(last) }
    note(
      workload, median(times) / Double(nanoseconds), checksum: checksum,
      spread: Spread(microseconds: times.map { $0 / 1e3 }))
  }

  /// Returns the nanoseconds of each pass when it runs for the second time, and its result.
  private func timeEach<Pass>(
    _ passes: [Pass], _ body: (Pass) async throws -> UInt64
  ) async throws -> (nanoseconds: [Double], checksum: UInt64) {
    var times: [Double] = []
    var checksums: [UInt64] = []
    for pass in passes {
      _ = try await body(pass)
      let start = peer_now()
      checksums.append(try await body(pass))
      times.append(Double(peer_now() - start))
    }
    return (times, fold(checksums))
  }

  private mutating func note(
    _ workload: Workload, _ value: Double, checksum: UInt64? = nil, spread: Spread? = nil
  ) {
    guard plan.includes(workload) else { return }
    result.note(workload, value, checksum: checksum, spread: spread)
  }
}
