// The queried documents, chosen before anything is timed and the same for every engine and run, and
// the expected answers, computed from the documents alone.

import BenchmarkKit
import CPeers
import Foundation
import Peers

struct Queries {
  /// Numbers of documents, for each pass.
  private(set) var gets: [[Int]]
  private(set) var equalities: [[Int]]
  /// A person and the first of seven days, for each pass.
  private var weekStarts: [[(user: Int, day: Int)]]
  /// Numbers of documents after which a page begins, for each pass.
  private var pageStarts: [[Int]]
  private var archived: [[Int]]
  /// Numbers of wares, for each pass.
  let wares: [[Int]]

  private let documents: Int
  private let passes: Int

  init(_ plan: Plan) {
    documents = plan.documents
    passes = plan.passes
    let documents = plan.documents
    var random = SplitMix(state: 2026)
    func pick(_ count: Int, _ limit: Int) -> [[Int]] {
      (0..<plan.passes).map { _ in
        (0..<count).map { _ in Int.random(in: 0..<limit, using: &random) }
      }
    }
    gets = pick(plan.getsPerPass, documents)
    equalities = pick(plan.queriesPerPass, documents)
    let users = Record.users(of: documents)
    weekStarts = (0..<plan.passes).map { _ in
      (0..<plan.queriesPerPass).map { _ in
        (
          Int.random(in: 0..<users, using: &random),
          Int.random(in: 0...max(documents / users - 7, 0), using: &random)
        )
      }
    }
    pageStarts = pick(plan.queriesPerPass, documents)
    archived = pick(plan.scansPerPass, Plan.archived)
    wares = pick(plan.queriesPerPass, Ware.count)
  }

  var ids: [[String]] { gets.map { $0.map(Record.id) } }
  var emails: [[String]] { equalities.map { $0.map(Record.email) } }
  var names: [[String]] { archived.map { $0.map(Record.name) } }

  var weeks: [[WeekQuery]] {
    weekStarts.map {
      $0.map { week in
        WeekQuery(user: week.user, dates: (week.day..<week.day + 7).map(Record.date))
      }
    }
  }

  var pages: [[PageQuery]] {
    pageStarts.map {
      $0.map { number in
        PageQuery(
          category: Record.category(number % Record.categories), price: Record.price(number))
      }
    }
  }

  var paths: [PathQuery] {
    (0..<passes).map { pass in
      let number = 10 + 77 * pass % 89
      return PathQuery(lower: "usr/share/doc/\(number)", upper: "usr/share/doc/\(number + 1)")
    }
  }

  // MARK: - Expected results

  /// The expected checksum of each workload that reads.
  func expected(_ plan: Plan) -> [Workload: UInt64] {
    var expected: [Workload: UInt64] = [:]
    let users = Record.users(of: documents)
    expected[.get] = checksum(gets) { [$0] }
    expected[.getOnMainActor] = expected[.get]
    expected[.equality] = checksum(equalities) { [$0] }
    expected[.inSeven] = checksum(weekStarts) { week in
      (week.day..<week.day + 7).map { $0 * users + week.user }.filter { $0 < documents }
    }
    expected[.scan] = checksum(archived, of: Plan.archived) { [$0] }
    if plan.includes(.page) { expected[.page] = pageChecksum() }
    if plan.includes(.decode) {
      expected[.decode] = fold(
        gets.map { pass in
          var checksum = Checksum()
          for number in pass { checksum.add(Record(number, of: documents).checksum) }
          return checksum.value
        })
    }
    if plan.includes(.decodeAll) {
      let sum = (0..<Plan.exported).reduce(UInt64(0)) {
        $0 &+ Record($1, of: Plan.exported).checksum
      }
      expected[.decodeAll] = fold(Array(repeating: sum, count: passes))
    }
    if plan.workloads.contains(where: \.isOfListing) { expectListing(plan.listed, &expected) }
    if plan.workloads.contains(where: \.isOfWares) {
      expected.merge(expectedOfWares(plan)) { _, wares in wares }
    }
    return expected
  }

  private func expectListing(_ count: Int, _ expected: inout [Workload: UInt64]) {
    var deep: UInt64 = 0
    var sections: [String: Int] = [:]
    var packages: [String: Int] = [:]
    var found: [[String]] = Array(repeating: [], count: passes)
    let paths = paths
    for number in 0..<count {
      let file = ListedFile(number, of: count)
      if file.depth > ListedFile.depth { deep += 1 }
      sections[file.section, default: 0] += 1
      if file.ending == ListedFile.ending { packages[file.package, default: 0] += 1 }
      for (pass, query) in paths.enumerated() where query.lower <= file.path {
        if file.path < query.upper { found[pass].append(file.path) }
      }
    }
    func each(_ answer: UInt64) -> UInt64 { fold(Array(repeating: answer, count: passes)) }
    func folded(_ groups: [String: Int]) -> UInt64 {
      var checksum = Checksum()
      for (group, count) in groups.sorted(by: { $0.key < $1.key }) {
        checksum.add(group: group, count: count)
      }
      return checksum.value
    }
    expected[.countAll] = each(UInt64(count))
    expected[.countWhere] = each(deep)
    expected[.groupByIndex] = each(folded(sections))
    expected[.groupByScan] = each(folded(packages))
    expected[.prefixScan] = fold(
      found.map { paths in
        var checksum = Checksum()
        for path in paths.sorted().prefix(PathQuery.length) { checksum.add(path) }
        return checksum.value
      })
  }

  private func checksum<Query>(
    _ passes: [[Query]], of documents: Int? = nil, _ numbers: (Query) -> [Int]
  ) -> UInt64 {
    let users = Record.users(of: documents ?? self.documents)
    return fold(
      passes.map { pass in
        var checksum = Checksum()
        for query in pass {
          for number in numbers(query) {
            checksum.add(name: Record.name(number), user: number % users)
          }
        }
        return checksum.value
      })
  }

  private func pageChecksum() -> UInt64 {
    let byCategory = (0..<Record.categories).map { category in
      stride(from: category, to: documents, by: Record.categories)
        .map { (price: Record.price($0), number: $0) }.sorted { $0.price > $1.price }
    }
    return checksum(pageStarts) { number in
      let all = byCategory[number % Record.categories]
      let price = Record.price(number)
      var low = 0
      var high = all.count
      while low < high {
        let middle = (low + high) / 2
        if all[middle].price >= price { low = middle + 1 } else { high = middle }
      }
      return all[low...].prefix(PageQuery.length).map(\.number)
    }
  }
}

/// One checksum for many.
func fold(_ checksums: [UInt64]) -> UInt64 {
  checksums.reduce(0) { peer_fold($0, $1) }
}
