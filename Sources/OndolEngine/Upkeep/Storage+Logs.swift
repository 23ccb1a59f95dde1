// Log files from the maintenance thread's view. They are created before they are needed, listed in
// the manifest, sealed when the database is closed, and removed once everything in them is flushed.

internal import Synchronization

/// What recovery has read and not yet moved, and the files that existed then.
typealias UnfinishedRecovery = (replacement: LogReplacement, names: [String])

extension Storage {
  /// Moves what recovery has read to a log and a manifest that are on the device. Then it removes
  /// the dead files among those that existed at that time, because merges may be creating others.
  /// It is the maintenance thread's first job after an unclean shutdown. If the disk has too little
  /// space, the old files stay unchanged, and every later write runs this first. After any other
  /// failure all writing stops, and the old files remain for the next open.
  func finishRecovery() throws(EngineError) {
    guard let (replacement, names) = unfinished.withLock({ $0 }) else { return }
    let log = try replacement.write(to: directory, manifest, environment)
    sequencer.goOn(after: log, replacement.memtables)
    unfinished.withLock { $0 = nil }
    isRecovering.store(false, ordering: .releasing)
    // The next open removes what cannot be removed now.
    guard let present = try? Set(directory.list()) else { return }
    try? manifest.removeUnnamed(names.filter(present.contains))
  }

  /// Waits for that if it is not complete yet.
  func waitForRecovery() async throws(EngineError) {
    guard isRecovering.load(ordering: .acquiring) else { return }
    try await perform { _ in }
  }

  /// Creates the next log, unless a spare one exists. A full disk does no harm yet: commits
  /// continue in the log in use, and the unfinished file is removed.
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

  /// Creates a log for waiting commits and hands it out at once. What must survive a power cut
  /// waits for `secureFirstLog()`; what must survive a process kill need not. A newly created
  /// database is an exception: an open must find its superblock before it finds a log with commits.
  ///
  /// Nothing has been placed yet, so after a failure the commit can be tried again.
  func makeLog() async throws(EngineError) {
    try await maintenance.perform { [self] () throws(EngineError) in
      try sequencer.refuseAfterFailure()
      guard sequencer.needsLog else { return }
      if isNewborn || isRecovering.load(ordering: .relaxed) || mustChangeHistory {
        try attempt { (storage) throws(EngineError) in try storage.changeHistory() }
      }
      let spare = try withReserve { () throws(EngineError) in
        // The files that list the log are written once it has commits. By then neither space nor
        // file descriptors may be lacking.
        try manifest.openFoundation()
        try manifest.makeRoom()
        return try createLog(prewritten: 0)
      }
      sequencer.offer(spare)
    }
  }

  /// Ensures that the log handed out by `makeLog()` is found after a power cut. It runs on the
  /// maintenance thread without a task, because commits that retry repeatedly may occupy the pool
  /// until this is complete. After a temporary failure it asks `tryAgain`, which returns true if
  /// another attempt will follow.
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
        // Commits wait for this log's syncs. If none will happen, they receive the error.
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

  /// Works in pieces, so that the sync of a commit does not wait long for them.
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

  /// Makes a log's name durable and lists the log in the manifest, before the first sync of its
  /// commits. So a log that is missing later is recognised as missing, and a log that has lost its
  /// header can be read.
  func secure(_ log: NamedLog, mayUseHeadroom: Bool = false) throws(EngineError) {
    try directory.sync()
    try manifest.commit(
      [.logs(floor: manifest.state.floor, newest: log.number), .nameLog(log)],
      mayUseHeadroom: mayUseHeadroom)
    sequencer.noteSecured(log.number)
  }

  /// Whether an open would find commits in the logs.
  var hasCommitsInLogs: Bool {
    let end = sequencer.end
    return end.starts.first?.sequence != end.sequence
  }

  /// Removes logs that recovery no longer needs and that nothing keeps.
  func removeLogs() throws(EngineError) {
    for name in try directory.list() {
      guard let number = FileNumber.parse(name, prefix: "LOG-"),
        !manifest.state.references(log: number)
      else { continue }
      try directory.remove(name)
    }
  }

  /// Ends the sequence of commits with a sealed, empty log, so that the next open has nothing to
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

  /// Makes `floor` the first log that recovery needs, and releases the logs before it that are not
  /// kept. `changes` are the edits that made those logs unnecessary.
  func moveFloor(
    to floor: LogStart, newest: FileNumber, _ changes: [ManifestChange] = []
  ) throws(EngineError) {
    let old = manifest.state.history
    let history = sequencer.history(before: floor, now: environment.now())
    let kept = History.changes(from: old, to: history)
    for case .keepLog(let log) in kept {
      // No thread writes it again. Data that a flush did not need may not be on the device yet.
      let file = try directory.open(log.number.logName, access: .readWrite)
      file.giveBack(behind: log.length)
      try file.sync()
    }
    try manifest.commit(changes + [.logs(floor: floor, newest: newest)] + kept)
    sequencer.forgetLogs(before: floor.number, keeping: history)
    // A remaining log does no harm, and is removed together with the next one.
    try? removeLogs()
  }

  // MARK: - History

  /// Whether the options and the manifest disagree about history.
  var mustChangeHistory: Bool {
    (manifest.state.history == nil) != (options.historyRetention == nil)
  }

  /// Starts or ends history as the options require. It runs before the first log is handed out, so
  /// that a commit without an annotation is never read as one with an annotation.
  func changeHistory() throws(EngineError) {
    guard mustChangeHistory else { return }
    let history = options.historyRetention.map { _ in History(start: sequencer.lastPlaced) }
    try manifest.commit(History.changes(from: manifest.state.history, to: history))
    sequencer.setHistory(history)
    try? removeLogs()
  }
}
