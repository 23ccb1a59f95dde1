// What is left of a database and how to use it: the existing files and, if a manifest can be read,
// their order. The superblock's manifest is used. If no slot of the superblock can be read, the
// newest manifest is used. Without a manifest, every file in the directory is used, and the commits
// of the rows tell which is newer.

/// The files to extract rows from.
struct SalvageSurvey {
  /// The contents of the manifest, if it can be read.
  private(set) var manifest: ManifestState?
  /// Its contents up to its damage, if there is any. Files may have been added and removed since,
  /// but dropped keyspaces stay dropped, and no commit is undone.
  private var manifestBeforeDamage: ManifestState?
  private(set) var names: [String]
  /// The number of shards of the database, if known.
  private(set) var shardCount: Int?

  /// - Throws: `.notADatabase` if no part of one exists, `.needsNewerVersion`.
  init(
    of directory: any Directory, environment: Environment, _ losses: SalvageLosses
  ) throws(EngineError) {
    names = try directory.list()
    guard names.contains(where: { FileNumber.ofFile($0) != nil }) else {
      throw .notADatabase(path: directory.path, reason: "it has none of the files")
    }
    let superblock = try Self.superblock(in: directory)
    shardCount = superblock.map { Int($0.shardCount) }
    let newest = names.compactMap { FileNumber.parse($0, prefix: "MANIFEST-") }.max()
    guard let number = superblock?.manifest ?? newest else {
      losses.note(Self.unordered("the manifest is missing", "MANIFEST"))
      return
    }
    var root = superblock
    do throws(EngineError) {
      let found =
        if let superblock { superblock } else { try Self.standIn(for: number, in: directory) }
      root = found
      manifest = try Manifest.load(
        found, directory: directory, environment: environment, rotationSize: .max,
        access: .readOnly
      ).state
    } catch {
      if case .needsNewerVersion = error { throw error }
      losses.note(Self.unordered("\(error)", number.manifestName))
      manifestBeforeDamage = root.flatMap {
        ReadManifest.readableState($0, directory: directory)
      }
    }
  }

  private static func unordered(_ reason: String, _ file: String) -> SalvageLoss {
    SalvageLoss(
      file: file,
      "\(reason); without the list of files, documents that were deleted may be back",
      reach: .nothing)
  }

  private static func superblock(in directory: any Directory) throws(EngineError) -> Superblock? {
    do throws(EngineError) {
      return try Superblock.read(from: try directory.open(Superblock.name, access: .readOnly))
    } catch {
      if case .needsNewerVersion = error { throw error }
      return nil
    }
  }

  /// A superblock that points to the manifest with this number, built from that manifest's header.
  private static func standIn(
    for number: FileNumber, in directory: any Directory
  ) throws(EngineError) -> Superblock {
    let file = try directory.open(number.manifestName, access: .readOnly)
    let bytes = try file.read(at: 0, count: ManifestHeader.length)
    var reader = ByteReader(bytes.bytes)
    do throws(MalformedBytes) {
      _ = try reader.take(24)
      let identity = DatabaseIdentity(
        low: try reader.littleEndian(), high: try reader.littleEndian())
      // The largest possible number of shards. The manifest lists those that exist.
      return Superblock(
        identity: identity, epoch: 1, manifest: number, shardCount: 1024, created: 0, written: 0)
    } catch {
      throw .corrupt(file: number.manifestName, offset: 0, reason: error.reason)
    }
  }

  // MARK: - Sources

  /// Whether the sources are known to be sorted by age.
  var isOrdered: Bool { manifest != nil }

  /// Keyspaces whose rows are permanently removed, as far as known.
  var dropped: DroppedKeyspaces {
    (manifest ?? manifestBeforeDamage)?.dropped ?? DroppedKeyspaces()
  }

  /// The last commit that is known to have existed. Its time may be later.
  var last: (sequence: SequenceNumber, time: Int64) {
    guard let manifest = manifest ?? manifestBeforeDamage else { return (.zero, 0) }
    let flushed = manifest.shards.map(\.flushedThrough).max() ?? .zero
    return (max(flushed, manifest.floor.sequence), manifest.floor.time)
  }

  /// The commits in the logs.
  func logs(in directory: any Directory, _ losses: SalvageLosses) -> SalvageLogs {
    guard let manifest else {
      return SalvageLogs(
        names, after: nil, flushed: .zero, named: manifestBeforeDamage?.namedLogs ?? [:],
        in: directory, losses)
    }
    for number in Set([manifest.floor.number, manifest.newestLog]).sorted()
    where !names.contains(number.logName) {
      losses.note(
        SalvageLoss(file: number.logName, "the log is missing", reach: .everything))
    }
    let flushed = manifest.shards.map(\.flushedThrough).min() ?? .zero
    let logs = names.filter {
      FileNumber.parse($0, prefix: "LOG-").map { $0 >= manifest.floor.number } ?? false
    }
    let found = SalvageLogs(
      logs, after: manifest.floor.sequence, flushed: flushed, named: manifest.namedLogs,
      in: directory, losses)
    let greatest = last.sequence
    if flushed < greatest, found.sequence < greatest {
      let first = max(found.sequence, flushed).next.rawValue
      losses.note(
        SalvageLoss(
          file: manifest.newestLog.logName,
          "commits \(first) to \(greatest.rawValue) are missing at its end",
          reach: .everything))
    }
    return found
  }

  /// The rows of segments, newer segments first if the order is known.
  func runs(in directory: any Directory, _ losses: SalvageLosses) -> [any SalvageSource] {
    guard let manifest else {
      return names.compactMap { FileNumber.parse($0, suffix: ".seg") }.sorted().reversed().map {
        SalvageRun([($0, nil)], reach: .everything, in: directory, losses)
      }
    }
    for locked in manifest.shards.flatMap(\.locked) {
      losses.note(SalvageLoss(withoutKeyOf: locked.segment))
    }
    return manifest.shards.enumerated().flatMap { shard, state in
      state.runs.map { run in
        SalvageRun(
          run.segments.map { ($0.number, $0) }, reach: .shard(shard), in: directory, losses)
      }
    }
  }
}
