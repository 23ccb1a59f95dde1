// Calls of the engine, with its errors converted into public ones.

internal import OndolEngine

/// Runs `body` with the engine's errors converted into public ones.
@inline(__always)
func rethrowing<R>(_ body: () throws(EngineError) -> R) throws(DatabaseError) -> R {
  do throws(EngineError) {
    return try body()
  } catch {
    throw DatabaseError(error)
  }
}

/// Runs `body` with the engine's errors converted into public ones.
func rethrowing<R>(
  _ body: () async throws(EngineError) -> R
) async throws(DatabaseError) -> R {
  do throws(EngineError) {
    return try await body()
  } catch {
    throw DatabaseError(error)
  }
}

extension Engine {
  /// Commits the batch; nil when what it was derived from has changed.
  func commitUnlessStale(
    _ batch: consuming Batch, durability: OndolEngine.Durability
  ) async throws(DatabaseError) -> CommitReceipt? {
    do throws(EngineError) {
      return try await commit(batch, durability: durability)
    } catch .stale {
      return nil
    } catch {
      throw DatabaseError(error)
    }
  }
}

extension Cursor {
  /// The value of the current row. A large one is read from disk only now.
  var readValue: RawSpan {
    @_lifetime(borrow self)
    get throws(DatabaseError) {
      do throws(EngineError) {
        return try value
      } catch {
        throw DatabaseError(error)
      }
    }
  }
}
