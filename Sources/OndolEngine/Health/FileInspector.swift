// Shows the contents of individual files to people: frames of a log, edits of the manifest,
// segments and their rows. It works while other processes have the database open, changes nothing,
// and trusts only what a checksum confirms.

/// Shows the contents of the files of one database.
package struct FileInspector: Sendable {
  private let directory: any Directory
  private let environment: Environment

  /// The most files open at once.
  private static let fileLimit = 32

  /// Inspects the database in the directory at `path`, which must exist.
  package init(at path: String, environment: Environment) throws(EngineError) {
    let keyed = try environment.unlocked(
      FrugalDirectory(
        try environment.fileSystem.openDirectory(at: path, create: false),
        limit: Self.fileLimit, isShared: true))
    // Without them, data encrypted with them is shown in its stored form.
    _ = try? keyed.keyring?.groups.read(for: GroupList())
    directory = keyed
    self.environment = environment
  }

  // MARK: - Logs

  /// One change in a commit.
  package struct LoggedOperation: Sendable {
    package var isDeletion: Bool
    package var key: [UInt8]
    package var value: [UInt8]
  }

  /// A valid frame of a log.
  package struct LoggedFrame: Sendable {
    package var offset: UInt64
    /// The length of the frame.
    package var length: Int
    package var kind: String
    package var sequence: UInt64
    /// Microseconds since 1970.
    package var time: Int64
    /// The operations of a complete commit. It is empty for a commit in parts.
    package var operations: [LoggedOperation]
  }

  /// The names of the logs, oldest first.
  package func logs() throws(EngineError) -> [String] {
    try directory.list().compactMap { FileNumber.parse($0, prefix: "LOG-") }.sorted()
      .map(\.logName)
  }

  /// The valid frames of a log, up to the first invalid one.
  package func frames(ofLog name: String) throws(EngineError) -> [LoggedFrame] {
    let file = try directory.open(name, access: .readOnly)
    let bytes = try file.read(at: 0, count: Int(clamping: min(try file.size(), 4 << 30)))
    let page = bytes.bytes.extracting(first: min(LogHeader.length, bytes.count))
    guard case .header(let header) = try LogHeader.read(page, file: name) else { return [] }
    var reader = FrameReader(
      bytes, salt: header.salt, from: LogHeader.length, seal: directory.keyring?.seal(header))
    var frames: [LoggedFrame] = []
    while let frame = reader.next() {
      var operations: [LoggedOperation] = []
      if frame.header.kind == .commit {
        var commit = RecoveredCommit(frame, in: bytes)
        try? commit.openGroups(by: reader.seal)
        let payload = Array(commit.bytes[commit.payload])
        var rows = OperationReader(payload.bytes)
        while let row = try? rows.next() {
          operations.append(
            LoggedOperation(
              isDeletion: row.kind == .delete, key: row.key.array, value: row.value.array))
        }
      }
      frames.append(
        LoggedFrame(
          offset: UInt64(frame.offset), length: frame.header.frameLength,
          kind: "\(frame.header.kind)", sequence: frame.header.sequence.rawValue,
          time: frame.header.time, operations: operations))
    }
    return frames
  }

  // MARK: - The manifest

  /// One edit of the manifest.
  package struct ManifestEdit: Sendable {
    package var offset: UInt64
    package var ordinal: UInt64
    /// Microseconds since 1970.
    package var time: Int64
    /// Its changes, in words.
    package var changes: [String]
  }

  private func superblock() throws(EngineError) -> Superblock {
    try Superblock.read(from: try directory.open(Superblock.name, access: .readOnly))
  }

  /// The manifest's file.
  package func manifestName() throws(EngineError) -> String {
    try superblock().manifest.manifestName
  }

  /// The valid edits of the manifest, up to the first invalid one.
  package func manifestEdits() throws(EngineError) -> [ManifestEdit] {
    var edits = try ReadManifest.edits(try superblock(), directory: directory)
    var shown: [ManifestEdit] = []
    while let edit = try? edits.next(), edit.payload.count >= 8 {
      let body = edit.payload.bytes.extracting(droppingFirst: 8)
      guard let changes = try? ManifestChange.decodeAll(body) else { break }
      shown.append(
        ManifestEdit(
          offset: UInt64(edit.offset), ordinal: edit.ordinal, time: edit.time,
          changes: changes.map { "\($0)" }))
    }
    return shown
  }

  // MARK: - Segments

  /// The position of a segment, and its entry in the manifest.
  package struct ListedSegment: Sendable {
    package var shard: Int
    package var level: Int
    package var metadata: SegmentMetadata
    package var file: String { metadata.number.segmentName }
  }

  /// All segments, by shard and level.
  package func segments() throws(EngineError) -> [ListedSegment] {
    let state = try manifestState()
    return state.shards.enumerated().flatMap { shard, state in
      state.runs.flatMap { run in
        run.segments.map { ListedSegment(shard: shard, level: run.level, metadata: $0) }
      }
    }
  }

  private func manifestState() throws(EngineError) -> ManifestState {
    try Manifest.load(
      try superblock(), directory: directory, environment: environment, rotationSize: .max,
      access: .readOnly
    ).state
  }

  /// The names of files of rows and of large values that the manifest does not list. Either a
  /// process still reads them, or the next open removes them.
  package func leftFiles() throws(EngineError) -> [String] {
    let state = try manifestState()
    return try directory.list().filter { name in
      if let number = FileNumber.parse(name, suffix: ".seg") {
        return !state.references(segment: number)
      }
      guard let number = FileNumber.parse(name, suffix: ".val") else { return false }
      return !state.references(valueFile: number)
    }.sorted()
  }

  private func openSegment(_ name: String) throws(EngineError) -> Segment {
    let state = try manifestState()
    let cache = BlockCache(budgetBytes: 1 << 20)
    let identity = try superblock().identity
    let files = ValueFiles(
      identity: identity, directory: directory, cache: cache, access: .readOnly)
    files.follow(state)
    for (shard, part) in state.shards.enumerated() {
      for metadata in part.segments where metadata.number.segmentName == name {
        return Segment(
          metadata, identity: identity, shard: UInt32(shard), directory: directory, cache: cache,
          valueFiles: files.files(metadata.valueReferences))
      }
    }
    throw .io(operation: "open", file: name, offset: nil, errno: 2)
  }

  /// All problems with a segment.
  package func findings(ofSegment name: String) throws(EngineError) -> [StorageFinding] {
    try openSegment(name).findings()
  }

  /// Visits a segment's rows in order, until `visit` ends it. A value in a value file is shown as
  /// its pointer.
  package func forEachRow<Failure: Error>(
    ofSegment name: String,
    _ visit: (_ kind: String, _ key: [UInt8], _ value: [UInt8]) throws(Failure) -> Bool
  ) throws {
    let cursor = Run([try openSegment(name)]).cursor()
    try cursor.seekToFirst()
    while cursor.isValid {
      guard try visit("\(cursor.kind)", cursor.key.array, cursor.value.array) else { return }
      try cursor.next()
    }
  }
}
