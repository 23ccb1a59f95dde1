// Space kept back for a full disk: the file `RESERVE`, which holds nothing and takes room. When
// something that frees space finds none, it is removed, and deletes, flushes, merges and drops go
// on with its room; once there is as much again it is made anew. What else would be written waits
// for that. Whether the file is there is all the state there is, so a crash needs no recovery of
// it.

/// The file that can be given up. Used on the maintenance thread only.
struct SpaceReserve: Sendable {
  static let name = "RESERVE"

  let directory: any Directory
  let size: UInt64

  /// Makes the file, unless it is there. Where a file system cannot set space aside nothing is kept
  /// back.
  func make() throws(EngineError) {
    do throws(EngineError) {
      let isKnown = try file().reserve(0..<size)
      if !isKnown { try directory.remove(Self.name) }
    } catch {
      try? directory.remove(Self.name)
      throw error
    }
  }

  private func file() throws(EngineError) -> any File {
    do throws(EngineError) {
      return try directory.open(Self.name, access: .readWrite)
    } catch {
      guard case .io(_, _, _, let errno) = error, SystemFailure(errno: errno) == .missing else {
        throw error
      }
      return try directory.create(Self.name)
    }
  }

  /// Gives the space up; false when there was none to give.
  func giveUp() -> Bool {
    (try? directory.remove(Self.name)) != nil
  }
}
