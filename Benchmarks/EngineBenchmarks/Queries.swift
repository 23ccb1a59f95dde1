// Which documents are read and written, chosen before anything is timed, and what reading them must
// give: the reference is computed from the documents themselves, without any engine.

import CPeers
import Peers

/// The keys of every workload, the same for every engine and run.
struct Queries {
  var warming: KeyList
  var uniform: [KeyList]
  var hot: [KeyList]
  var seeks: [KeyList]
  var reopens: [KeyList]
  /// Documents after the loaded ones.
  var putsProcess: Range<Int>
  var putsPower: Range<Int>

  private(set) var uniformNumbers: [[Int]]
  private(set) var hotNumbers: [[Int]]
  private(set) var reopenNumbers: [[Int]]
  private(set) var seekKeys: [[(UInt64, UInt64)]]

  init(_ plan: Plan, _ dataset: Dataset) {
    var random = SplitMix(state: 2026)
    func pick(_ count: Int, of numbers: Int, times stride: Int = 1) -> [Int] {
      (0..<count).map { _ in Int.random(in: 0..<numbers, using: &random) * stride }
    }
    func keys(_ numbers: [Int]) -> KeyList {
      var list = KeyList()
      list.reserve(numbers.count)
      for number in numbers { list.append(dataset.key(number)) }
      return list
    }
    let documents = plan.documents
    let hotCount = min(Plan.hotKeys, documents)
    let passes = 0..<plan.passes

    warming = keys(pick(plan.getsPerPass, of: documents))
    uniformNumbers = passes.map { _ in pick(plan.getsPerPass, of: documents) }
    hotNumbers = passes.map { _ in
      pick(plan.hotGetsPerPass, of: hotCount, times: documents / hotCount)
    }
    reopenNumbers = (0..<plan.reopens).map { _ in pick(1, of: documents) }
    seekKeys = passes.map { _ in
      (0..<plan.seeksPerPass).map { _ in (random.next(), random.next()) }
    }
    uniform = uniformNumbers.map(keys)
    hot = hotNumbers.map(keys)
    reopens = reopenNumbers.map(keys)
    seeks = seekKeys.map { pass in
      var list = KeyList()
      for key in pass { list.append(key) }
      return list
    }
    putsProcess = documents..<documents + plan.putsProcess
    putsPower = putsProcess.upperBound..<putsProcess.upperBound + plan.putsPower
  }
}

/// What reading must give.
struct Reference {
  private(set) var checksums: [Workload: UInt64] = [:]

  init(_ plan: Plan, _ dataset: Dataset) {
    let queries = Queries(plan, dataset)
    let sorted = (0..<plan.documents)
      .map { (key: dataset.key($0), number: $0) }
      .sorted { $0.key < $1.key }

    var value: [UInt8] = []
    func add(_ number: Int, to checksum: inout Checksum) {
      value.removeAll(keepingCapacity: true)
      dataset.appendValue(number, to: &value)
      unsafe value.withUnsafeBytes { unsafe checksum.add($0.baseAddress, $0.count) }
    }
    func addRow(_ row: (key: (UInt64, UInt64), number: Int), to checksum: inout Checksum) {
      let words = (row.key.0.bigEndian, row.key.1.bigEndian)
      unsafe withUnsafeBytes(of: words) { unsafe checksum.add($0.baseAddress, $0.count) }
      add(row.number, to: &checksum)
    }
    func gets(_ passes: [[Int]]) -> UInt64 {
      fold(
        passes.map { pass in
          var checksum = Checksum()
          for number in pass { add(number, to: &checksum) }
          return checksum.value
        })
    }

    checksums[.getUniform] = gets(queries.uniformNumbers)
    checksums[.getHot] = gets(queries.hotNumbers)
    checksums[.reopen] = gets(queries.reopenNumbers)
    checksums[.putProcess] = gets([Array(queries.putsProcess)])
    checksums[.putPower] = gets([Array(queries.putsPower)])

    var all = Checksum()
    for row in sorted { addRow(row, to: &all) }
    checksums[.load] = all.value
    checksums[.fullScan] = fold(Array(repeating: all.value, count: plan.scans))

    checksums[.seek] = fold(
      queries.seekKeys.map { pass in
        var checksum = Checksum()
        for key in pass {
          let first = sorted.firstIndex(notBelow: key)
          for row in sorted[first...].prefix(Plan.rowsPerSeek) { addRow(row, to: &checksum) }
        }
        return checksum.value
      })
  }
}

/// One checksum for many.
func fold(_ checksums: [UInt64]) -> UInt64 {
  checksums.reduce(0) { peer_fold($0, $1) }
}

extension [(key: (UInt64, UInt64), number: Int)] {
  fileprivate func firstIndex(notBelow key: (UInt64, UInt64)) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
