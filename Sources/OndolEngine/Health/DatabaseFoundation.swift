// What makes segments and value files a database: a log that ends where it begins, a manifest, and
// the superblock. A backup and what is salvaged are written so: files of rows first, then this, so
// that what is opened continues behind one commit as if the database had been closed there.

/// The files beside those of rows, for a database that ends with one commit.
struct DatabaseFoundation {
  var identity: DatabaseIdentity
  /// The last commit, and its time or a later one.
  var sequence: SequenceNumber
  var time: Int64
  /// Gives out file numbers above those of all files there are.
  var numbers: FileNumbers

  /// Writes them into `directory`, synced, but for the superblock's name. All rows up to the last
  /// commit must be in the files that `shards` name.
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
