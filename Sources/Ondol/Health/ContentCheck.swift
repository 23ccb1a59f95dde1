// Checks whether contents match their digests, and whether everything stored will be removed when
// its time comes. It runs in steps, each from where the last one ended: it walks the locations, and
// reads each content as a whole. HolderCheck checks whether held contents exist, and their holders.

internal import OndolEngine

/// A check of the contents in one snapshot, between two steps.
struct ContentCheck: SteppedCheck {
  private let rows: Rows
  private let contents: Contents
  /// The share of the contents that are read, from 0 to 1.
  private let share: Double
  /// The current rows.
  private let newest: @Sendable () throws(DatabaseError) -> Rows
  /// The last key of the previous step.
  private var last: [UInt8]?
  var findings: [Finding] = []
  private(set) var isDone = false
  /// The files that locations refer to.
  private(set) var named: Set<FileNumber> = []

  /// Rows in one step, and bytes of contents after which a step is not made longer.
  private static let stepCount = 256
  private static let stepBytes = 4 << 20
  /// Bytes of a content that are in memory at once.
  private static let piece = 1 << 20
  /// The most holders that a finding names.
  private static let mostNamed = 8

  init(
    _ rows: Rows, _ contents: Contents, share: Double,
    newest: @escaping @Sendable () throws(DatabaseError) -> Rows
  ) {
    self.rows = rows
    self.contents = contents
    self.share = share
    self.newest = newest
  }

  /// Runs a step. Blocks the thread while it reads files.
  mutating func step() {
    do throws(DatabaseError) {
      try checkLocations()
    } catch {
      findings.append(Finding(error, .content))
      isDone = true
    }
  }

  private mutating func checkLocations() throws(DatabaseError) {
    var range = ContentKey.all(ContentKey.locations)
    if let last { range.lower = last + [0] }
    var walk = RangeWalk(rows, [range])
    var bytes: UInt64 = 0
    for _ in 0..<Self.stepCount {
      guard bytes < UInt64(Self.stepBytes) else { return }
      guard try walk.next() else {
        isDone = true
        return
      }
      last = walk.cursor.key.array
      let digest = try ContentKey.digest(in: walk.cursor.key)
      let row = try walk.value.array
      let location: ContentLocation
      do throws(MalformedBytes) {
        location = try ContentLocation(row.bytes)
      } catch {
        try note(digest, "its location cannot be read: \(error.reason)")
        continue
      }
      bytes += location.length
      try check(digest, location)
    }
  }

  private mutating func check(
    _ digest: BlobDigest, _ location: ContentLocation
  ) throws(DatabaseError) {
    switch location {
    case .inline, .parts, .away: break
    case .pack(let place): named.insert(place.pack)
    case .file(let place): named.insert(place.file)
    }
    let lease = try rows.lease(of: digest)
    let release = try rows.release(of: digest)
    var isExpected = lease != nil || release != nil
    if !isExpected {
      try rows.forEachHolder(of: digest) { (_) throws(DatabaseError) in
        isExpected = true
        return false
      }
    }
    if !isExpected { try note(digest, "it has no holder, and it will never go", .warning) }
    if share >= 1 || Double.random(in: 0..<1) < share { try compare(digest, location) }
  }

  /// Compares the bytes with their digest. A pack may have been rewritten since the snapshot, and
  /// its contents moved: a missing file counts only when there is no newer location.
  private mutating func compare(
    _ digest: BlobDigest, _ location: ContentLocation
  ) throws(DatabaseError) {
    var place = location
    // What is elsewhere is compared when it comes.
    if place.isAway { return }
    while true {
      let found: BlobDigest
      do throws(EngineError) {
        found = try hash(place)
      } catch {
        guard error.isMissingFile else { return try note(digest, error) }
        guard let now = try newest().location(of: digest) else { return }
        guard now != place else { return try note(digest, error) }
        place = now
        continue
      }
      if found != digest { try note(digest, "its bytes are not those that it is called by") }
      return
    }
  }

  private func hash(_ location: ContentLocation) throws(EngineError) -> BlobDigest {
    var hasher = ContentHasher()
    let length = Int(clamping: location.length)
    var start = 0
    while start < length {
      let end = min(length, start + Self.piece)
      hasher.update(try contents.read(location, start..<end, mayBlock: true))
      start = end
    }
    return hasher.finalize()
  }

  // MARK: - Findings

  private mutating func note(
    _ digest: BlobDigest, _ error: EngineError
  ) throws(DatabaseError) {
    switch error {
    case .corrupt(let file, let offset, let reason):
      try note(digest, reason, file: file, offset: offset)
    case .io(_, let file, let offset, _):
      try note(digest, error.description, file: file, offset: offset)
    case .superseded(let file):
      // There is no newer location, so nothing has replaced it.
      try note(digest, "its file is missing", file: file)
    default:
      try note(digest, error.description)
    }
  }

  private mutating func note(
    _ digest: BlobDigest, _ message: String, _ severity: Finding.Severity = .error,
    file: String? = nil, offset: UInt64? = nil
  ) throws(DatabaseError) {
    let names = try rows.holderNames(of: digest, atMost: Self.mostNamed)
    let holders = names.isEmpty ? "" : ", held by \(names.joined(separator: ", "))"
    findings.append(
      Finding(
        severity, .content, "the content \(digest.hex)\(holders): \(message)", file: file,
        offset: offset, hint: severity == .error ? Finding.damageHint : nil))
  }
}

extension Database {
  /// Checks the contents in the snapshot, and which files exist.
  func checkContents(
    _ snapshot: Snapshot, share: Double = 1, _ findings: inout FindingList
  ) async throws(DatabaseError) {
    // The rows are in question, so the cached catalog must not be used.
    let rows = Rows(snapshot, Catalog(clock: environment.now), mayBlock: true)
    let kept = engine.contents.keepFiles()
    defer { kept.end() }
    var check = ContentCheck(rows, engine.contents, share: share) {
      [self] () throws(DatabaseError) in
      Rows(try engineSnapshot(), catalog, mayBlock: true)
    }
    try await snapshot.run(&check, &findings)
    guard engine.isReadOnly else { return }
    let named = check.named
    let files = try await contents.readingFiles { (contents) throws(EngineError) in
      try contents.listFiles()
    }
    for file in files where !named.contains(file.number) {
      findings.append(
        Finding(
          .warning, .content, "no content in the file is stored", file: file.name,
          hint: "the file is removed while the database is open for writing"))
    }
  }
}
