// Decides which of the waiting commits can go together, and what they require of the store. A
// commit that guards rows that an earlier commit of the group writes goes with the next group. By
// then it is known whether it is stale.

/// Makes groups.
struct RemoteSender {
  private let origin: Int64
  private var part: Int64 = 0
  private let keepsHistory: Bool
  /// Nothing is known about flushed rows, so a commit derived from before the base is retried.
  private let recentKeys = RecentKeys(shardCount: 1, limitBytes: 0)

  /// The largest size of a group.
  private static let mostBytes = 4 << 20

  /// - Parameter keepsHistory: whether commits' annotations are sent with them.
  init(origin: Int64, keepsHistory: Bool) {
    self.origin = origin
    self.keepsHistory = keepsHistory
  }

  /// Divides the waiting commits, in order, into one group and those that wait for the next group.
  /// Returns the stale ones.
  mutating func makeGroup(
    of waiting: [RemoteRequest], in window: RemoteWindow
  ) -> (group: RemoteGroup, chosen: [RemoteRequest], later: [RemoteRequest]) {
    let known = window.point
    part += 1
    var group = RemoteGroup(origin: origin, part: part, known: known)
    group.isDurable = false
    var chosen: [RemoteRequest] = []
    var later: [RemoteRequest] = []
    var written = WrittenKeys()
    var bytes = 0
    for request in waiting {
      guard bytes < Self.mostBytes, !written.meet(request.batch) else {
        later.append(request)
        continue
      }
      do throws(EngineError) {
        try refuseStale(request.batch, known, window)
      } catch {
        request.answer(.failure(error))
        continue
      }
      if let ticket = request.batch.ticket, !ticket.take() {
        request.answer(.failure(.cancelled))
        continue
      }
      let (writes, annotation) = request.batch.remoteWrites()
      for write in writes { written.insert(write) }
      bytes += request.batch.payloadLength
      group.guardedKeys += request.batch.guardedKeys
      group.guardedRanges += request.batch.guardedRanges.map { ($0.lower, $0.upper) }
      group.isDurable = group.isDurable || request.durability == .power
      group.commits.append(writes)
      if keepsHistory { group.annotations.append(annotation) }
      chosen.append(request)
    }
    return (group, chosen, later)
  }

  private func refuseStale(
    _ batch: Batch, _ known: CommitPoint, _ window: RemoteWindow
  ) throws(EngineError) {
    guard batch.isGuarded else { return }
    var check = GuardCheck()
    while try !check.isKnown(batch, known.sequence, window.views.current, recentKeys) {
      try check.look(batch)
    }
  }
}

/// The keys that a group writes.
private struct WrittenKeys {
  private var keys: Set<[UInt8]> = []
  /// The prefixes of keys whose remaining bytes are not known yet.
  private var prefixes: [[UInt8]] = []

  mutating func insert(_ write: RemoteWrite) {
    if let stamp = write.keyStamps.map(\.offset).min() {
      prefixes.append(Array(write.key[..<stamp]))
    } else {
      keys.insert(write.key)
    }
  }

  /// Whether one of them is a key that the batch guards, or is in a range that it guards.
  func meet(_ batch: Batch) -> Bool {
    for key in batch.guardedKeys {
      if keys.contains(key) || prefixes.contains(where: { key.starts(with: $0) }) { return true }
    }
    for range in batch.guardedRanges {
      let isMet = keys.contains { key in
        key.bytes.compare(range.lower.bytes) >= 0
          && (range.upper.isEmpty || key.bytes.compare(range.upper.bytes) < 0)
      }
      if isMet { return true }
      let mayBeMet = prefixes.contains { prefix in
        // The keys lie between the prefix and the end of all keys with that prefix.
        (range.upper.isEmpty || prefix.bytes.compare(range.upper.bytes) < 0)
          && (prefix.bytes.compare(range.lower.bytes) >= 0 || range.lower.starts(with: prefix))
      }
      if mayBeMet { return true }
    }
    return false
  }
}
