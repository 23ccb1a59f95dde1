// What a full disk means for upkeep and for commits: whatever met it has undone what it began, the
// reserve is given up, the same is tried once more, and from then on only what frees space is
// taken, until the reserve can be made again. Nothing is poisoned, since no acknowledgement hangs
// on it.

extension Storage {
  /// Does file work, on the maintenance thread; a second time with the reserve's space where there
  /// was none.
  func withReserve<R>(_ work: () throws(EngineError) -> R) throws(EngineError) -> R {
    do throws(EngineError) {
      return try work()
    } catch {
      guard error.isLackOfSpace, giveUpReserve(error) else { throw error }
      return try work()
    }
  }

  /// Takes note of a lack of space; false when there was no reserve to give up.
  func giveUpReserve(_ error: EngineError) -> Bool {
    sequencer.noteLackOfSpace(error)
    return reserve.giveUp()
  }

  /// As above, from any thread.
  func handOverReserve(_ error: EngineError) async -> Bool {
    await maintenance.perform { self.giveUpReserve(error) }
  }

  /// Makes the reserve, and takes all commits again; throws what there was no space for when there
  /// still is none.
  func regainReserve() async throws(EngineError) {
    try await maintenance.perform { [self] () throws(EngineError) in try makeReserve() }
  }

  /// As above, on the maintenance thread.
  func makeReserve() throws(EngineError) {
    do throws(EngineError) {
      try reserve.make()
      sequencer.forgetLackOfSpace()
    } catch {
      if error.isLackOfSpace { sequencer.noteLackOfSpace(error) }
      throw error
    }
  }

  /// Gets a log the room that a commit asks for.
  func reserve(_ space: MissingSpace) async throws(EngineError) {
    do throws(EngineError) {
      try sequencer.reserve(space)
    } catch {
      guard error.isLackOfSpace, await handOverReserve(error) else { throw error }
    }
  }

  /// Removes files that were made for nothing.
  func discard(_ names: [String]) {
    for name in names { try? directory.remove(name) }
  }
}
