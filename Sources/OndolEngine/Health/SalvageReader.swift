// Extracts everything readable from a damaged database: row by row in key order, the newest of each
// key. The source is not changed or locked. Memory holds the logs, one block of each run, and one
// value.
//
// If several rows have the same key, the choice is made as follows. If the manifest could be read,
// the row in the newest source counts, as in any read. Otherwise the row of the latest commit
// counts, which the layer above can tell for documents. A deletion counts only if it is certainly
// later, because rows that are kept unnecessarily can be deleted again.

/// An iteration over everything readable.
package final class SalvageReader {
  private let directory: any Directory
  private let losses: SalvageLosses
  private let isOrdered: Bool
  private let dropped: DroppedKeyspaces
  private let sources: [any SalvageSource]
  /// Salts of value files, as far as known.
  private var salts: [FileNumber: UInt64]
  /// The ciphers of the value files that were used.
  private var seals: [FileNumber: FileSeal] = [:]
  /// The keyed groups of value files, as far as known.
  private var groups: [FileNumber: UInt32] = [:]
  /// The commit that a row's value claims to belong to.
  private let version: ([UInt8], [UInt8]) -> SequenceNumber?

  /// The number of shards of the database, if known.
  package let shardCount: Int?
  /// The last commit in logs and the manifest, and its time.
  package let last: (sequence: SequenceNumber, time: Int64)

  /// Examines the directory at `path`, and reads the logs. Blocks.
  ///
  /// - Parameter version: the commit that a value for the given key claims to belong to; nil if it
  ///   claims none.
  /// - Throws: `.notADatabase`, `.needsNewerVersion`, `.io`.
  package init(
    at path: String, environment: Environment,
    version: @escaping (_ key: [UInt8], _ value: [UInt8]) -> SequenceNumber?
  ) throws(EngineError) {
    let keyed = try environment.unlocked(
      try environment.fileSystem.openDirectory(at: path, create: false))
    if environment.vault != nil, keyed.keyring == nil,
      try keyed.list().contains(where: { FileNumber.ofFile($0) != nil })
    {
      throw .locked(path: path, reason: "what is kept of its key in SUPER cannot be read")
    }
    // Also for files whose manifest cannot be read. Without the keys, their rows count as lost.
    _ = try? keyed.keyring?.groups.read(for: GroupList())
    directory = keyed
    self.version = version
    losses = SalvageLosses()
    let survey = try SalvageSurvey(of: directory, environment: environment, losses)
    let logs = survey.logs(in: directory, losses)
    isOrdered = survey.isOrdered
    dropped = survey.dropped
    shardCount = survey.shardCount
    salts = [:]
    for file in (survey.manifest?.shards ?? []).flatMap(\.valueFiles.values) {
      salts[file.number] = file.salt
      groups[file.number] = file.group
    }
    last = (max(survey.last.sequence, logs.sequence), max(survey.last.time, logs.time))
    sources = logs.sources + survey.runs(in: directory, losses)
  }

  /// What could not be read so far: the first thousand losses.
  package var foundLosses: [SalvageLoss] { losses.losses }
  /// The number of losses.
  package var lossCount: Int { losses.count }

  /// Whether rows of the keyspace may be missing, as far as the iteration has come.
  package func mayLackRows(ofKeyspace keyspace: UInt32) -> Bool {
    var prefix: [UInt8] = []
    prefix.appendBigEndian(keyspace)
    return losses.mayConcern(prefix, inShard: shard(of: prefix))
  }

  /// The shard of rows with such keys, if known.
  private func shard(of key: [UInt8]) -> Int? {
    shardCount.map { View.shardIndex(of: key.bytes, count: $0) }
  }

  /// The next row; nil at the end. Blocks.
  package func next() -> SalvagedRow? {
    while let key = sources.compactMap(\.key).min(by: { $0.lexicographicallyPrecedes($1) }) {
      var candidates: [SalvageCandidate] = []
      for source in sources where source.key == key {
        candidates.append(source.candidate)
        source.next()
      }
      if dropped.contains(DroppedKeyspaces.keyspace(of: key.bytes)) { continue }
      if let value = newest(candidates, key) { return SalvagedRow(key: key, value: value) }
    }
    return nil
  }

  /// The value that counts; nil if the row was deleted, or cannot be read anywhere.
  private func newest(_ candidates: [SalvageCandidate], _ key: [UInt8]) -> [UInt8]? {
    var best: (value: [UInt8], version: SequenceNumber)?
    var deleted: SequenceNumber?
    for candidate in candidates {
      if candidate.kind == .delete {
        if isOrdered { break }
        deleted = max(deleted ?? .zero, candidate.earliest)
        continue
      }
      guard let value = value(of: candidate, key) else { continue }
      let found = version(key, value) ?? .zero
      if found > best?.version ?? .zero || best == nil { best = (value, found) }
    }
    guard let best else { return nil }
    if let deleted, deleted > best.version, best.version > .zero { return nil }
    return best.value
  }

  // MARK: - Separate values

  private func value(of candidate: SalvageCandidate, _ key: [UInt8]) -> [UInt8]? {
    guard candidate.kind == .valuePointer else { return candidate.bytes }
    var file = "a value file"
    do throws(EngineError) {
      let pointer = try ValuePointer(row: candidate.bytes.bytes)
      file = pointer.file.valueFileName
      return try read(pointer)
    } catch {
      let reach = shard(of: key).map { SalvageLoss.Reach.shard($0) } ?? .everything
      var loss = SalvageLoss(error, in: file, reach: reach)
      loss.after = key
      loss.before = key
      losses.note(loss)
      return nil
    }
  }

  private func read(_ pointer: ValuePointer) throws(EngineError) -> [UInt8] {
    let errors = SegmentErrors(file: pointer.file.valueFileName)
    let file = try directory.open(errors.file, access: .readOnly)
    guard Int(pointer.storedLength) <= BlockLayout.maximumRowLength + SealFormat.tagLength else {
      throw errors.corrupt(at: pointer.offset, "a value that no file can hold")
    }
    var bytes = try file.read(at: pointer.offset, count: Int(pointer.recordLength))
    var salt = salts[pointer.file]
    if salt == nil, let header = try DataFileHeader.find(.values, in: file) {
      salt = header.salt
      groups[pointer.file] = header.group
    }
    guard let salt else { throw errors.corrupt(at: 0, "the file's header is damaged") }
    salts[pointer.file] = salt
    let seal =
      seals[pointer.file]
      ?? directory.keyring?.seal(
        .values, number: pointer.file, salt: salt, group: groups[pointer.file])
    seals[pointer.file] = seal
    do throws(MalformedBytes) {
      if let seal {
        bytes = try ValueRecord.unsealed(
          bytes.bytes, salt: salt, offset: pointer.offset, by: seal)
      }
      let record = try ValueRecord.Opened(
        bytes.bytes, salt: salt, offset: pointer.offset, isUnsealed: seal != nil)
      guard record.header.rawLength == pointer.rawLength,
        UInt32(truncatingIfNeeded: record.header.checksum) == pointer.checksum
      else { throw MalformedBytes(at: 0, "the value is not the one that its row points to") }
      let layout = SingleValueBlock(valueLength: Int(pointer.rawLength))
      let block = try layout.make { record.fill(&$0) }
      defer { block.free() }
      return block.value(0).array
    } catch {
      throw errors.corrupt(error, from: pointer.offset)
    }
  }
}
