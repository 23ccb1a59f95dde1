// Batches that are never committed, laid above a snapshot one after the other, for whoever wants to
// know what a long row of commits would come to. Few are laid above each other: one that is not
// smaller than the next above it by half becomes one with it, so that a read looks into as many as
// a number of rows has binary digits.

/// A snapshot, and the batches above it.
package struct SnapshotLayers: Sendable {
  private struct Layer: Sendable {
    /// The rows that were put, and nil for those that were deleted.
    var rows: [[UInt8]: [UInt8]?]
    /// What is below, with this above it.
    var snapshot: Snapshot
  }

  private let base: Snapshot
  private var layers: [Layer] = []

  package init(_ base: Snapshot) {
    self.base = base
  }

  /// All of it.
  package var snapshot: Snapshot { layers.last?.snapshot ?? base }

  /// Lays a batch above all others. Stamps get this number and time; what the batch guards is not
  /// asked.
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
