// Log files as the maintenance thread sees them: made ahead of their use, put into the manifest,
// sealed when the database is closed, removed once everything in them is flushed.

extension Storage {
  /// Makes the next log, unless one waits already.
  func makeSpareLog() async throws(EngineError) {
    try await perform { (storage) throws(EngineError) in
      guard !storage.sequencer.hasSpareLog else { return }
      let spare = try storage.createLog()
      try storage.secure(spare.number)
      storage.sequencer.offer(spare)
    }
  }

  /// Makes a log for commits that wait for one, and hands it out at once: what survives a power cut
  /// waits for `secureFirstLog()`, what survives a kill need not. Not so in a database just made,
  /// whose superblock an opening must find before it finds a log with commits.
  func makeFirstLog() async throws(EngineError) {
    try await perform(securing: isNewborn) { (storage) throws(EngineError) in
      guard !storage.sequencer.hasSpareLog, !storage.sequencer.hasWritten else { return }
      storage.sequencer.offer(try storage.createLog())
    }
  }

  /// Makes sure that the log handed out by `makeFirstLog()` is found after a power cut. Done on the
  /// maintenance thread, without a task: commits that try again and again may keep the pool busy
  /// until this is done.
  func secureFirstLog() {
    maintenance.enqueue { [self] in
      guard let newest = sequencer.newestLog, newest > manifest.state.newestLog,
        (try? sequencer.refuseAfterFailure()) != nil
      else { return }
      do throws(EngineError) {
        try manifest.secureFoundation()
        try secure(newest)
      } catch {
        _ = sequencer.fail(error)
      }
    }
  }

  private func createLog() throws(EngineError) -> SpareLog {
    let number = manifest.allocate()
    let file = try directory.create(number.logName)
    return SpareLog(number: number, file: file, salt: environment.random())
  }

  /// Makes a log's name durable and puts it in the manifest, which comes before the first sync of
  /// its commits: so a log that is missing later is known to be.
  private func secure(_ number: FileNumber) throws(EngineError) {
    try directory.sync()
    try manifest.commit([.logs(floor: manifest.state.floor, newest: number)])
    sequencer.noteSecured(number)
  }

  /// Whether an opening would find commits in its logs.
  var hasCommitsInLogs: Bool {
    let end = sequencer.end
    return end.starts.first?.sequence != end.sequence
  }

  func removeLogs(before floor: FileNumber) throws(EngineError) {
    for name in try directory.list() {
      guard let number = FileNumber.parse(name, prefix: "LOG-"), number < floor else { continue }
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
    try LogFile.writeSealed(header, start, directory: directory)
    try manifest.commit([.logs(floor: start, newest: number)])
    try removeLogs(before: number)
  }
}
