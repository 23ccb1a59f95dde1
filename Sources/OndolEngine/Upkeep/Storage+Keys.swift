// A key change as the maintenance thread performs it: the superblock records that it began, commits
// continue in another log, and the logs of history are rewritten. Once no old file is left, the
// superblock forgets the older key. Each step leaves a database that opens.
//
// Logs are ordered by their numbers, and recovery reads all logs from the floor on. So a spare log
// from before the border is removed before commits go into a later one. The logs of history lie
// before the floor; they take the numbers that the change has reserved for them.

extension Storage {
  /// What the superblock records about the database's keys.
  var keyring: Keyring? { keyed.keyring }

  /// Records the database's key in the superblock in this form, and removes the earlier form.
  func keep(_ kept: [UInt8]) throws(EngineError) {
    guard let keyring, keyring.kept != nil else {
      throw .invalid(reason: "the database is not encrypted")
    }
    try manifest.write(keyring.keeping(kept)) { keyed.use($0) }
  }

  /// Encrypts all files made from now on with a key, or stops encrypting them.
  ///
  /// - Parameter new: the key, and what the superblock stores about it.
  func beginKeyChange(to new: (key: any MasterKey, kept: [UInt8])?) throws(EngineError) {
    let live = manifest.state.groups.live
    let next = manifest.numbers.next
    let border = try KeyChange.border(behind: next, margin: options.keyChangeMargin)
    if !live.isEmpty { try beginEra(at: border, behind: next) }
    let ring = Keyring.changing(
      keyring, to: new, from: border, identity: identity.bytes, random: environment.random)
    // No file gets a number after the border before that is on the device.
    try manifest.write(ring) { keyed.use($0) }
    guard let change = ring.change else { return }
    manifest.numbers.stepTo(change.firstOfOthers)
    ring.groups.use(ring.masters)
    // The change has begun, whatever the result of this step, which only must succeed before the
    // end.
    try eraseOtherKeysWherePossible()
  }

  /// Gives groups new keys for files from `border` on. The keys are on the device and recorded as
  /// required in the manifest before any file has such a number.
  private func beginEra(
    at border: FileNumber, behind next: FileNumber
  ) throws(EngineError) {
    var groups = manifest.state.groups
    guard let groupKeys else { return }
    let keys = try groupKeys.changed(for: groups.live) { keys, master in
      keys.beginEra(at: border, behind: next, from: master)
    }
    try groupKeys.write(keys, in: directory)
    groups.generation = keys.generation
    try manifest.commit([.groups(groups)])
    groupKeys.note(groups)
  }

  /// Why the change cannot continue; nil if it can. Without the keys of groups it would lose their
  /// data.
  var refusalOfGoingOn: EngineError? {
    missingKey.map { missing in
      .locked(
        path: directory.path, reason: "the change of keys waits until all are here: \(missing)")
    }
  }

  // MARK: - Logs

  /// Makes commits go into a log after the border. Returns false if that is not possible because
  /// the log in use has no commit yet: it would be a gap in the sequence.
  func leaveLog(_ change: KeyChange) throws(EngineError) -> Bool {
    guard sequencer.lastLog < change.border else { return true }
    // As for the first log, before a log is handed out.
    if mustChangeHistory { try changeHistory() }
    if let spare = sequencer.withdrawSpare(before: change.border) { try remove(spare) }
    if !sequencer.hasSpareLog {
      let spare = try createLog(prewritten: 0)
      do throws(EngineError) {
        try secure(NamedLog(spare))
      } catch {
        if error.isPassing { discard([spare.number.logName]) }
        sequencer.noteNoSpare(error)
        throw error
      }
      sequencer.offer(spare)
    }
    return try sequencer.leaveLog()
  }

  /// Removes a log that will never receive commits. A log that the manifest lists as the newest
  /// must exist, so the manifest first lists another one as the newest.
  private func remove(_ spare: SpareLog) throws(EngineError) {
    do throws(EngineError) {
      if manifest.state.newestLog == spare.number {
        let floor = manifest.state.floor
        let others = manifest.state.namedLogs.keys.filter { $0 < spare.number }
        try manifest.commit([
          .logs(floor: floor, newest: max(floor.number, others.max() ?? floor.number))
        ])
      }
      try directory.remove(spare.number.logName)
    } catch {
      if error.isPassing { sequencer.offer(spare) }
      throw error
    }
    do throws(EngineError) {
      try directory.sync()
    } catch {
      throw sequencer.fail(error)
    }
  }

  /// Moves the floor to the oldest log whose rows are still in memory.
  func moveFloor() throws(EngineError) {
    let floor = sequencer.floor()
    guard floor.number > manifest.state.floor.number else { return }
    try moveFloor(to: floor, newest: max(manifest.state.newestLog, floor.number))
  }

  /// Rewrites the youngest log of history that has a number before the border; returns false if
  /// there is none. If the log cannot be read, history begins after it.
  func rewriteLogOfHistory(_ change: KeyChange) throws(EngineError) -> Bool {
    let state = manifest.state
    guard state.floor.number >= change.firstOfOthers, var history = state.history,
      let index = history.logs.lastIndex(where: { $0.number < change.border })
    else { return false }
    let old = history.logs[index]
    let isLast = index + 1 == history.logs.count
    let behind = isLast ? state.floor.before : history.logs[index + 1].before
    let number = FileNumber(
      rawValue: (isLast ? change.firstOfOthers : history.logs[index + 1].number).rawValue - 1)
    guard number >= change.border else { throw .invalid(reason: "numbers for logs are used up") }
    do throws(EngineError) {
      history.logs[index] = try rewrite(old, upTo: behind.sequence, as: number)
    } catch {
      guard case .corrupt = error else {
        if error.isPassing { discard([number.logName]) }
        throw error
      }
      discard([number.logName])
      options.reportDamage?(error)
      history.logs.removeFirst(index + 1)
      history.start = behind
    }
    try manifest.commit(
      [.history(after: nil), .history(after: history.start)] + history.logs.map { .keepLog($0) })
    sequencer.setHistory(history)
    try? removeLogs()
    return true
  }

  /// Writes all commits of a log of history into another log. The last commit is `last`.
  private func rewrite(
    _ log: KeptLog, upTo last: SequenceNumber, as number: FileNumber
  ) throws(EngineError) -> KeptLog {
    let name = log.number.logName
    let bytes = try directory.open(name, access: .readOnly)
      .read(at: 0, count: Int(clamping: log.length))
    let page = bytes.bytes.extracting(first: min(LogHeader.length, bytes.count))
    guard case .header(var header) = try LogHeader.read(page, file: name),
      header.number == log.number, header.identity == identity,
      header.firstSequence == log.sequence.next
    else {
      throw .corrupt(file: name, offset: 0, reason: "it does not begin as the manifest says")
    }
    var frames = FrameReader(
      bytes, salt: header.salt, from: LogHeader.length, seal: directory.keyring?.seal(header))
    header.number = number
    header.salt = environment.random()
    // An existing file is left from an earlier attempt.
    if try directory.list().contains(number.logName) { try directory.remove(number.logName) }
    var writer = LogRewriter(
      file: try directory.create(number.logName), salt: header.salt,
      seal: directory.keyring?.seal(header), bytes: header.encode())
    var pieces = CommitPieces()
    var sequence = log.sequence
    reading: while let frame = frames.next() {
      switch frame.header.kind {
      case .part: pieces.add(frame, of: frames)
      case .commit, .lastPart:
        guard frame.header.sequence == sequence.next else { break reading }
        try writer.append(try pieces.join(with: frame, of: frames, in: name))
        sequence = sequence.next
      case .seal, .edit, .mark: break
      }
    }
    guard sequence == last else {
      throw .corrupt(
        file: name, offset: UInt64(frames.offset),
        reason: "commits from \(sequence.next.rawValue) on cannot be read")
    }
    let length = writer.offset
    try writer.finish()
    try directory.sync()
    return KeptLog(number: number, length: length, before: log.before)
  }

  // MARK: - The end

  /// Makes the superblock forget the older key if no file before the border is left. Returns the
  /// remaining files.
  func finishKeyChange() throws(EngineError) -> [String] {
    guard let keyring, let change = keyring.change else { return [] }
    try manifest.leave(before: change.border)
    try? removeLogs()
    let left = try directory.list().filter { name in
      guard let number = Self.numberOfAny(name), number < change.border else { return false }
      // Only these files have no owner. Readers may have others open.
      let isNobodys =
        name.hasSuffix(Self.unread)
        || FileNumber.parse(name, prefix: "MANIFEST-").map { $0 != manifest.superblock.manifest }
          ?? false
      return !isNobodys || (try? directory.remove(name)) == nil
    }
    guard left.isEmpty else { return left }
    // A power cut must not restore a name whose key no longer exists.
    try directory.sync()
    try finishEras(before: change.border)
    try manifest.write(keyring.finishingChange()) { keyed.use($0) }
    return []
  }

  private static let unread = ".unread"

  /// The number of a file of the database, or of a file that recovery has set aside.
  private static func numberOfAny(_ name: String) -> FileNumber? {
    FileNumber.ofFile(name.hasSuffix(unread) ? String(name.dropLast(unread.count)) : name)
  }

  /// Bytes of the files before the border.
  func bytes(before border: FileNumber) throws(EngineError) -> UInt64 {
    var bytes: UInt64 = 0
    for name in try directory.list() {
      guard let number = FileNumber.ofFile(name), number < border else { continue }
      // The file may have been removed meanwhile.
      bytes += (try? directory.open(name, access: .readOnly).size()) ?? 0
    }
    return bytes
  }
}
