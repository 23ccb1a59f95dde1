// Space comes before place: a commit is placed only once the disk has set room aside for its
// frames. So a full disk refuses a commit of which nothing has happened yet, and a frame that has
// its place is never cut short. Room is asked for ahead, a piece at a time, on the thread of the
// committer who needs the first byte of it; a log that was written ahead has it from the beginning.

/// Room that a log must get before a commit is placed in it.
struct LogSpace: Sendable {
  var log: FileNumber
  var file: any File
  /// From where the room ends that the log has to where the commit would.
  var missing: Range<UInt64>
}

extension Sequencer {
  /// Bytes asked for at once.
  static func piece(of logSize: Int) -> UInt64 { UInt64(max(logSize / 16, 256)) }

  /// What the log lacks that the next commit goes into, when its frames take so many bytes.
  func missingSpace(_ state: borrowing State, length: Int) -> LogSpace? {
    if switchesLog(state, length: length), let spare = state.spare {
      return missingSpace(spare.number, spare.file, at: 0, length, reserved: spare.reserved)
    }
    guard let log = state.log else { return nil }
    return missingSpace(
      log.number, log.file, at: state.offset, length, reserved: state.reserved)
  }

  private func missingSpace(
    _ log: FileNumber, _ file: any File, at offset: UInt64, _ length: Int, reserved: UInt64
  ) -> LogSpace? {
    let end = max(offset, UInt64(LogHeader.length)) + UInt64(length)
    return end > reserved ? LogSpace(log: log, file: file, missing: reserved..<end) : nil
  }

  /// Has the disk set the room aside, and more than that where there is more.
  func reserve(_ space: LogSpace) throws(EngineError) {
    let wanted =
      space.missing.lowerBound..<(space.missing.upperBound + Self.piece(of: options.logSize))
    var through = wanted.upperBound
    var isKnown: Bool
    do throws(EngineError) {
      isKnown = try space.file.reserve(wanted)
    } catch {
      guard error.isLackOfSpace else { throw error }
      isKnown = try space.file.reserve(space.missing)
      through = space.missing.upperBound
    }
    // Where the file system cannot, commits go on without.
    if !isKnown { through = .max }
    state.withLock { state in
      if state.log?.number == space.log {
        state.reserved = max(state.reserved, through)
      } else if let spare = state.spare, spare.number == space.log {
        state.spare = spare.reserving(max(spare.reserved, through))
      }
    }
  }

  // MARK: - A full disk

  /// Notes that the disk had no space for something.
  func noteLackOfSpace(_ error: EngineError) {
    state.withLock { $0.lackOfSpace = $0.lackOfSpace ?? error }
  }

  /// Notes that there is space again.
  func forgetLackOfSpace() {
    state.withLock { $0.lackOfSpace = nil }
  }

  var lackOfSpace: EngineError? { state.withLock { $0.lackOfSpace } }
}

extension SpareLog {
  /// The same with room for the bytes before `end`.
  func reserving(_ end: UInt64) -> SpareLog {
    SpareLog(number: number, file: file, salt: salt, prewritten: prewritten, reserved: end)
  }
}
