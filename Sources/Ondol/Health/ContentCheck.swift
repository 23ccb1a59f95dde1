// Whether contents are what they are called by, everything that is held is there, and everything
// that is there will go when it may. In steps, each from where the last one ended: first the
// locations, each of whose contents is read as a whole; then the holders, each of which must be a
// row that names what it holds. The other way round, from documents to their rows among the
// holders, is part of the check of documents.

internal import OndolEngine

/// A check of the contents that one snapshot knows, between two steps.
struct ContentCheck: Sendable {
  private enum Phase {
    case locations
    case holders
    case done
  }

  private let rows: Rows
  private let contents: Contents
  private var namer: RowNamer
  private var phase = Phase.locations
  /// The last key of the step before.
  private var last: [UInt8]?
  private var findings: [Finding] = []
  /// The files that locations name.
  private(set) var named: Set<FileNumber> = []

  /// Rows in one step, and bytes of contents after which a step is not made longer.
  private static let stepCount = 256
  private static let stepBytes = 4 << 20
  /// Bytes of a content that are in memory at once.
  private static let piece = 1 << 20
  /// Holders that a finding names.
  private static let mostNamed = 8

  init(_ rows: Rows, _ contents: Contents) {
    self.rows = rows
    self.contents = contents
    namer = RowNamer(rows)
  }

  var isDone: Bool { if case .done = phase { true } else { false } }

  /// What was found since it was asked last.
  mutating func takeFindings() -> [Finding] {
    defer { findings = [] }
    return findings
  }

  /// Does some more. Blocks the thread while files are read.
  mutating func step() {
    do throws(DatabaseError) {
      switch phase {
      case .locations: try checkLocations()
      case .holders: try checkHolders()
      case .done: break
      }
    } catch {
      findings.append(Finding(error, .content))
      begin(isLocations ? .holders : .done)
    }
  }

  private var isLocations: Bool { if case .locations = phase { true } else { false } }

  private mutating func begin(_ next: Phase) {
    last = nil
    phase = next
  }

  private func walk(_ keyspace: Keyspace) -> RangeWalk {
    var range = ContentKey.all(keyspace)
    if let last { range.lower = last + [0] }
    return RangeWalk(rows, [range])
  }

  // MARK: - Locations

  private mutating func checkLocations() throws(DatabaseError) {
    var walk = walk(ContentKey.locations)
    var bytes: UInt64 = 0
    for _ in 0..<Self.stepCount {
      guard bytes < UInt64(Self.stepBytes) else { return }
      guard try walk.next() else { return begin(.holders) }
      last = walk.cursor.key.array
      let digest = try ContentKey.digest(in: walk.cursor.key)
      let row = try walk.value.array
      let location: ContentLocation
      do throws(MalformedBytes) {
        location = try ContentLocation(row.bytes)
      } catch {
        try note(digest, "where it is cannot be read: \(error.reason)")
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
    case .inline: break
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
    if !isExpected { try note(digest, "nobody holds it, and it will never go", .warning) }
    let found: BlobDigest
    do throws(EngineError) {
      found = try hash(location)
    } catch {
      return try note(digest, error)
    }
    if found != digest { try note(digest, "its bytes are not those that it is called by") }
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

  // MARK: - Holders

  private mutating func checkHolders() throws(DatabaseError) {
    var walk = walk(ContentKey.holders)
    for _ in 0..<Self.stepCount {
      guard try walk.next() else { return begin(.done) }
      last = walk.cursor.key.array
      let digest = try ContentKey.digest(in: walk.cursor.key)
      let row = ContentKey.holdingRow(in: walk.cursor.key)
      // Rows of what was dropped stand for nothing until they are swept.
      guard try namer.isLive(row) else { continue }
      if try rows.row(ContentKey.location(digest)) == nil {
        try note(digest, "it is held and not stored")
      }
      guard let names = try namer.contents(named: row) else { continue }
      if !names.contains(digest) {
        let holder = try namer.name(of: row) ?? "a row"
        findings.append(
          Finding(
            .error, .content, "\(holder) is said to hold the content \(digest.hex) and does not",
            hint: Finding.damageHint))
      }
    }
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

extension RowNamer {
  /// The contents that the document with this key names; none when there is no such document, and
  /// nil when the row is none of a document.
  fileprivate mutating func contents(
    named key: [UInt8]
  ) throws(DatabaseError) -> Set<BlobDigest>? {
    guard let symbols = try symbols(of: key) else { return nil }
    guard let row = try rows.row(key) else { return [] }
    // One that cannot be decoded is found as a document.
    return try? DocumentView(row.bytes).fields(symbols).contents
  }
}

extension Database {
  /// Checks the contents that the snapshot knows, and which files are there.
  func checkContents(
    _ snapshot: Snapshot, _ findings: inout FindingList
  ) async throws(DatabaseError) {
    // The rows are in question, so no picture of them counts.
    let rows = Rows(snapshot, Catalog(clock: environment.now), mayBlock: true)
    let kept = engine.contents.keepFiles()
    defer { kept.end() }
    var check = ContentCheck(rows, engine.contents)
    while !check.isDone {
      guard !Task.isCancelled else {
        throw DatabaseError(.cancelled, "the task was cancelled")
      }
      let previous = check
      check = await snapshot.readBlocking {
        var next = previous
        next.step()
        return next
      }
      findings.append(check.takeFindings())
    }
    guard engine.isReadOnly else { return }
    let named = check.named
    let files = try await contents.readingFiles { (contents) throws(EngineError) in
      try contents.listFiles()
    }
    for file in files where !named.contains(file.number) {
      findings.append(
        Finding(
          .warning, .content, "nothing in the file is stored", file: file.name,
          hint: "while the database is open for writing, the file goes by itself"))
    }
  }
}
