// Log files as the maintenance thread sees them: made ahead of their use, put into the manifest,
// sealed when the database is closed, removed once everything in them is flushed.

internal import Synchronization

/// What recovery has read and not yet moved, and the files that were there.
typealias UnfinishedRecovery = (replacement: LogReplacement, names: [String])

extension Storage {
  /// Moves what recovery has read to a log and a manifest that are on the device, and removes what
  /// is dead among the files that were there: merges may be making others. The maintenance thread's
  /// first job after an unclean end. Where the disk has no space for it, the old files stay as they
  /// are, and whatever would write comes here first; when it fails in another way nothing is
  /// written any more, and the old files are there for the next opening.
  func finishRecovery() throws(EngineError) {
    guard let (replacement, names) = unfinished.withLock({ $0 }) else { return }
    let log = try replacement.write(to: directory, manifest, environment)
    sequencer.goOn(after: log, replacement.memtables)
    unfinished.withLock { $0 = nil }
    isRecovering.store(false, ordering: .releasing)
    // What cannot be removed now is by the next opening.
    guard let present = try? Set(directory.list()) else { return }
    try? manifest.removeUnnamed(names.filter(present.contains))
  }

  /// Waits for that, where it is not done yet.
  func waitForRecovery() async throws(EngineError) {
    guard isRecovering.load(ordering: .acquiring) else { return }
    try await perform { _ in }
  }

  /// Makes the next log, unless one waits already. A disk that is full is no harm yet: commits go
  /// on in the log in use, and what was begun is removed.
  func makeSpareLog(_ request: SpareRequest) async throws(EngineError) {
    try await maintenance.perform { [self] () throws(EngineError) in
      try sequencer.refuseAfterFailure()
      guard !sequencer.hasSpareLog, !sequencer.isClosing else { return }
      let spare = try createLog(prewritten: request.prewritten)
      do throws(EngineError) {
        try attempt { (storage) throws(EngineError) in try storage.secure(NamedLog(spare)) }
      } catch {
        if error.isPassing { discard([spare.number.logName]) }
        sequencer.noteNoSpare(error)
        throw error
      }
      sequencer.offer(spare)
    }
  }

  /// Makes a log for commits that wait for one, and hands it out at once: what survives a power cut
  /// waits for `secureFirstLog()`, what survives a kill need not. Not so in a database just made,
  /// whose superblock an opening must find before it finds a log with commits.
  ///
  /// Nothing has been placed yet, so where it fails, the commit can be tried again.
  func makeLog() async throws(EngineError) {
    try await maintenance.perform { [self] () throws(EngineError) in
      try sequencer.refuseAfterFailure()
      guard sequencer.needsLog else { return }
      if isNewborn || isRecovering.load(ordering: .relaxed) || mustChangeHistory {
        try attempt { (storage) throws(EngineError) in try storage.changeHistory() }
      }
      let spare = try withReserve { () throws(EngineError) in
        // What names the log is written once it has commits: by then neither room nor descriptors
        // may be lacking.
        try manifest.openFoundation()
        try manifest.makeRoom()
        return try createLog(prewritten: 0)
      }
      sequencer.offer(spare)
    }
  }

  /// Makes sure that the log handed out by `makeLog()` is found after a power cut. Done on the
  /// maintenance thread, without a task: commits that try again and again may keep the pool busy
  /// until this is done. `tryAgain` is asked where it fails for the moment; true when it is to
  /// come.
  func secureFirstLog(tryAgain: @escaping @Sendable () -> Bool) {
    maintenance.enqueue { [self] in
      guard let newest = sequencer.newestLog, newest.number > manifest.state.newestLog
      else { return }
      do throws(EngineError) {
        try attempt { (storage) throws(EngineError) in
          try storage.secure(newest, mayUseHeadroom: true)
        }
        try? makeReserve()
      } catch {
        // Commits wait for this log's syncs: where there will be none they are told.
        if error.isPassing, tryAgain() { return }
        _ = sequencer.fail(error)
      }
    }
  }

  func createLog(prewritten: UInt64) throws(EngineError) -> SpareLog {
    let number = manifest.allocate()
    do throws(EngineError) {
      let file = try directory.create(number.logName)
      try writeZeros(prewritten, into: file)
      var reserved = prewritten
      if prewritten == 0 {
        let first = UInt64(LogHeader.length) + Sequencer.piece(of: options.logSize)
        reserved = try file.reserve(0..<first) ? first : .max
      }
      let salt = environment.random()
      return SpareLog(
        number: number, file: file, salt: salt, prewritten: prewritten, reserved: reserved,
        seal: directory.keyring?.seal(log: number, salt: salt))
    } catch {
      try? directory.remove(number.logName)
      sequencer.noteNoSpare(error)
      throw error
    }
  }

  /// In pieces, so that a commit's sync does not wait long behind them.
  private func writeZeros(_ count: UInt64, into file: any File) throws(EngineError) {
    let piece = [UInt8](repeating: 0, count: Int(min(count, 256 << 10)))
    var offset: UInt64 = 0
    while offset < count {
      let length = Int(min(count - offset, UInt64(piece.count)))
      try file.write(piece.bytes.extracting(first: length), at: offset)
      try file.sync()
      offset += UInt64(length)
    }
  }

  /// Makes a log's name durable and puts it in the manifest, which comes before the first sync of
  /// its commits: so a log that is missing later is known to be, and one that has lost its header
  /// can be read.
  func secure(_ log: NamedLog, mayUseHeadroom: Bool = false) throws(EngineError) {
    try directory.sync()
    try manifest.commit(
      [.logs(floor: manifest.state.floor, newest: log.number), .nameLog(log)],
      mayUseHeadroom: mayUseHeadroom)
    sequencer.noteSecured(log.number)
  }

  /// Whether an opening would find commits in its logs.
  var hasCommitsInLogs: Bool {
    let end = sequencer.end
    return end.starts.first?.sequence != end.sequence
  }

  /// Removes logs that recovery needs no more and nobody keeps.
  func removeLogs() throws(EngineError) {
    for name in try directory.list() {
      guard let number = FileNumber.parse(name, prefix: "LOG-"),
        !manifest.state.references(log: number)
      else { continue }
      try directory.remove(name)
    }
  }

  /// Ends the line of commits with a sealed, empty log, so that the next opening has nothing to
  /// replay. Everything must be flushed.
  func sealLog() throws(EngineError) {
    let end = sequencer.end
    let number = manifest.allocate()
    let salt = environment.random()
    let start = LogStart(number: number, base: end.end, sequence: end.sequence, time: end.time)
    let header = LogHeader(
      number: number, identity: identity, salt: salt, kind: .normal, base: start.base,
      previous: end.number, previousLength: end.length, firstSequence: end.sequence.next)
    do throws(EngineError) {
      let log = try LogFile.writeSealed(header, start, directory: directory)
      try moveFloor(to: start, newest: number, [.nameLog(log)])
    } catch {
      if error.isPassing { discard([number.logName]) }
      throw error
    }
  }

  /// Makes `floor` the first log that recovery needs, and lets go of those before it that are not
  /// kept. `changes` are what made them dispensable.
  func moveFloor(
    to floor: LogStart, newest: FileNumber, _ changes: [ManifestChange] = []
  ) throws(EngineError) {
    let old = manifest.state.history
    let history = sequencer.history(before: floor, now: environment.now())
    let kept = History.changes(from: old, to: history)
    for case .keepLog(let log) in kept {
      // Nobody writes it again; what a flush did not need may not be on the device yet.
      let file = try directory.open(log.number.logName, access: .readWrite)
      file.giveBack(behind: log.length)
      try file.sync()
    }
    try manifest.commit(changes + [.logs(floor: floor, newest: newest)] + kept)
    sequencer.forgetLogs(before: floor.number, keeping: history)
    // A log that stays is in nobody's way, and goes with the next.
    try? removeLogs()
  }

  // MARK: - History

  /// Whether the options say something else about history than the manifest does.
  var mustChangeHistory: Bool {
    (manifest.state.history == nil) != (options.historyRetention == nil)
  }

  /// Begins or ends the history as the options say. Done before the first log is handed out, so
  /// that no commit is taken for one with an annotation that has none.
  func changeHistory() throws(EngineError) {
    guard mustChangeHistory else { return }
    let history = options.historyRetention.map { _ in History(start: sequencer.lastPlaced) }
    try manifest.commit(History.changes(from: manifest.state.history, to: history))
    sequencer.setHistory(history)
    try? removeLogs()
  }
}
