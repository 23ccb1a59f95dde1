// Guards of optimistic commits: keys and ranges, in memory and flushed.

import OndolEngine
import OndolTestKit
import Testing

/// Derives a batch now and commits it after `meanwhile`. Returns whether it was accepted.
private func accepts(
  _ engine: Engine, guarding guards: (inout Batch) -> Void,
  after meanwhile: () async throws -> Void
) async throws -> Bool {
  var batch = Batch()
  batch.basis = try engine.snapshot().sequence
  guards(&batch)
  batch.put(rowKey("result").bytes, [1].bytes)
  try await meanwhile()
  do throws(EngineError) {
    _ = try await engine.commit(batch, durability: .process)
    return true
  } catch {
    guard error == .stale else { throw error }
    return false
  }
}

private func guardKey(_ batch: inout Batch) {
  batch.guardUnchanged(rowKey("k").bytes)
}

/// The rows from `d` on and before `h`.
private func guardRange(_ batch: inout Batch) {
  batch.guardUnchanged(from: rowKey("d").bytes, to: rowKey("h").bytes)
}

@Suite struct GuardTests {
  @Test(arguments: [false, true])
  func `A guarded key refuses after a change of it, flushed or not`(isFlushed: Bool) async throws {
    let engine = try await Engine.open(at: "db", environment: .memory())
    try await engine.put([rowKey("k"): [0]])
    #expect(try await accepts(engine, guarding: guardKey) {})
    let changes: [(key: String, value: [UInt8]?, isAccepted: Bool)] = [
      ("j", [1], true), ("k", [1], false), ("l", [1], true), ("k", nil, false), ("j", nil, true),
    ]
    for change in changes {
      let isAccepted = try await accepts(engine, guarding: guardKey) {
        try await engine.put([rowKey(change.key): change.value])
        if isFlushed { try await engine.flush() }
      }
      #expect(isAccepted == change.isAccepted, "\(change)")
    }
    try await engine.close()
  }

  @Test(arguments: [false, true])
  func `A guarded range refuses after an insertion, a change or a deletion in it`(
    isFlushed: Bool
  ) async throws {
    let engine = try await Engine.open(at: "db", environment: .memory())
    try await engine.put([rowKey("c"): [0], rowKey("e"): [0], rowKey("h"): [0]])
    #expect(try await accepts(engine, guarding: guardKey) {})
    let changes: [(key: String, value: [UInt8]?, isAccepted: Bool)] = [
      ("c", [1], true), ("e", [1], false), ("f", [1], false), ("d", [1], false), ("h", [1], true),
      ("f", nil, false), ("g", nil, false), ("h", nil, true), ("c", nil, true),
    ]
    for change in changes {
      let isAccepted = try await accepts(engine, guarding: guardRange) {
        try await engine.put([rowKey(change.key): change.value])
        if isFlushed { try await engine.flush() }
      }
      #expect(isAccepted == change.isAccepted, "\(change)")
    }
    try await engine.close()
  }

  @Test func `A flush of other rows causes no refusal, unless too much was flushed`() async throws {
    var options = EngineOptions()
    options.recentKeysSize = 200
    let engine = try await Engine.open(at: "db", options: options, environment: .memory())
    #expect(try await accepts(engine, guarding: guardKey) {})
    for guards in [guardKey, guardRange] {
      #expect(
        try await accepts(engine, guarding: guards) {
          try await engine.put([rowKey("other"): [1]])
          try await engine.flush()
        })
      #expect(
        try await !accepts(engine, guarding: guards) {
          for number in 0..<50 { try await engine.put([rowKey("n\(number)"): [1]]) }
          try await engine.flush()
        })
    }
    try await engine.close()
  }

  @Test func `Guards agree with a scan of all commits`() async throws {
    for seed in Seeds.first(4) {
      var random = OndolTestKit.SeededRandom(seed: seed)
      let engine = try await Engine.open(at: "db", options: tinyOptions(), environment: .memory())
      #expect(try await accepts(engine, guarding: guardKey) {})
      for round in 0..<60 {
        let (first, length) = (random.below(40), random.below(10))
        let touched = (0..<random.below(12)).map { _ in random.below(40) }
        let isAccepted = try await accepts(
          engine,
          guarding: { batch in
            batch.guardUnchanged(
              from: rowKey(name(first)).bytes, to: rowKey(name(first + length)).bytes)
          },
          after: {
            for number in touched {
              try await engine.put([
                rowKey(name(number)): random.chance(1, in: 4) ? nil : random.bytes(200)
              ])
              if random.chance(1, in: 8) { try await engine.flush() }
            }
          })
        let isTouched = touched.contains { (first..<(first + length)).contains($0) }
        #expect(isAccepted == !isTouched, "SEED=\(seed) round \(round)")
      }
      try await engine.close()
    }
    func name(_ number: Int) -> String { "n" + String(100 + number) }
  }
}
