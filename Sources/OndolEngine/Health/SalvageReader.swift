// Takes out of a damaged database what can be read of it, row by row in the order of their keys,
// the newest of each. The source is not changed and not locked. In memory are the logs, a block of
// each run, and one value.
//
// Which of several rows is the newest: where the manifest could be read, the one in the newest
// source, as in any read. Otherwise the one of the latest commit, which the floor above knows of
// documents; and a deletion counts only when it is later for certain: what is saved without need
// can be deleted again.

/// A walk over what can be read.
package final class SalvageReader {
  private let directory: any Directory
  private let losses: SalvageLosses
  private let isOrdered: Bool
  private let dropped: DroppedKeyspaces
  private let sources: [any SalvageSource]
  /// Salts of value files, as far as known.
  private var salts: [FileNumber: UInt64]
  /// What opens value files, of those that were met.
  private var seals: [FileNumber: FileSeal] = [:]
  /// The keyed groups of value files, as far as known.
  private var groups: [FileNumber: UInt32] = [:]
  /// The commit that a row's value says it is of.
  private let version: ([UInt8], [UInt8]) -> SequenceNumber?

  /// Shards of the database, when known.
  package let shardCount: Int?
  /// The last commit seen in logs and the manifest, and its time.
  package let last: (sequence: SequenceNumber, time: Int64)

  /// Looks at the directory at `path`, and reads the logs. Blocks.
  ///
  /// - Parameter version: the commit that a value, to the given key, says that it is of; nil when
  ///   it says nothing.
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
    // Also for files of which no manifest can be read. Without them their rows count as lost.
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

  /// What could not be read so far, the first thousand of it.
  package var foundLosses: [SalvageLoss] { losses.losses }
  /// How much could not be read.
  package var lossCount: Int { losses.count }

  /// Whether rows of the keyspace may be missing, as far as the walk has come.
  package func mayLackRows(ofKeyspace keyspace: UInt32) -> Bool {
    var prefix: [UInt8] = []
    prefix.appendBigEndian(keyspace)
    return losses.mayConcern(prefix, inShard: shard(of: prefix))
  }

  /// The shard that rows with such keys are in, when known.
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

  /// The value that counts; nil when the row was deleted, or can be read nowhere.
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

  // MARK: - Values apart from their keys

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
