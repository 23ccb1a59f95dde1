// Appends contents of ordinary size. A caller that arrives while no write is running writes and
// syncs its entry on its own thread. Later callers wait for the next write, which takes all of
// their entries with one sync. An entry is on the device before its writer returns, so no commit
// can name bytes that a power cut erases.
//
// A pack is never written twice at one place. After a failed write or sync, that pack receives
// nothing more. The synced entries in it remain valid; the rest is dead.

/// Appends contents to packs.
final class PackWriter: Sendable {
  /// The pack that receives entries.
  private struct Target: Sendable {
    var number: FileNumber
    var file: any File
    var salt: UInt64
    var seal: FileSeal?
    /// Where the next entry begins.
    var end: UInt64
    /// Bytes from the start for which the disk has reserved space.
    var reserved: UInt64
  }

  private struct Request: Sendable {
    var drafts: [PackEntryDraft]
    var continuation: CheckedContinuation<Result<[PackPlace], EngineError>, Never>
  }

  private struct State: Sendable {
    var target: Target?
    var waiting: [Request] = []
    /// Whether a thread is writing. Only that thread accesses `target`.
    var isWriting = false
    /// Whether the packs of the previous session were examined.
    var hasLooked = false
    /// Packs that receive no more entries.
    var sealed: Set<FileNumber> = []
    /// For each pack, the entries of which it is not decided yet whether a commit names them.
    var undecided: [FileNumber: Int] = [:]
    /// Bytes in each pack that no commit has named, since the last call.
    var abandoned: [FileNumber: UInt64] = [:]
  }

  private let directory: any Directory
  private let identity: DatabaseIdentity
  private let environment: Environment
  private let options: EngineOptions
  private let numbers: FileNumbers
  private let worker: any Worker
  private let state = Guarded(State())

  /// The size of an entry from which its writer does not block a thread of the pool on the device.
  private static let longEntry = 64 << 10
  /// Bytes written at once.
  private static let longestWrite = 8 << 20
  /// Bytes of space reserved at once.
  private static let piece: UInt64 = 4 << 20

  init(
    directory: any Directory, identity: DatabaseIdentity, environment: Environment,
    options: EngineOptions, numbers: FileNumbers
  ) {
    self.directory = directory
    self.identity = identity
    self.environment = environment
    self.options = options
    self.numbers = numbers
    worker = environment.threads.makeWorker(named: "ondol-packs", for: .syncs)
  }

  // MARK: - Appending

  /// Appends entries, all or none. They are on the device once this returns. Their pack is kept
  /// until `decide` was called for each.
  func append(_ drafts: [PackEntryDraft]) async throws(EngineError) -> [PackPlace] {
    if claim(drafts) {
      let result = write([drafts])[0]
      if state.withLock({ self.endTurn(&$0) }) { worker.enqueue { self.writeWaiting() } }
      return try result.get()
    }
    let result = await withCheckedContinuation { continuation in
      let startsTurn = state.withLock { state in
        state.waiting.append(Request(drafts: drafts, continuation: continuation))
        if state.isWriting { return false }
        state.isWriting = true
        return true
      }
      if startsTurn { worker.enqueue { self.writeWaiting() } }
    }
    return try result.get()
  }

  /// Whether the caller may write immediately on its own thread.
  private func claim(_ drafts: [PackEntryDraft]) -> Bool {
    guard options.callersSync, drafts.length < Self.longEntry else { return false }
    return state.withLock { state in
      if state.isWriting { return false }
      state.isWriting = true
      return true
    }
  }

  /// Whether other callers wait, to whom the turn passes.
  private func endTurn(_ state: inout State) -> Bool {
    state.isWriting = !state.waiting.isEmpty
    return state.isWriting
  }

  private func writeWaiting() {
    while true {
      let requests = state.withLock { state in
        let requests = state.waiting
        state.waiting = []
        return requests
      }
      for (request, result) in zip(requests, write(requests.map(\.drafts))) {
        request.continuation.resume(returning: result)
      }
      if state.withLock({ !self.endTurn(&$0) }) { return }
    }
  }

  // MARK: - Writing

  /// Writes the entries of several callers, in as few pieces as possible. One call at a time.
  private func write(_ asked: [[PackEntryDraft]]) -> [Result<[PackPlace], EngineError>] {
    var results: [Result<[PackPlace], EngineError>] = []
    results.reserveCapacity(asked.count)
    var rest = asked[...]
    while let first = rest.first {
      var length = first.length
      let others = rest.dropFirst().prefix { drafts in
        length += drafts.length
        return length <= Self.longestWrite
      }
      let group = rest.prefix(1 + others.count)
      rest = rest.dropFirst(group.count)
      do throws(EngineError) {
        var places = try write(group.flatMap(\.self))[...]
        for drafts in group {
          results.append(.success(Array(places.prefix(drafts.count))))
          places = places.dropFirst(drafts.count)
        }
      } catch {
        // Nothing names the bytes that may be there. In a new pack they are all of its entries.
        if let failed = leaveTarget() {
          let dead = group.joined().reduce(UInt64(0)) {
            $0 + PackFormat.aligned(UInt64($1.entryLength(isSealed: true)))
          }
          state.withLock { $0.abandoned[failed, default: 0] += dead }
        }
        results += group.map { _ in .failure(error) }
      }
    }
    return results
  }

  private func write(_ drafts: [PackEntryDraft]) throws(EngineError) -> [PackPlace] {
    var target = try ready()
    state.withLock { $0.target = target }
    let start = target.end
    var bytes: [UInt8] = []
    bytes.reserveCapacity(drafts.length + 8 * drafts.count)
    var places: [PackPlace] = []
    for draft in drafts {
      let offset = start + UInt64(bytes.count)
      draft.append(to: &bytes, salt: target.salt, offset: offset, seal: target.seal)
      places.append(
        PackPlace(
          pack: target.number, salt: target.salt, offset: offset, length: UInt32(draft.length),
          entryLength: UInt32(draft.entryLength(isSealed: target.seal != nil))))
    }
    target.end = start + UInt64(bytes.count)
    try reserve(&target)
    try target.file.writeSynced(bytes.bytes, at: start)
    state.withLock { state in
      state.undecided[target.number, default: 0] += places.count
      state.target = target
    }
    return places
  }

  /// Reserves space up to the target's end, and more if available.
  private func reserve(_ target: inout Target) throws(EngineError) {
    guard target.end > target.reserved else { return }
    let wanted = target.end + Self.piece
    do throws(EngineError) {
      target.reserved = try target.file.reserve(target.reserved..<wanted) ? wanted : .max
    } catch {
      guard error.isLackOfSpace else { throw error }
      target.reserved =
        try target.file.reserve(target.reserved..<target.end) ? target.end : .max
    }
  }

  /// The pack for the next entries: the one in use unless it is full, or the last one of the
  /// previous session, or a new one.
  private func ready() throws(EngineError) -> Target {
    let (target, hasLooked) = state.withLock { ($0.target, $0.hasLooked) }
    if let target {
      if target.end < UInt64(options.packSize), isCurrent(target.number) { return target }
      leaveTarget()
    } else if !hasLooked {
      state.withLock { $0.hasLooked = true }
      if let target = try adopt() { return target }
    }
    return try make()
  }

  private func make() throws(EngineError) -> Target {
    let number = numbers.allocate()
    let salt = environment.random()
    let seal = directory.keyring?.seal(pack: number, salt: salt)
    let header = DataFileHeader(
      kind: .pack, number: number, salt: salt, identity: identity, shard: 0,
      isSealed: seal != nil)
    do throws(EngineError) {
      let file = try directory.create(number.packName)
      try file.write(header.encode().bytes, at: 0)
      try file.sync()
      try directory.sync()
      return Target(
        number: number, file: file, salt: salt, seal: seal,
        end: UInt64(DataFileHeader.length), reserved: 0)
    } catch {
      try? directory.remove(number.packName)
      throw error
    }
  }

  /// The newest pack of the previous session, if it has space.
  private func adopt() throws(EngineError) -> Target? {
    let numbers = try directory.list().compactMap { FileNumber.parse($0, suffix: ".pack") }
    guard let newest = numbers.max(), isCurrent(newest),
      state.withLock({ !$0.sealed.contains(newest) })
    else { return nil }
    let file = try directory.open(newest.packName, access: .readWrite)
    let size = try file.size()
    guard size < UInt64(options.packSize),
      let header = try DataFileHeader.find(.pack, in: file), header.number == newest,
      header.identity == identity, header.shard == 0,
      case let seal = directory.keyring?.seal(pack: newest, salt: header.salt),
      header.isSealed == (seal != nil)
    else { return nil }
    return Target(
      number: newest, file: file, salt: header.salt, seal: seal,
      end: PackFormat.aligned(size), reserved: 0)
  }

  /// Whether a pack is encrypted like new ones. Others receive no more entries.
  private func isCurrent(_ pack: FileNumber) -> Bool {
    directory.keyring?.isCurrent(pack) ?? true
  }

  /// Continues in another pack. Returns the one that was in use.
  @discardableResult
  private func leaveTarget() -> FileNumber? {
    let target = state.withLock { state in
      let target = state.target
      if let target { state.sealed.insert(target.number) }
      state.target = nil
      return target
    }
    target?.file.giveBack(behind: target?.end ?? .max)
    return target?.number
  }

  // MARK: - Afterwards

  /// Reports that a commit names an entry, or that none ever will.
  func decide(_ place: PackPlace, isNamed: Bool) {
    state.withLock { state in
      guard let count = state.undecided[place.pack] else { return }
      state.undecided[place.pack] = count > 1 ? count - 1 : nil
      if isNamed { return }
      let bytes = PackFormat.aligned(UInt64(place.entryLength))
      state.abandoned[place.pack, default: 0] += bytes
    }
  }

  /// The bytes of entries in each pack that no commit has named, since the last call.
  func takeAbandoned() -> [FileNumber: UInt64] {
    state.withLock { state in
      defer { state.abandoned = [:] }
      return state.abandoned
    }
  }

  /// Stops further writes to a pack. Returns false while a thread writes to it, or as long as it is
  /// not decided whether its newest entries are used.
  func seal(_ pack: FileNumber) -> Bool {
    let target: Target? = state.withLock { state in
      guard state.target?.number == pack, !state.isWriting else { return nil }
      defer { state.target = nil }
      return state.target
    }
    target?.file.giveBack(behind: target?.end ?? .max)
    return state.withLock { state in
      // A thread that looks for a pack to continue may have found this one and not recorded it yet.
      if state.isWriting, state.target == nil || state.target?.number == pack { return false }
      guard state.target?.number != pack else { return false }
      state.sealed.insert(pack)
      return state.undecided[pack] == nil
    }
  }

  /// Releases the reserved space and ends the thread.
  func close() async {
    let target = state.withLock { state in
      defer { state.target = nil }
      return state.isWriting ? nil : state.target
    }
    target?.file.giveBack(behind: target?.end ?? .max)
    await worker.stop()
  }
}

extension Keyring {
  /// What encrypts the entries of a pack.
  func seal(pack number: FileNumber, salt: UInt64) -> FileSeal? {
    seal(.pack, number: number, salt: salt)
  }

  /// What encrypts the file of one content.
  func seal(content number: FileNumber, salt: UInt64) -> FileSeal? {
    seal(.content, number: number, salt: salt)
  }
}

extension [PackEntryDraft] {
  /// Bytes of all entries in an encrypted pack. Without encryption they are slightly fewer.
  fileprivate var length: Int { reduce(0) { $0 + $1.entryLength(isSealed: true) } }
}
