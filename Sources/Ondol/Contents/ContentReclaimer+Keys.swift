// Moves contents out of files that are sealed with a key to be removed, or with none. Contents in
// packs are moved as from packs that are mostly dead; a content with a file of its own is copied
// into another file. Only locations change, and readers find the new ones.

internal import OndolEngine

extension ContentReclaimer {
  /// Moves all contents out of files with a number before `border`, and removes the files that
  /// nothing refers to any more. Files in use stay for the next call.
  ///
  /// - Parameter progress: receives bytes of files as they become empty.
  /// - Throws: `.dataLoss` when a content cannot be read, after all others have been moved.
  func leaveFiles(
    before border: FileNumber, _ progress: (UInt64) -> Void
  ) async throws(DatabaseError) {
    try await takeTurn()
    defer { endTurn() }
    var report = ReclaimReport()
    try await survey(&report)
    let doomed = Set(state.withLock { $0.doomed.map(\.number) })
    let files = try await listFiles().filter { $0.number < border && !doomed.contains($0.number) }
    let packs = files.filter { $0.kind == .pack && store.contents.seal($0.number) }
    var damage: EngineError?
    for pack in packs {
      let emptied = try await empty([pack], &damage, &report)
      state.withLock { $0.doomed += emptied }
      progress(emptied.reduce(0) { $0 + $1.sizeBytes })
    }
    try await moveFiles(before: border, &damage, &report, progress)
    try await removeDoomed(&report)
    if let damage { throw DatabaseError(damage) }
  }

  private func moveFiles(
    before border: FileNumber, _ damage: inout EngineError?, _ report: inout ReclaimReport,
    _ progress: (UInt64) -> Void
  ) async throws(DatabaseError) {
    var places: [(digest: BlobDigest, place: ContentFilePlace)] = []
    try await store.forEachLocation { (digest, location) in
      if case .file(let place) = location, place.file < border { places.append((digest, place)) }
    }
    for (digest, place) in places {
      try refuseWhenCancelled("the rest is moved later")
      let copy: ContentLocation
      do throws(EngineError) {
        copy = try await copied(place)
      } catch {
        guard case .corrupt = error else { throw DatabaseError(error) }
        damage = damage ?? error
        continue
      }
      guard try await commit([(digest, from: .file(place), to: copy)], &report) else {
        // It was reclaimed meanwhile.
        store.contents.discard(copy)
        continue
      }
      state.withLock { state in
        state.doomed.append(
          ContentFile(kind: .content, number: place.file, sizeBytes: place.length))
      }
      progress(place.length)
    }
  }

  /// The same content in another file, which is on the device.
  private func copied(_ place: ContentFilePlace) async throws(EngineError) -> ContentLocation {
    let contents = store.contents
    let writer = try await contents.makeFile()
    let length = Int(clamping: place.length)
    var start = 0
    do throws(EngineError) {
      while start < length {
        let end = min(length, start + ContentFileWriter.pieceLength)
        let bytes = try await contents.readBlocking { [start] () throws(EngineError) in
          try contents.read(.file(place), start..<end, mayBlock: true)
        }
        try await writer.write(0..<bytes.count, of: bytes)
        start = end
      }
    } catch {
      await writer.abandon()
      throw error
    }
    return try await writer.finish()
  }
}
