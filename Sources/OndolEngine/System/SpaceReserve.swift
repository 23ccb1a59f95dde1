// Space reserved for a full disk: the file `RESERVE`, which has no contents but takes up space.
// When work that frees space finds none left, the file is removed, and deletes, flushes, merges and
// drops continue with its space. Once the same amount is free again, the file is created again. All
// other writes wait for that. The existence of the file is the only state, so it needs no recovery
// after a crash.

/// The file that can be released. Only the maintenance thread uses it.
struct SpaceReserve: Sendable {
  static let name = "RESERVE"

  let directory: any Directory
  let size: UInt64

  /// Creates the file unless it exists. If a file system cannot reserve space, no space is
  /// reserved.
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

  /// Releases the space. Returns false if there was none.
  func giveUp() -> Bool {
    (try? directory.remove(Self.name)) != nil
  }
}
