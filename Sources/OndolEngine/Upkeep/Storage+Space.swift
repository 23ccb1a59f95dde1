// What a full disk means for upkeep and for commits. The operation that ran out of space has undone
// what it began. The reserve is released and the operation is tried once more. From then on only
// work that frees space is accepted, until the reserve can be created again. Nothing is poisoned,
// because no acknowledgement depends on it.

extension Storage {
  /// Performs file work on the maintenance thread. If space was lacking, it tries a second time
  /// with the space of the reserve.
  func withReserve<R>(_ work: () throws(EngineError) -> R) throws(EngineError) -> R {
    do throws(EngineError) {
      return try work()
    } catch {
      guard error.isLackOfSpace, giveUpReserve(error) else { throw error }
      return try work()
    }
  }

  /// Records a lack of space. Returns false if there was no reserve to release.
  func giveUpReserve(_ error: EngineError) -> Bool {
    sequencer.noteLackOfSpace(error)
    return reserve.giveUp()
  }

  /// As above, callable from any thread.
  func handOverReserve(_ error: EngineError) async -> Bool {
    await maintenance.perform { self.giveUpReserve(error) }
  }

  /// Creates the reserve and accepts all commits again. If there still is too little space, it
  /// throws that error.
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

  /// Gives a log the space that a commit requires.
  func reserve(_ space: MissingSpace) async throws(EngineError) {
    do throws(EngineError) {
      try sequencer.reserve(space)
    } catch {
      guard error.isLackOfSpace, await handOverReserve(error) else { throw error }
    }
  }

  /// Removes files that are not needed after all.
  func discard(_ names: [String]) {
    for name in names { try? directory.remove(name) }
  }
}
