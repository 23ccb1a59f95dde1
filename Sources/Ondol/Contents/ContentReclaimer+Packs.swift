// Frees space in files. A file with one content is removed when its content has been reclaimed. A
// pack is removed when more than half of it is dead: its live contents are appended to another
// pack, each location is changed under a guard, and then nothing refers to the old pack. Only
// locations change, never a document. Bytes that a crash left without a row are found once in every
// session, by looking through the locations.

internal import Logging
internal import OndolEngine

/// The contents in some packs, and how much of each pack they take.
private struct PackContents: Sendable {
  struct Entry: Sendable {
    var digest: BlobDigest
    var place: PackPlace
  }

  var live: [FileNumber: UInt64] = [:]
  /// Files of their own that a location refers to.
  var named: Set<FileNumber> = []
  /// The contents of the requested packs.
  var entries: [Entry] = []
}

extension ContentReclaimer {
  /// Contents that are moved with one write and one commit, and their bytes.
  private static let movedTogether = 64
  private static let movedBytes = 1 << 20
  /// Packs that are rewritten in one pass.
  private static let packsTogether = 4

  // MARK: - Survey

  /// Finds, once, bytes that an earlier session left without a row.
  func survey(_ report: inout ReclaimReport) async throws(DatabaseError) {
    if state.withLock({ $0.hasSurveyed }) { return }
    let files = try await listFiles()
    if !files.isEmpty {
      let contents = try await lookThrough(collecting: [])
      state.withLock { state in
        for file in files where file.number < store.contents.firstNumber {
          switch file.kind {
          case .content:
            if !contents.named.contains(file.number) { state.doomed.append(file) }
          case .pack:
            let live = contents.live[file.number] ?? 0
            let known = ContentFile.packOverhead + live
            let dead = file.sizeBytes - min(file.sizeBytes, known)
            // A file without any content is removed, even when it is empty.
            state.dead[file.number] = live == 0 ? max(1, dead) : dead
          }
        }
      }
    }
    state.withLock { $0.hasSurveyed = true }
  }

  func listFiles() async throws(DatabaseError) -> [ContentFile] {
    try await store.readingFiles { (contents) throws(EngineError) in try contents.listFiles() }
  }

  /// Walks all locations.
  private func lookThrough(
    collecting packs: Set<FileNumber>
  ) async throws(DatabaseError) -> PackContents {
    var contents = PackContents()
    try await store.forEachLocation { (digest, location) in
      switch location {
      case .inline, .parts, .away: break
      case .file(let place): contents.named.insert(place.file)
      case .pack(let place):
        contents.live[place.pack, default: 0] += location.storedBytes
        if packs.contains(place.pack) {
          contents.entries.append(PackContents.Entry(digest: digest, place: place))
        }
      }
    }
    return contents
  }

  // MARK: - Freeing space

  /// Removes files that nothing refers to, and rewrites packs that are more than half dead.
  func makeRoom(_ report: inout ReclaimReport) async throws(DatabaseError) {
    let abandoned = store.contents.takeAbandoned()
    let unremoved = store.contents.takeUnremoved()
    state.withLock { state in
      state.dead.merge(abandoned) { $0 + $1 }
      state.doomed += unremoved
    }
    var damage: EngineError?
    while true {
      let victims = try await choosePacks()
      if victims.isEmpty { break }
      let emptied = try await empty(victims, &damage, &report)
      state.withLock { $0.doomed += emptied }
      if emptied.count < victims.count { break }
    }
    try await removeDoomed(&report)
  }

  /// Packs of which more than half is dead, and to which nothing is appended any more.
  private func choosePacks() async throws(DatabaseError) -> [ContentFile] {
    let dead = state.withLock { $0.dead }
    guard dead.values.contains(where: { $0 > 0 }) else { return [] }
    let doomed = Set(state.withLock { $0.doomed.map(\.number) })
    let victims = try await listFiles().filter { file in
      guard file.kind == .pack, !doomed.contains(file.number) else { return false }
      let bytes = file.sizeBytes - min(file.sizeBytes, ContentFile.packOverhead)
      return 2 * (dead[file.number] ?? 0) > bytes
    }
    return victims.filter { store.contents.seal($0.number) }.prefix(Self.packsTogether).map(\.self)
  }

  func removeDoomed(_ report: inout ReclaimReport) async throws(DatabaseError) {
    let doomed = state.withLock { $0.doomed }
    if doomed.isEmpty { return }
    let kept = try await rethrowing { () async throws(EngineError) in
      try await store.contents.remove(doomed)
    }
    let gone = Set(doomed).subtracting(kept)
    report.files += gone.count
    report.bytes += gone.reduce(0) { $0 + $1.sizeBytes }
    state.withLock { state in
      state.doomed.removeAll { gone.contains($0) }
      for file in gone { state.dead[file.number] = nil }
    }
  }

  // MARK: - Moving

  /// Moves the live contents of the packs elsewhere; returns the packs that nothing refers to any
  /// more. A damaged pack stays until it is repaired.
  func empty(
    _ packs: [ContentFile], _ damage: inout EngineError?, _ report: inout ReclaimReport
  ) async throws(DatabaseError) -> [ContentFile] {
    let numbers = Set(packs.map(\.number))
    var entries = try await lookThrough(collecting: numbers).entries
    entries.sort { ($0.place.pack, $0.place.offset) < ($1.place.pack, $1.place.offset) }
    var stuck: Set<FileNumber> = []
    var rest = entries[...]
    while !rest.isEmpty {
      guard !Task.isCancelled else {
        throw DatabaseError(.cancelled, "the task was cancelled; the rest is reclaimed later")
      }
      var bytes = 0
      let group = rest.prefix(Self.movedTogether).prefix { entry in
        bytes += Int(entry.place.length)
        return bytes == Int(entry.place.length) || bytes <= Self.movedBytes
      }
      rest = rest.dropFirst(group.count)
      try await move(Array(group), &stuck, &damage, &report)
      await environment.rest(Self.rest)
    }
    for pack in stuck { state.withLock { $0.dead[pack] = nil } }
    return packs.filter { !stuck.contains($0.number) }
  }

  private func move(
    _ entries: [PackContents.Entry], _ stuck: inout Set<FileNumber>,
    _ damage: inout EngineError?, _ report: inout ReclaimReport
  ) async throws(DatabaseError) {
    var sound: [PackContents.Entry] = []
    var bytes: [(bytes: [UInt8], digest: [UInt8])] = []
    for entry in entries {
      do throws(EngineError) {
        bytes.append((try await read(entry.place), entry.digest.bytes))
        sound.append(entry)
      } catch {
        stuck.insert(entry.place.pack)
        damage = damage ?? error
        logger.error(
          "a content cannot be moved to another pack",
          metadata: ["content": "\(entry.digest)", "error": "\(error)"])
      }
    }
    if sound.isEmpty { return }
    let places = try await rethrowing { () async throws(EngineError) in
      try await store.contents.append(bytes)
    }
    let moves = zip(sound, places).map { entry, place in
      (entry.digest, from: ContentLocation.pack(entry.place), to: place)
    }
    if try await commit(moves, &report) { return }
    // Another commit came in between, for one of them.
    for (entry, move) in zip(sound, moves) where try await !commit([move], &report) {
      // It was reclaimed, or it is still where it was.
      if try await store.location(of: entry.digest) == move.from { stuck.insert(entry.place.pack) }
      store.contents.discard(move.to)
    }
  }

  private func read(_ place: PackPlace) async throws(EngineError) -> [UInt8] {
    let contents = store.contents
    return try await contents.readBlocking { () throws(EngineError) in
      try contents.read(.pack(place), 0..<Int(place.length), mayBlock: true)
    }
  }

  /// Changes the locations to the new places; false, without any effect, when one of them changed
  /// meanwhile.
  func commit(
    _ moves: [(BlobDigest, from: ContentLocation, to: ContentLocation)],
    _ report: inout ReclaimReport
  ) async throws(DatabaseError) -> Bool {
    let batch = try await store.read { (rows) throws(DatabaseError) -> Batch? in
      var batch = Batch()
      batch.basis = rows.snapshot.sequence
      for (digest, old, new) in moves {
        let key = ContentKey.location(digest)
        guard try rows.location(of: digest) == old else { return nil }
        batch.guardUnchanged(key.bytes)
        let row = new.bytes
        batch.put(key.bytes, row.bytes)
      }
      return batch
    }
    guard let batch, try await engine.commitUnlessStale(batch, durability: .power) != nil else {
      return false
    }
    for (_, _, location) in moves { store.contents.decide(location) }
    report.moved += moves.count
    return true
  }
}

extension ContentStore {
  /// Rows that are looked at in one snapshot.
  private static let rowsTogether = 1_000

  /// Shows the location of each content, in the order of digests. Contents that are added or
  /// removed meanwhile may or may not be included.
  func forEachLocation(
    _ visit: (BlobDigest, ContentLocation) -> Void
  ) async throws(DatabaseError) {
    var last: BlobDigest?
    repeat {
      let found = try await read { [last] (rows) throws(DatabaseError) in
        try rows.locations(after: last, atMost: Self.rowsTogether)
      }
      for (digest, location) in found { visit(digest, location) }
      last = found.count < Self.rowsTogether ? nil : found.last?.0
    } while last != nil
  }

  /// Removes the rows by which documents of a dropped family held contents, and has these contents
  /// checked.
  func release(heldByFamily family: UInt32) async throws(DatabaseError) {
    var last: [UInt8]?
    repeat {
      let (batch, next) = try await read { [last] (rows) throws(DatabaseError) in
        try rows.releasing(heldByFamily: family, after: last, atMost: Self.rowsTogether)
      }
      last = next
      if !batch.isEmpty {
        try await withEngine { (engine) throws(EngineError) in
          _ = try await engine.commit(batch, durability: .process)
        }
      }
    } while last != nil
    reclaimer.noteRelease()
  }
}

extension Rows {
  /// The locations of some contents.
  func locations(
    after digest: BlobDigest?, atMost limit: Int
  ) throws(DatabaseError) -> [(BlobDigest, ContentLocation)] {
    let range =
      digest.map { ContentKey.all(ContentKey.locations, after: $0) }
      ?? ContentKey.all(ContentKey.locations)
    var walk = RangeWalk(self, [range])
    var found: [(BlobDigest, ContentLocation)] = []
    while found.count < limit, try walk.next() {
      let digest = try ContentKey.digest(in: walk.cursor.key)
      let row = try walk.value.array
      do throws(MalformedBytes) {
        found.append((digest, try ContentLocation(row.bytes)))
      } catch {
        throw DatabaseError(
          .dataLoss, "the location of the content \(digest.hex) is damaged: \(error.reason)")
      }
    }
    return found
  }

  /// A batch that removes a family's holders among some rows of holders, and the last of these
  /// rows; nil at the end.
  fileprivate func releasing(
    heldByFamily family: UInt32, after key: [UInt8]?, atMost limit: Int
  ) throws(DatabaseError) -> (Batch, [UInt8]?) {
    var batch = Batch()
    var range = ContentKey.all(ContentKey.holders)
    if let key { range.lower = key + [0] }
    var walk = RangeWalk(self, [range])
    let pending = ContentRelease.pending
    let prefix = Keyspace(family: family, member: 0).prefix
    var seen = 0
    while try walk.next() {
      let row = ContentKey.holdingRow(in: walk.cursor.key)
      // A family is the upper twenty bits.
      if row.count > 2, row[0] == prefix[0], row[1] == prefix[1], row[2] >> 4 == prefix[2] >> 4 {
        let digest = try ContentKey.digest(in: walk.cursor.key)
        batch.delete(walk.cursor.key)
        batch.put(
          ContentKey.release(digest).bytes, pending.bytes, stamps: ContentRelease.stamps)
      }
      seen += 1
      if seen == limit { return (batch, walk.cursor.key.array) }
    }
    return (batch, nil)
  }
}
