// Batches that are never committed, stacked on a snapshot, for dry runs of a long series of
// commits. There are few layers: one that is not smaller than the next above it by half is merged
// with it. So a read looks into at most as many layers as the number of rows has binary digits.

/// A snapshot, and the batches on top.
package struct SnapshotLayers: Sendable {
  private struct Layer: Sendable {
    /// The rows that were put, and nil for deleted ones.
    var rows: [[UInt8]: [UInt8]?]
    /// Everything below, with this layer on top.
    var snapshot: Snapshot
  }

  private let base: Snapshot
  private var layers: [Layer] = []

  package init(_ base: Snapshot) {
    self.base = base
  }

  /// All layers together.
  package var snapshot: Snapshot { layers.last?.snapshot ?? base }

  /// Adds a batch on top of all others. Stamps get this number and time; the batch's guards are not
  /// checked.
  ///
  /// - Complexity: O(n log n) in its rows, and O(log² n) of all rows so far for each of them, on
  ///   average.
  package mutating func add(
    _ batch: consuming Batch, stampedWith sequence: SequenceNumber, time: Int64
  ) {
    var batch = batch
    var rows: [[UInt8]: [UInt8]?] = [:]
    let frame = batch.takeFrame(stampedWith: sequence, time: time)
    let payload = frame.bytes.extracting(droppingFirst: FrameHeader.length)
    var reader = OperationReader(payload)
    do throws(MalformedBytes) {
      while let operation = try reader.next() {
        rows[operation.key.array] = .some(operation.kind == .put ? operation.value.array : nil)
      }
    } catch {
      preconditionFailure("a batch of our own making cannot be malformed: \(error)")
    }
    while let below = layers.last, below.rows.count < 2 * rows.count {
      rows.merge(below.rows) { newer, _ in newer }
      layers.removeLast()
    }
    var merged = Batch()
    for (key, value) in rows {
      if let value { merged.put(key.bytes, value.bytes) } else { merged.delete(key.bytes) }
    }
    layers.append(Layer(rows: rows, snapshot: snapshot.overlaid(by: merged, time: time)))
  }
}
