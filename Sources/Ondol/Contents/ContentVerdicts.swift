// The decisions about some contents on the basis of one snapshot, without a clock or files. The
// batch guards everything that a decision is based on.

internal import OndolEngine

/// The decisions about some contents, and the commit that carries them out.
struct ContentVerdicts: Sendable {
  private(set) var batch = Batch()
  /// The locations of the reclaimed contents.
  private(set) var givenUp: [ContentLocation] = []
  /// Some contents may be reclaimed later, at an unknown time.
  private(set) var mustWait = false
  /// Some must be checked again after the grace period.
  private(set) var hasNewReleases = false

  /// The holds of contents that were derived from reclaimed ones.
  private var derived = ContentHolding()

  private let rows: Rows
  private let retained: SequenceNumber
  private let latestRelease: Int64
  private let now: Int64

  /// - Parameters:
  ///   - retained: the newest commit of which no reader sees an older state.
  ///   - latestRelease: a release at this time, in microseconds since 1970, is old enough.
  init(
    on digests: [BlobDigest], retained: SequenceNumber, releasedBy latestRelease: Int64,
    _ now: Int64, _ rows: Rows
  ) throws(DatabaseError) {
    self.rows = rows
    self.retained = retained
    self.latestRelease = latestRelease
    self.now = now
    batch.basis = rows.snapshot.sequence
    var namer = RowNamer(rows)
    for digest in digests { try judge(digest, &namer) }
    // Last, because a child may have been found to be held.
    if !derived.isEmpty {
      try derived.settle(into: &batch, rows)
      hasNewReleases = true
    }
  }

  private mutating func judge(
    _ digest: BlobDigest, _ namer: inout RowNamer
  ) throws(DatabaseError) {
    let release = try rows.release(of: digest)
    let lease = try rows.lease(of: digest)
    let isLeased = lease.map { $0.end > now } ?? false
    // A lease that is still running is checked when it ends.
    if isLeased { return }
    var isHeld = false
    var stale: [[UInt8]] = []
    try rows.forEachHolder(of: digest) { (row) throws(DatabaseError) in
      isHeld = try namer.isLive(row)
      if !isHeld { stale.append(row) }
      return !isHeld
    }
    if !isHeld, stale.isEmpty, let release {
      guard release.time <= latestRelease else { return }
      guard release.sequence <= retained else {
        mustWait = true
        return
      }
    }
    guardRows(of: digest)
    for row in stale { batch.delete(ContentKey.holder(digest, row).bytes) }
    if lease != nil { batch.delete(ContentKey.lease(digest).bytes) }
    if !isHeld, !stale.isEmpty {
      // Its holders were dropped with their collection. The time of that is not recorded, so it
      // counts as now.
      let pending = ContentRelease.pending
      batch.put(
        ContentKey.release(digest).bytes, pending.bytes, stamps: ContentRelease.stamps)
      hasNewReleases = true
      return
    }
    if release != nil { batch.delete(ContentKey.release(digest).bytes) }
    if !isHeld, let location = try rows.location(of: digest) {
      batch.delete(ContentKey.location(digest).bytes)
      givenUp.append(location)
      if case .parts(let place) = location {
        LooseParts(place.id, .givenUp, length: place.length).put(into: &batch)
      }
      try DerivedRows.release(childrenOf: digest, holding: &derived, batch: &batch, rows)
    }
  }

  private mutating func guardRows(of digest: BlobDigest) {
    let holders = ContentKey.holders(of: digest)
    batch.guardUnchanged(from: holders.lower.bytes, to: holders.upper.bytes)
    for key in [
      ContentKey.location(digest), ContentKey.lease(digest), ContentKey.release(digest),
    ] {
      batch.guardUnchanged(key.bytes)
    }
  }
}

/// Contents to check.
struct ContentCandidates: Sendable {
  var digests: [BlobDigest] = []
  /// After this one there are more; nil at the end.
  var last: BlobDigest?
  /// The time in the first row that is not due yet.
  var next: Int64?
  /// The newest release among them.
  var newest: SequenceNumber?
}

extension Rows {
  /// Some contents with a release at `time` or earlier.
  func releases(
    after digest: BlobDigest?, notAfter time: Int64
  ) throws(DatabaseError) -> ContentCandidates {
    try candidates(ContentKey.releases, after: digest, notAfter: time) {
      (row) throws(MalformedBytes) in
      let release = try ContentRelease(row)
      return (release.time, release.sequence)
    }
  }

  /// Some contents with a lease that ends at `time` or earlier.
  func leases(
    after digest: BlobDigest?, notAfter time: Int64
  ) throws(DatabaseError) -> ContentCandidates {
    try candidates(ContentKey.leases, after: digest, notAfter: time) {
      (row) throws(MalformedBytes) in
      (try ContentLease(row).end, nil)
    }
  }

  private func candidates(
    _ keyspace: Keyspace, after digest: BlobDigest?, notAfter time: Int64,
    _ decode: (RawSpan) throws(MalformedBytes) -> (Int64, SequenceNumber?)
  ) throws(DatabaseError) -> ContentCandidates {
    var found = ContentCandidates()
    let range = digest.map { ContentKey.all(keyspace, after: $0) } ?? ContentKey.all(keyspace)
    var walk = RangeWalk(self, [range])
    while try walk.next() {
      let digest = try ContentKey.digest(in: walk.cursor.key)
      let row = try walk.value.array
      let moment: (time: Int64, sequence: SequenceNumber?)
      do throws(MalformedBytes) {
        moment = try decode(row.bytes)
      } catch {
        throw DatabaseError(
          .dataLoss, "a row of the content \(digest.hex) is damaged: \(error.reason)")
      }
      guard moment.time <= time else {
        found.next = min(found.next ?? moment.time, moment.time)
        continue
      }
      found.digests.append(digest)
      if let sequence = moment.sequence { found.newest = max(found.newest ?? .zero, sequence) }
      guard found.digests.count < ContentReclaimer.together else {
        found.last = digest
        break
      }
    }
    return found
  }
}
