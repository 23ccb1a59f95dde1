// The expected results of reads, computed from the documents themselves, without any engine.

import Peers

struct Reference {
  private(set) var checksums: [Workload: UInt64] = [:]

  private typealias Row = (key: (UInt64, UInt64), number: Int)
  private let dataset: Dataset

  init(_ plan: Plan, _ dataset: Dataset) {
    self.dataset = dataset
    let queries = Queries(plan, dataset)
    let gets: [(Workload, [Gets])] = [
      (.getUniform, queries.uniformGets), (.getHot, queries.hotGets),
      (.reopen, queries.reopenGets), (.getLimited, queries.limitedGets),
      (.getEqual, queries.equalGets),
      (.getSmall, queries.smallGets),
    ]
    for (workload, passes) in gets where plan.includes(workload) {
      checksums[workload] = fold(passes.map { dataset.checksum(of: $0.numbers) })
    }
    let puts: [(Workload, Range<Int>)] = [
      (.putProcess, queries.putsProcess), (.putPower, queries.putsPower),
      (.batchPower, queries.batchesPower),
    ]
    for (workload, numbers) in puts where plan.includes(workload) {
      checksums[workload] = fold([dataset.checksum(of: numbers)])
    }
    if plan.includes(.sizeOverwritten) {
      checksums[.sizeOverwritten] = checksum(
        of: sorted(plan.documentsOverwritten)[...], version: Plan.overwrites)
    }
    if plan.includesAny(of: [.load, .fullScan, .seek, .seekOne]) { addScans(plan, queries) }
  }

  private mutating func addScans(_ plan: Plan, _ queries: Queries) {
    let rows = sorted(plan.documents)
    if plan.includesAny(of: [.load, .fullScan]) {
      let all = checksum(of: rows[...])
      checksums[.load] = all
      checksums[.fullScan] = fold(Array(repeating: all, count: plan.scans))
    }
    for (workload, limit) in [(Workload.seek, Plan.rowsPerSeek), (.seekOne, 1)]
    where plan.includes(workload) {
      checksums[workload] = fold(
        queries.seekKeys.map { pass in
          var checksum = Checksum()
          for key in pass {
            add(rows[firstIndex(in: rows, notBelow: key)...].prefix(limit), to: &checksum)
          }
          return checksum.value
        })
    }
  }

  private func sorted(_ documents: Int) -> [Row] {
    (0..<documents).map { (key: dataset.key($0), number: $0) }.sorted { $0.key < $1.key }
  }

  private func checksum(of rows: ArraySlice<Row>, version: Int = 0) -> UInt64 {
    var checksum = Checksum()
    add(rows, version: version, to: &checksum)
    return checksum.value
  }

  private func add(_ rows: ArraySlice<Row>, version: Int = 0, to checksum: inout Checksum) {
    var value: [UInt8] = []
    for row in rows {
      let words = (row.key.0.bigEndian, row.key.1.bigEndian)
      unsafe withUnsafeBytes(of: words) { unsafe checksum.add($0.baseAddress, $0.count) }
      dataset.add(row.number, version: version, to: &checksum, through: &value)
    }
  }

  private func firstIndex(in rows: [Row], notBelow key: (UInt64, UInt64)) -> Int {
    var low = 0
    var high = rows.count
    while low < high {
      let middle = (low + high) / 2
      if rows[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
