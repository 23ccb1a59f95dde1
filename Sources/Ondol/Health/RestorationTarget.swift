// The target of the rows of a database under construction: segments, as in a salvage, or a store.

package import OndolEngine

/// Makes a store, which is not connected yet.
package typealias StoreMaker = @Sendable () throws(EngineError) -> any RemoteStore

/// Takes the rows of a restoration, and opens the resulting database.
final class RestorationTarget: @unchecked Sendable {
  // Safe: nothing changes here, and only the worker uses the files.

  private enum Kind {
    case files(SalvageTarget, any Worker)
    case store(StoreFill, StoreMaker)
  }

  private let path: String
  private let environment: Environment
  private let kind: Kind
  /// Whether collections can have keys of their own.
  let makesKeys: Bool

  private init(
    _ path: String, _ environment: Environment, _ kind: Kind, makesKeys: Bool = false
  ) {
    self.path = path
    self.environment = environment
    self.kind = kind
    self.makesKeys = makesKeys
  }

  /// Runs `body` on the worker, the only thread that uses the files.
  private func perform<Failure: Error>(
    _ worker: any Worker, _ body: @escaping @Sendable (SalvageTarget) throws(Failure) -> Void
  ) async throws(Failure) {
    try await worker.perform { [self] () throws(Failure) in
      if case .files(let files, _) = kind { try body(files) }
    }
  }

  /// Begins files in a directory that is new or empty.
  static func files(
    at path: String, _ environment: Environment, _ options: EngineOptions
  ) async throws(DatabaseError) -> RestorationTarget {
    let worker = environment.threads.makeWorker(named: "ondol-load", for: .checks)
    do throws(EngineError) {
      return try await worker.perform { () throws(EngineError) in
        let files = try SalvageTarget(
          at: path, environment: environment, options: options,
          shardCount: Database.Options().shardCount)
        return RestorationTarget(
          path, environment, .files(files, worker), makesKeys: files.makesKeys)
      }
    } catch {
      await worker.stop()
      throw DatabaseError(error)
    }
  }

  /// Begins on a store that has no commits.
  static func store(
    _ make: @escaping StoreMaker, _ environment: Environment
  ) async throws(DatabaseError) -> RestorationTarget {
    try await rethrowing { () async throws(EngineError) in
      let store = try make()
      let fill = try await StoreFill.begin(store, environment: environment)
      return RestorationTarget(store.name, environment, .store(fill, make))
    }
  }

  /// Adds rows, in the order of their keys, of commits up to `sequence`.
  func add(_ rows: [SalvagedRow], upTo sequence: SequenceNumber) async throws(DatabaseError) {
    try await rethrowing { () async throws(EngineError) in
      switch kind {
      case .files(_, let worker):
        try await perform(worker) { (files) throws(EngineError) in
          for row in rows { try files.add(row, upTo: sequence) }
        }
      case .store(let fill, _): try await fill.add(rows)
      }
    }
  }

  /// Adds the last rows; the database's last commit is `sequence`, made at `time`.
  ///
  /// - Parameter groups: those with keys of their own, including those without rows.
  func finish(
    _ rows: [SalvagedRow], groups: [UInt32], sequence: SequenceNumber, time: Int64
  ) async throws(DatabaseError) {
    try await rethrowing { () async throws(EngineError) in
      switch kind {
      case .files(_, let worker):
        try await perform(worker) { (files) throws(EngineError) in
          for group in groups { try files.makeKeyedGroup(group) }
          try files.finish(rows, sequence: sequence, time: time)
        }
      case .store(let fill, _): try await fill.finish(rows, sequence: sequence, time: time)
      }
    }
  }

  /// Opens the finished database.
  func open(_ options: Database.Options) async throws(DatabaseError) -> Database {
    var store: (any RemoteStore)?
    if case .store(_, let make) = kind {
      store = try rethrowing { () throws(EngineError) in try make() }
    }
    return try await Database.open(at: path, options: options, environment: environment, on: store)
  }

  /// Removes everything, and closes.
  func removeAll() async {
    switch kind {
    case .files(_, let worker):
      await perform(worker) { $0.removeAll() }
      await worker.stop()
    case .store(let fill, _): await fill.abandon()
    }
  }

  /// Releases it; the database stays.
  func close() async {
    switch kind {
    case .files(_, let worker): await worker.stop()
    case .store(let fill, _): await fill.close()
    }
  }
}
