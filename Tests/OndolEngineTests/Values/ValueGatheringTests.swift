// Many small value files are merged, and each value moves seldom: in a model of flushes and merges
// that knows files only as the manifest does, and in the engine.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct ValueGatheringTests {
  private let fileSize = 64 << 20

  private func files(_ sizes: [UInt64], from number: UInt64 = 1) -> ValueFileStates {
    var values = ValueFileStates()
    for (index, size) in sizes.enumerated() {
      let number = FileNumber(rawValue: number + UInt64(index))
      values.add(ValueFileMetadata(number: number, salt: 1, sizeBytes: size + 64, values: 1))
      values.take([ValueReference(file: number, bytes: size)])
    }
    return values
  }

  private func segment(_ values: ValueFileStates) -> SegmentMetadata {
    ManifestSamples.segment(
      1_000_000, at: 1,
      values: values.files.values.sorted { $0.number < $1.number }.map {
        ValueReference(file: $0.number, bytes: $0.recordBytes)
      })
  }

  @Test func `few files stay as they are, however small`() {
    let values = files(Array(repeating: 1_000, count: ValueGathering.fewFiles))
    let gathering = ValueGathering(values, fileSize: fileSize)
    #expect(gathering.filesToEmpty(merging: [segment(values)]).isEmpty)
    #expect(gathering.fileSize == UInt64(fileSize))
  }

  @Test func `many small files are emptied together, and large ones stay`() {
    let small = Array(repeating: UInt64(4 << 20), count: 140)
    let values = files(small + Array(repeating: UInt64(40 << 20), count: 20))
    let gathering = ValueGathering(values, fileSize: fileSize)
    let emptied = gathering.filesToEmpty(merging: [segment(values)])
    #expect(Set(emptied.map(\.rawValue)) == Set(1...140))
    // A merge that meets few of them leaves them, because its output would be small again.
    let few = files(Array(repeating: 4 << 20, count: 8))
    #expect(gathering.filesToEmpty(merging: [segment(few)]).isEmpty)
  }

  @Test func `files grow with the shard`() {
    let values = files(Array(repeating: 256 << 20, count: 4_096))
    #expect(ValueGathering(values, fileSize: fileSize).fileSize > 1 << 30)
  }

  /// A shard during a load: each round has eight flushes of 4 MiB, and a merge of a range of keys,
  /// or of all.
  @Test(arguments: [1, 4])
  func `a load makes few files and writes each value few times`(_ stretches: Int) {
    var shares: [[UInt64: UInt64]] = Array(repeating: [:], count: stretches)
    var sizes: [UInt64: UInt64] = [:]
    var (next, loaded, copied): (UInt64, UInt64, UInt64) = (1, 0, 0)
    let flushed: UInt64 = 4 << 20
    for round in 0..<800 {
      for _ in 0..<8 {
        sizes[next] = flushed
        for stretch in 0..<stretches { shares[stretch][next] = flushed / UInt64(stretches) }
        next += 1
        loaded += flushed
      }
      var values = ValueFileStates()
      for (number, size) in sizes {
        values.add(
          ValueFileMetadata(
            number: FileNumber(rawValue: number), salt: 1, sizeBytes: size + 64, values: 1))
      }
      for stretch in shares {
        values.take(
          stretch.map { ValueReference(file: FileNumber(rawValue: $0.key), bytes: $0.value) })
      }
      let merged = round % stretches
      let gathering = ValueGathering(values, fileSize: fileSize)
      let emptied = gathering.filesToEmpty(merging: [
        ManifestSamples.segment(
          1, at: 1,
          values: shares[merged].map {
            ValueReference(file: FileNumber(rawValue: $0.key), bytes: $0.value)
          })
      ])
      var bytes: UInt64 = 0
      for file in emptied { bytes += shares[merged].removeValue(forKey: file.rawValue) ?? 0 }
      copied += bytes
      while bytes > 0 {
        let size = min(bytes, gathering.fileSize)
        (sizes[next], shares[merged][next]) = (size, size)
        next += 1
        bytes -= size
      }
      let alive = Set(shares.flatMap(\.keys))
      sizes = sizes.filter { alive.contains($0.key) }
    }
    // 25 GiB once came in 6,400 files.
    #expect(sizes.count < 900, "\(sizes.count) files")
    #expect(Double(copied) < 1.5 * Double(loaded), "\(Double(copied) / Double(loaded)) copies")
    let named = shares.reduce(0) { $0 + $1.count }
    #expect(named < 1_000 * stretches, "\(named) references")
  }

  @Test func `values survive being put together, and small files go`() throws {
    try SimulationExecutor.run(seed: 5) { executor in
      let world = SimulatedWorld(seed: 5, threads: executor)
      var options = tinyOptions(shards: 1)
      options.memtableSize = 2 << 10
      options.valueThreshold = 50
      options.valueFileSize = 16 << 10
      let engine = try await Engine.open(
        at: "/db", options: options, environment: world.environment)
      var random = OndolTestKit.SeededRandom(seed: 5)
      var model: [[UInt8]: [UInt8]] = [:]
      for _ in 0..<400 {
        var rows: [[UInt8]: [UInt8]?] = [:]
        for _ in 0..<4 {
          let (key, value) = (rowKey("k\(random.below(2_000))"), random.bytes(300))
          model[key] = value
          rows[key] = value
        }
        try await engine.put(rows)
      }
      try await engine.compact()
      #expect(engine.storage.counters.current.flushes > 2 * ValueGathering.fewFiles)
      let files = engine.storage.manifest.state.shards[0].valueFiles
      #expect(files.count <= ValueGathering.fewFiles, "\(files.count)")
      #expect(try engine.rows().count == model.count)
      for (key, value) in model {
        #expect(try await engine.snapshot().get(key) == value)
      }
      try await engine.close()
    }
  }
}
