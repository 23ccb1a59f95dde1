// The documents to read and write, chosen before anything is timed and the same for every engine
// and run.

import CPeers
import Peers

/// Gets that are timed together: the documents' numbers and their keys.
struct Gets {
  var numbers: [Int]
  var keys: KeyList
}

struct Queries {
  var warming: KeyList
  var uniformGets: [Gets]
  var hotGets: [Gets]
  var reopenGets: [Gets]
  var limitedGets: [Gets]
  var smallGets: [Gets]
  var equalGets: [Gets]
  /// Different keys, because rows are in memory after they have been read.
  private(set) var equalSingle: KeyList
  /// For each of the readers beside a writer, the gets that it repeats.
  var beside: [Gets]
  private(set) var seekKeys: [[(UInt64, UInt64)]]
  private(set) var seeks: [KeyList]

  // Documents after the loaded ones.
  var putsProcess: Range<Int>
  var putsPower: Range<Int>
  var batchesPower: Range<Int>
  var mixed: Range<Int>
  var shared: Range<Int>

  var uniform: [KeyList] { uniformGets.map(\.keys) }
  var hot: [KeyList] { hotGets.map(\.keys) }
  var reopens: [KeyList] { reopenGets.map(\.keys) }
  var limited: [KeyList] { limitedGets.map(\.keys) }
  var equal: [KeyList] { equalGets.map(\.keys) }
  var small: [KeyList] { smallGets.map(\.keys) }

  init(_ plan: Plan, _ dataset: Dataset) {
    var random = SplitMix(state: 2026)
    func pick(_ count: Int, of numbers: Int, times stride: Int = 1) -> Gets {
      let numbers = (0..<count).map { _ in Int.random(in: 0..<numbers, using: &random) * stride }
      return Gets(numbers: numbers, keys: dataset.keys(numbers))
    }
    let documents = plan.documents
    let hotCount = min(Plan.hotKeys, documents)
    let passes = 0..<plan.passes

    warming = pick(plan.getsPerPass, of: documents).keys
    uniformGets = passes.map { _ in pick(plan.getsPerPass, of: documents) }
    hotGets = passes.map { _ in
      pick(plan.hotGetsPerPass, of: hotCount, times: documents / hotCount)
    }
    reopenGets = (0..<plan.reopens).map { _ in pick(1, of: documents) }
    seekKeys = passes.map { _ in
      (0..<plan.seeksPerPass).map { _ in
        // Between the documents if their order is random; otherwise at one of them.
        plan.keyOrder == .random
          ? (random.next(), random.next())
          : dataset.key(Int.random(in: 0..<documents, using: &random))
      }
    }
    seeks = seekKeys.map { pass in
      var list = KeyList()
      for key in pass { list.append(key) }
      return list
    }
    limitedGets = passes.map { _ in pick(plan.limitedGetsPerPass, of: documents) }
    smallGets = passes.map { _ in pick(plan.getsPerPass, of: plan.documentsSmall) }
    beside = (0..<Plan.readers).map { _ in pick(2_000, of: documents) }
    equalGets = passes.map { _ in pick(plan.equalGetsPerPass, of: documents) }
    equalSingle = pick(plan.equalGetsPerPass, of: documents).keys

    var first = documents
    func next(_ count: Int) -> Range<Int> {
      defer { first += count }
      return first..<first + count
    }
    putsProcess = next(plan.putsProcess)
    putsPower = next(plan.putsPower)
    batchesPower = next(plan.batchesPower * Plan.documentsPerBatch)
    mixed = next(plan.mixedOperations)
    shared = next(Plan.writers * plan.rowsPerWriter)
  }
}

extension Dataset {
  func keys(_ numbers: some Sequence<Int>) -> KeyList {
    var list = KeyList()
    list.reserve(numbers.underestimatedCount)
    for number in numbers { list.append(key(number)) }
    return list
  }

  /// Returns the expected result of reading these documents, in this order.
  func checksum(of numbers: some Sequence<Int>) -> UInt64 {
    var checksum = Checksum()
    var value: [UInt8] = []
    for number in numbers { add(number, version: 0, to: &checksum, through: &value) }
    return checksum.value
  }

  /// Adds a document's value, made in `value`.
  func add(
    _ number: Int, version: Int, to checksum: inout Checksum, through value: inout [UInt8]
  ) {
    value.removeAll(keepingCapacity: true)
    appendValue(number, version: version, to: &value)
    unsafe value.withUnsafeBytes { unsafe checksum.add($0.baseAddress, $0.count) }
  }
}

/// One checksum for many.
func fold(_ checksums: [UInt64]) -> UInt64 {
  checksums.reduce(0) { peer_fold($0, $1) }
}
