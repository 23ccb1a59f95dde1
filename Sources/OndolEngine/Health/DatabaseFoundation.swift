// The files that turn segments and value files into a database: an empty log, a manifest, and the
// superblock. Backups and salvaged data are written this way: first the files of rows, then these.
// The resulting database continues after one commit as if it had been closed there.

/// The files other than those of rows, for a database that ends with one commit.
struct DatabaseFoundation {
  var identity: DatabaseIdentity
  /// The last commit. Its time may be later.
  var sequence: SequenceNumber
  var time: Int64
  /// Hands out file numbers above those of all existing files.
  var numbers: FileNumbers

  /// Writes and syncs them in `directory`, except for the superblock's name. All rows up to the
  /// last commit must be in the files listed in `shards`.
  func write(
    _ shards: [ShardState], _ dropped: DroppedKeyspaces, _ groups: GroupList,
    to directory: any Directory, environment: Environment
  ) throws(EngineError) {
    let log = LogStart(
      number: numbers.allocate(), base: .zero, sequence: sequence, time: time)
    let header = LogHeader(
      number: log.number, identity: identity, salt: environment.random(), kind: .normal,
      base: .zero, previous: .zero, previousLength: 0, firstSequence: sequence.next)
    let name = try LogFile.writeSealed(header, log, directory: directory)
    let now = environment.now()
    var superblock = Superblock(
      identity: identity, epoch: 1, manifest: numbers.allocate(),
      shardCount: UInt32(shards.count), created: now, written: now)
    superblock.prove(with: directory.keyring)
    let state = ManifestState(
      nextFile: numbers.next, floor: log, newestLog: log.number, shards: shards,
      namedLogs: [name.number: name], dropped: dropped,
      groups: groups)
    _ = try Manifest.create(
      state, superblock: superblock, directory: directory, environment: environment,
      rotationSize: EngineOptions().manifestSize)
    try directory.sync()
    try superblock.write(to: try directory.create(Superblock.name))
  }
}
