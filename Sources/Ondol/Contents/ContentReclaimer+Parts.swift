// Frees space on a store: removes parts of contents that no location refers to. Rows lead to them
// (LooseParts), whichever process left them. Parts of a reclaimed content stay until every process
// reads as of a later commit. A process that has the content open keeps itself from that.
//
// Any process may do this, several at once: every commit guards what it was derived from, and parts
// that are gone need no removal. A process completes what it has begun. The others check from time
// to time for what a dead process has left.

internal import OndolEngine

extension ContentReclaimer {
  /// Microseconds without a sign of life after which an upload counts as abandoned. If the uploader
  /// is alive after all, its commit is refused.
  static let patienceWithUploads: Int64 = 3_600_000_000

  /// Removes parts of contents that no process will read.
  func removeLooseParts(
    _ agenda: inout Agenda, _ report: inout ReclaimReport
  ) async throws(DatabaseError) {
    guard let parts = store.contents.parts else { return }
    var last: LooseParts?
    var hasFlushed = false
    repeat {
      let found = try await store.read { [last] (rows) throws(DatabaseError) in
        try rows.looseParts(after: last, atMost: Self.together)
      }
      last = found.count < Self.together ? nil : found.last
      for loose in found {
        try refuseWhenCancelled("the rest is reclaimed later")
        if !hasFlushed, loose.state == .givenUp, loose.sequence > seenByAll {
          hasFlushed = true
          try await store.withEngine { (engine) throws(EngineError) in
            try await engine.flush(shardOf: ContentKey.locations.prefix)
          }
        }
        guard let state = try await removableState(of: loose, parts, &agenda) else { continue }
        try await rethrowing { () async throws(EngineError) in
          try await parts.remove(loose.id, state)
        }
        report.bytes += loose.length
        await environment.rest(Self.rest)
      }
    } while last != nil
  }

  /// No process reads a state older than this commit's. History does not count: it refers to
  /// contents, and contents that it refers to are not reclaimed.
  private var seenByAll: SequenceNumber {
    engine.retainedThrough(shardOf: ContentKey.locations.prefix)
  }

  /// The state of the row whose parts may be removed; nil when they may not be yet.
  private func removableState(
    of loose: LooseParts, _ parts: RemoteParts, _ agenda: inout Agenda
  ) async throws(DatabaseError) -> LooseParts.State? {
    switch loose.state {
    case .unwanted: return .unwanted
    case .givenUp:
      if loose.sequence <= seenByAll { return .givenUp }
      agenda.mustWait = true
      return nil
    case .uploading:
      let now = try await rethrowing { () async throws(EngineError) in try await parts.now() }
      let rest = loose.time &+ Self.patienceWithUploads &- now
      guard rest <= 0 else {
        agenda.note(environment.now() &+ rest)
        return nil
      }
      let isTaken = try await rethrowing { () async throws(EngineError) in
        try await parts.takeForAbandoned(loose)
      }
      return isTaken ? .unwanted : nil
    }
  }
}

extension Rows {
  fileprivate static func looseParts(
    _ key: [UInt8], _ row: [UInt8]
  ) throws(DatabaseError) -> LooseParts {
    do throws(MalformedBytes) {
      return try LooseParts(key: key.bytes, row.bytes)
    } catch {
      throw DatabaseError(.dataLoss, "a row of parts of a content is damaged: \(error.reason)")
    }
  }

  /// Some parts that no location refers to, after others.
  fileprivate func looseParts(
    after last: LooseParts?, atMost limit: Int
  ) throws(DatabaseError) -> [LooseParts] {
    var range = ContentKey.all(Keyspace(rawValue: LooseParts.keyspace))
    if let last { range.lower = last.key + [0] }
    var walk = RangeWalk(self, [range])
    var found: [LooseParts] = []
    while found.count < limit, try walk.next() {
      found.append(try Self.looseParts(walk.cursor.key.array, try walk.value.array))
    }
    return found
  }
}

extension Batch {
  /// Makes the content whose bytes are at `location` stored. Returns false when they were taken for
  /// abandoned; the batch is then of no use.
  mutating func makeStored(
    _ digest: BlobDigest, at location: ContentLocation, _ rows: Rows
  ) throws(DatabaseError) -> Bool {
    put(ContentKey.location(digest).bytes, location.bytes.bytes)
    guard case .parts(let place) = location else { return true }
    let key = LooseParts.key(place.id, .uploading)
    guardUnchanged(key.bytes)
    guard try rows.row(key) != nil else { return false }
    delete(key.bytes)
    return true
  }
}
