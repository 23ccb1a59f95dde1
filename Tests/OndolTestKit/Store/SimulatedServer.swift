// The state of the simulated store's server, and its handling of requests. It is a plain value: the
// store keeps it under a lock, and acts as the network before it.

import OndolEngine

/// Its data, and the requests on their way to it.
struct SimulatedServer {
  struct Version {
    var sequence: SequenceNumber
    /// Nil if the row was deleted.
    var value: [UInt8]?
  }

  struct Logged {
    var commit: RemoteCommit
    var part: Int64

    func isOfGroup(of other: Logged) -> Bool {
      part == other.part && commit.origin == other.commit.origin
    }
  }

  struct Kept {
    var annotation: RemoteAnnotation
    /// The time of the commit before.
    var before: Int64
  }

  struct Pin {
    var sequence: SequenceNumber
    var until: Int64
  }

  struct Waiter {
    var point: CommitPoint
    var continuation: CheckedContinuation<Void, Never>
  }

  /// In the order of their bytes.
  var keys: [[UInt8]] = []
  /// The versions of each key, oldest first.
  var versions: [[UInt8]: [Version]] = [:]
  /// The commits after the floor.
  var log: [Logged] = []
  var head = CommitPoint(sequence: .zero, time: 0)
  /// The annotations of commits, oldest first.
  var history: [Kept] = []
  /// Contents, in addition to the rows.
  var contents = SimulatedContents()
  /// The newest commit that a standby has, as far as a client can know.
  var durable = SequenceNumber.zero
  /// Groups that are still under way.
  var late: [RemoteGroup] = []
  /// The newest commit before which older versions may no longer be read.
  var floor = CommitPoint(sequence: .zero, time: 0)
  /// Origins that may no longer commit.
  var fenced: Set<Int64> = []
  var pins: [Int64: Pin] = [:]
  /// Dropped keyspaces, with the newest commit when they went.
  var dropped: [(keyspace: UInt32, at: SequenceNumber)] = []
  var waiters: [UInt64: Waiter] = [:]
  var lastWaiter: UInt64 = 0
  /// Whether it is unreachable, and the callback for changes of that.
  var isAway = false
  var reachObservers: [@Sendable (_ isAway: Bool) -> Void] = []
  var trips = StoreTrips()
  var faults = StoreFaults.none
  var random: SeededRandom
}

extension SimulatedServer {
  mutating func append(_ group: RemoteGroup, at now: Int64) -> RemoteAppend {
    guard knows(group.known), !fenced.contains(group.origin) else { return .otherHistory }
    let isChanged = log.reversed().prefix { $0.commit.point.sequence > group.known.sequence }
      .contains { logged in logged.commit.rows.contains { group.guards($0.key) } }
    if isChanged { return .conflict }
    var before = head.time
    let first = CommitPoint(sequence: head.sequence.next, time: max(now, head.time + 1))
    var point = first
    for (number, writes) in group.commits.enumerated() {
      var commit = RemoteCommit(point: point, origin: group.origin, rows: [])
      for write in writes {
        var key = write.key
        for stamp in write.keyStamps { _ = key.stamp(stamp, with: point) }
        let value = write.value.map { RemoteValue.time(point.time) + $0 }
        put(key, Version(sequence: point.sequence, value: value))
        commit.rows.append((key, value))
      }
      log.append(Logged(commit: commit, part: group.part))
      if !group.annotations.isEmpty {
        let annotation = RemoteAnnotation(point: point, bytes: group.annotations[number])
        history.append(Kept(annotation: annotation, before: before))
      }
      before = point.time
      head = point
      point = CommitPoint(sequence: point.sequence.next, time: point.time + 1)
    }
    return .done(first)
  }

  /// Lets a group arrive whose sender has given it up, or none yet.
  mutating func takeLate(at now: Int64) {
    guard !late.isEmpty, random.chance(1, in: 2) else { return }
    let group = late.remove(at: random.below(late.count))
    if case .done = append(group, at: now) { trips.late += 1 }
  }

  /// Sometimes a standby takes over. It has all durable groups, and some of the others.
  mutating func failOverPerhaps() {
    guard random.chance(faults.failovers, in: 1000) else { return }
    var losses = [0]
    for (place, logged) in log.enumerated().reversed() {
      guard logged.commit.point.sequence > durable else { break }
      // A group exists or does not.
      if place == 0 || !log[place - 1].isOfGroup(of: logged) { losses.append(log.count - place) }
    }
    let lost = random.pick(losses)
    loseNewest(lost)
    // Parts after the last durable commit may exist or not.
    if random.chance(1, in: 2) { contents.lose(behind: head.sequence, orAtIt: true) }
    trips.failovers += 1
    trips.lostCommits += lost
  }

  mutating func loseNewest(_ count: Int) {
    for _ in 0..<min(count, log.count) {
      let lost = log.removeLast().commit
      for row in lost.rows {
        versions[row.key]?.removeAll { $0.sequence == lost.point.sequence }
      }
    }
    head = log.last?.commit.point ?? floor
    history.removeAll { $0.annotation.point.sequence > head.sequence }
    contents.lose(behind: head.sequence, orAtIt: false)
  }

  mutating func trimHistory(
    to retention: HistoryRetention?, now: Int64
  ) -> SequenceNumber {
    let (oldest, overflow) = now.subtractingReportingOverflow(retention?.microseconds ?? .max)
    var bytes = history.reduce(UInt64(0)) { $0 + UInt64($1.annotation.bytes.count) }
    if let last = history.last?.annotation.point.sequence, last < head.sequence { history = [] }
    while history.count > 1, let first = history.first?.annotation {
      guard bytes > retention?.bytes ?? .max || !overflow && first.point.time < oldest else {
        break
      }
      bytes -= UInt64(first.bytes.count)
      history.removeFirst()
    }
    return history.first.map { SequenceNumber(rawValue: $0.annotation.point.sequence.rawValue - 1) }
      ?? head.sequence
  }

  private mutating func put(_ key: [UInt8], _ version: Version) {
    if versions[key] == nil { keys.insert(key, at: place(of: key)) }
    versions[key, default: []].append(version)
  }

  /// Whether a commit belongs, or belonged, to this store.
  func knows(_ point: CommitPoint) -> Bool {
    if point == floor { return true }
    var (low, high) = (0, log.count)
    while low < high {
      let middle = (low + high) / 2
      let isBefore = log[middle].commit.point.sequence < point.sequence
      if isBefore { low = middle + 1 } else { high = middle }
    }
    return low < log.count && log[low].commit.point == point
  }

  /// Whether the newest commit shows that an earlier one no longer exists here.
  func hasLost(_ point: CommitPoint) -> Bool {
    head.sequence < point.sequence || head.sequence == point.sequence && head != point
  }

  mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
    let awake = waiters.filter { waiter in
      waiter.value.point.sequence < head.sequence || hasLost(waiter.value.point)
    }
    for number in awake.keys { waiters[number] = nil }
    return awake.sorted { $0.key < $1.key }.map(\.value.continuation)
  }

  /// The index of the first key from `key` on.
  func place(of key: [UInt8]) -> Int {
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle].lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  func row(at key: [UInt8], _ sequence: SequenceNumber) -> RemoteRow? {
    guard let version = versions[key]?.last(where: { $0.sequence <= sequence }),
      let value = version.value
    else { return nil }
    return RemoteRow(key: key, sequence: version.sequence, value: value)
  }

  func refuse(_ base: CommitPoint, _ name: String) throws(EngineError) {
    if isAway { throw .unreachable(reason: "\(name) is away") }
    if base.sequence < floor.sequence { throw .superseded(file: name) }
    guard knows(base) else {
      throw .outOfStep(reason: "\(name) has no commit \(base.sequence.rawValue)")
    }
  }

  mutating func oldestPin(at now: Int64) -> SequenceNumber {
    pins = pins.filter { $0.value.until > now }
    return pins.values.map(\.sequence).min() ?? head.sequence
  }

  mutating func forget(at now: Int64) -> Int {
    let oldest = oldestPin(at: now)
    guard oldest > floor.sequence,
      let last = log.last(where: { $0.commit.point.sequence <= oldest })?.commit.point
    else { return 0 }
    let gone = log.prefix { $0.commit.point.sequence <= last.sequence }
    log.removeFirst(gone.count)
    floor = last
    durable = max(durable, last.sequence)
    var count = 0
    for key in Set(gone.flatMap { $0.commit.rows.map(\.key) }) { count += trim(key) }
    let (over, kept) = (
      dropped.filter { $0.at <= floor.sequence }, dropped.filter { $0.at > floor.sequence }
    )
    dropped = kept
    for (keyspace, _) in over {
      let prefix = (0..<4).map { UInt8(truncatingIfNeeded: keyspace >> (24 - 8 * $0)) }
      for key in keys where key.starts(with: prefix) {
        count += versions[key]?.count ?? 0
        versions[key] = nil
      }
    }
    keys.removeAll { versions[$0] == nil }
    return count
  }

  /// Removes the invisible versions of a key.
  mutating func trim(_ key: [UInt8]) -> Int {
    guard var known = versions[key] else { return 0 }
    let before = known.count
    let visible = known.lastIndex { $0.sequence <= floor.sequence } ?? 0
    known.removeFirst(visible)
    if let first = known.first, first.sequence <= floor.sequence, first.value == nil {
      known.removeFirst()
    }
    versions[key] = known.isEmpty ? nil : known
    return before - known.count
  }
}

extension RemoteGroup {
  func guards(_ key: [UInt8]) -> Bool {
    guardedKeys.contains(key)
      || guardedRanges.contains { range in
        !key.lexicographicallyPrecedes(range.lower)
          && (range.upper.isEmpty || key.lexicographicallyPrecedes(range.upper))
      }
  }
}
