// One engine's run. It loads texts in commits of some hundred, puts some more one by one, and then
// reads the ten best results of many questions. Each question runs once before it is timed. The
// total counts are compared between the engines, untimed.

import BenchmarkKit
import Foundation
import Peers

struct SearchRun {
  let plan: Plan
  let directory: String

  func measure<Store: SearchStore>(_ type: Store.Type) async throws -> SuiteResult {
    var result = SuiteResult(engine: type.name, settings: type.settings)
    let place = directory + "/texts"
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    let store = try await type.open(place)
    try await load(store, &result)
    try await put(store, &result)
    for workload in Workload.questions where plan.workloads.contains(workload) {
      try await ask(store, workload, &result)
    }
    try await store.close()
    if type == OndolSearchStore.self, plan.workloads.contains(.besideSearches) {
      result.note(
        Workload.besideSearches, try await OndolSearchStore.besideSearches(plan, in: directory))
    }
    return result
  }

  private func load(_ store: some SearchStore, _ result: inout SuiteResult) async throws {
    var time = 0.0
    for start in stride(from: 0, to: plan.documents, by: Plan.batchSize) {
      let batch = Texts.batch(start..<min(start + Plan.batchSize, plan.documents))
      time += try await microseconds { try await store.put(batch) }
    }
    time += try await microseconds { try await store.settle() }
    result.note(Workload.load, Double(plan.documents) / time * 1e6)
    result.note(Workload.size, Double(bytes(in: directory + "/texts")) / 1e6)
  }

  private func bytes(in directory: String) -> Int {
    let files = FileManager.default.enumerator(atPath: directory)
    var sum = 0
    while let name = files?.nextObject() as? String {
      let attributes = try? FileManager.default.attributesOfItem(atPath: directory + "/" + name)
      if attributes?[.type] as? FileAttributeType == .typeRegular {
        sum += attributes?[.size] as? Int ?? 0
      }
    }
    return sum
  }

  private func put(_ store: some SearchStore, _ result: inout SuiteResult) async throws {
    guard plan.workloads.contains(.put) else { return }
    let texts = Texts.batch(plan.documents..<plan.documents + plan.puts)
    let time = try await microseconds {
      for text in texts { try await store.put([text]) }
    }
    result.note(Workload.put, time / Double(plan.puts))
    try await store.settle()
  }

  private func ask<Store: SearchStore>(
    _ store: Store, _ workload: Workload, _ result: inout SuiteResult
  ) async throws {
    let questions = Texts.questions(workload, plan.questions)
    guard let first = questions.first, store.canAnswer(first) else { return }
    guard try await store.top(questions) > 0 else { throw NothingFound(workload: workload) }
    var times: [Double] = []
    for _ in 0..<plan.passes {
      times.append(
        try await microseconds { _ = try await store.top(questions) } / Double(questions.count))
    }
    var checksum: UInt64?
    if Store.findsWords {
      checksum = 0
      for question in questions {
        checksum = (checksum ?? 0) &* 31 &+ UInt64(try await store.count(question))
      }
    }
    result.note(workload, median(times), checksum: checksum)
  }
}

private struct NothingFound: Error {
  var workload: Workload
}
