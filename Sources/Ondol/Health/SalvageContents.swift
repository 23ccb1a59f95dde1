// The contents of a database that is being salvaged: they are put again, piece by piece, each under
// its digest, so that damaged ones are detected and left out. First come those with known
// locations. Contents that documents refer to and that are still missing are searched for in the
// files themselves.

internal import OndolEngine

extension Database {
  /// The most bytes read at once.
  private static let salvagedPiece = 1 << 20

  /// Puts the contents that are readable in `source`, and makes documents hold theirs; returns the
  /// lost contents that documents refer to.
  func salvageContents(
    _ known: [(digest: BlobDigest, location: ContentLocation)], from source: ContentSalvage
  ) async throws(DatabaseError) -> [LostContent] {
    try await self.contents.reclaimer.takeTurn()
    defer { self.contents.reclaimer.endTurn() }
    for content in known {
      if content.location.isAway {
        try await self.contents.expect(content.digest, length: content.location.length)
      } else {
        try await salvage(content.digest, content.location, source)
      }
    }
    let lost = try await rebuildHolders()
    if lost.isEmpty { return [] }
    var missing = Set(lost.map(\.digest))
    try await searchPacks(for: &missing, source)
    try await searchFiles(for: &missing, source)
    return missing.count < Set(lost.map(\.digest)).count ? try await rebuildHolders() : lost
  }

  /// Puts one content; false when its bytes are unreadable or do not match.
  @discardableResult
  private func salvage(
    _ digest: BlobDigest, _ location: ContentLocation, _ source: ContentSalvage
  ) async throws(DatabaseError) -> Bool {
    let intake = contents.beginIntake()
    let length = Int(clamping: location.length)
    var start = 0
    while start < length {
      let range = start..<min(length, start + Self.salvagedPiece)
      let piece = await contents.contents.readBlocking {
        try? source.read(location, range)
      }
      guard let piece else {
        await intake.abandon()
        return false
      }
      try await intake.append(piece)
      start = range.upperBound
    }
    return try await finish(intake, digest)
  }

  private func finish(
    _ intake: ContentIntake, _ digest: BlobDigest
  ) async throws(DatabaseError) -> Bool {
    do throws(DatabaseError) {
      try await contents.lease(try await intake.finish(expecting: digest))
      return true
    } catch {
      guard error.code == .invalidArgument else { throw error }
      return false
    }
  }

  // MARK: - Search

  /// Searches for contents in packs, whose entries identify them.
  private func searchPacks(
    for missing: inout Set<BlobDigest>, _ source: ContentSalvage
  ) async throws(DatabaseError) {
    let wanted = missing
    let found = try await contents.readingFiles { (_) throws(EngineError) in
      var found: [(BlobDigest, ContentLocation)] = []
      try source.forEachEntry { bytes, location in
        if let digest = BlobDigest(bytes: bytes), wanted.contains(digest) {
          found.append((digest, location))
        }
      }
      return found
    }
    for (digest, location) in found where missing.contains(digest) {
      if try await salvage(digest, location, source) { missing.remove(digest) }
    }
  }

  /// Searches for contents in files of their own, which do not identify them: each is read and
  /// hashed.
  private func searchFiles(
    for missing: inout Set<BlobDigest>, _ source: ContentSalvage
  ) async throws(DatabaseError) {
    if missing.isEmpty { return }
    let found = try await contents.readingFiles { (_) throws(EngineError) in
      var found: [BlobDigest: String] = [:]
      for name in try source.contentFiles() {
        var hasher = ContentHasher()
        guard (try? source.contentFile(name).forEachPiece { hasher.update($0) }) != nil else {
          continue
        }
        found[hasher.finalize()] = name
      }
      return found
    }
    for digest in missing {
      guard let name = found[digest] else { continue }
      let file = try await contents.readingFiles { (_) throws(EngineError) in
        try source.contentFile(name)
      }
      let intake = contents.beginIntake()
      var offset: UInt64 = 0
      while true {
        let piece = try await contents.readingFiles { [offset] (_) throws(EngineError) in
          try file.piece(at: offset)
        }
        if piece.isEmpty { break }
        try await intake.append(piece)
        offset += UInt64(piece.count)
      }
      if try await finish(intake, digest) { missing.remove(digest) }
    }
  }
}
