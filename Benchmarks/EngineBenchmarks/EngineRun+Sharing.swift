// Many concurrent users of one database: writers that all need synced commits, and readers beside a
// writer.

import CPeers
import Foundation
import Peers

extension EngineRun {
  mutating func share() async throws {
    try await writeTogether()
    try await readWhileWriting()
  }

  /// Writers that each commit one document after another, synced. The important part is how many
  /// commits share a sync.
  private mutating func writeTogether() async throws {
    guard plan.includes(.writersPower) else { return }
    let engine = try await open(.main, .power)
    var sessions: [any KeyValueEngine] = []
    for _ in 0..<Plan.writers { sessions.append(try await engine.session()) }
    let turns = (0..<Plan.writers).map { writer in
      makeTurns(of: writer, from: queries.shared.lowerBound, rows: plan.rowsPerWriter)
    }

    let start = peer_now()
    let end = start + UInt64(plan.writersSeconds * 1e9)
    let written = try await concurrently(Plan.writers, onThreads: type.blocks) {
      [sessions, turns] writer in
      var count = 0
      for rows in turns[writer] where peer_now() < end {
        _ = try await sessions[writer].writeEach(rows)
        count += 1
      }
      return count
    }
    let seconds = Double(peer_now() - start) / 1e9
    for (rows, count) in zip(turns, written) {
      for row in rows.prefix(count) {
        try require(try await engine.get(row.keys), is: row.checksum, .writersPower)
      }
    }
    note(.writersPower, Double(written.reduce(0, +) * Plan.rowsPerTurn) / seconds)
    try await engine.close()
  }

  /// The documents that a writer commits, in parts, so that it checks the clock now and then.
  private func makeTurns(of writer: Int, from first: Int, rows count: Int) -> [RowList] {
    let begin = first + writer * count
    return stride(from: begin, to: begin + count, by: Plan.rowsPerTurn).map {
      rows($0..<$0 + Plan.rowsPerTurn)
    }
  }

  /// Readers at full speed beside a writer at a fixed rate, each on a thread of its own. The rate
  /// is the same for all engines, because a slow writer would otherwise leave its readers more of
  /// the processor.
  private mutating func readWhileWriting() async throws {
    guard plan.includes(.readersWhileWriting) else { return }
    let engine = try await open()
    try await engine.settle()
    try await warm(engine)
    var sessions: [any KeyValueEngine] = []
    for _ in 0..<Plan.readers { sessions.append(try await engine.session()) }
    let passes = queries.beside
    let sums = passes.map { dataset.checksum(of: $0.numbers) }
    let count = Int(Double(Plan.pacedRate) * plan.readersSeconds)
    let first = queries.shared.upperBound
    let rows = makeTurns(of: 0, from: first, rows: count / Plan.rowsPerTurn * Plan.rowsPerTurn)

    let start = peer_now()
    let end = start + UInt64(plan.readersSeconds * 1e9)
    let workload = Workload.readersWhileWriting
    let done = try await concurrently(Plan.readers + 1, onThreads: true) {
      [self, sessions] index in
      if index == Plan.readers { return try await writePaced(rows, to: engine, start, end) }
      var gets = 0
      while peer_now() < end {
        let checksum = try await sessions[index].get(passes[index].keys)
        try require(checksum, is: sums[index], workload)
        gets += passes[index].keys.count
      }
      return gets
    }
    let seconds = Double(peer_now() - start) / 1e9
    for row in rows.prefix(done[Plan.readers] / Plan.rowsPerTurn) {
      try require(try await engine.get(row.keys), is: row.checksum, workload)
    }
    note(
      workload, Double(done.prefix(Plan.readers).reduce(0, +)) / seconds,
      attained: Double(done[Plan.readers]) / plan.readersSeconds)
    try await engine.close()
  }

  /// Writes a turn whenever it is due, and late turns at once. Returns the number of documents
  /// written until `end`.
  private func writePaced(
    _ turns: [RowList], to engine: any KeyValueEngine, _ start: UInt64, _ end: UInt64
  ) async throws -> Int {
    let interval = UInt64(Plan.rowsPerTurn) * 1_000_000_000 / UInt64(Plan.pacedRate)
    var documents = 0
    for (index, rows) in turns.enumerated() {
      let due = start + UInt64(index) * interval
      let now = peer_now()
      if now >= end { break }
      if due > now { usleep(UInt32((due - now) / 1_000)) }
      _ = try await engine.writeEach(rows)
      documents += rows.keys.count
    }
    return documents
  }
}
