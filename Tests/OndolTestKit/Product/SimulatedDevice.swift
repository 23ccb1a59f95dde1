// A device that a test can treat as life treats real ones: it can cut the power, kill the process,
// fill the device, and make its operations fail. The files are in memory, in `SimulatedFileSystem`,
// and PowerCut.swift has the rules for what a power cut leaves. This file has the part that an
// app's tests use.

internal import Logging
public import Ondol
internal import OndolEngine

/// A device in memory that keeps databases through power cuts.
///
/// Open a database on it with `Database.open(at:options:on:)` and use it like any other. After a
/// power cut, unsynced writes may exist, or not, or in part. The seed decides which, as freely as a
/// real device may.
///
/// ```swift
/// let device = SimulatedDevice(seed: seed)
/// var database = try await Database.open(at: "app.ondol", on: device)
/// try await database.document("items/lamp").setData(["price": 30])
/// device.powerCut()
/// database = try await Database.open(at: "app.ondol", on: device)
/// // `.power` is the default durability: the lamp is there, whatever the seed.
/// ```
///
/// The seed decides what survives and which ids and random numbers a database uses. In what order
/// concurrent tasks run, Swift decides: a test that is to repeat exactly uses the database from one
/// task.
public final class SimulatedDevice: Sendable {
  /// The kinds of operations that databases make on a device.
  public enum Operation: Sendable, Hashable, CaseIterable {
    /// Opening a file, or reading its bytes, its size or a directory's names.
    case read
    /// Writing bytes, creating or removing a file, reserving space.
    case write
    /// Making the bytes of a file or the names of a directory survive a power cut.
    case sync
  }

  fileprivate struct State: Sendable {
    var fileSystem: SimulatedFileSystem
    var random: SeededRandom
    /// Databases opened in this life of the device.
    var open: [OpenDatabase] = []
    /// Those of earlier lives, whose background work must still be ended.
    var lost: [OpenDatabase] = []
  }

  fileprivate struct OpenDatabase: Sendable {
    weak let database: Database?
  }

  private static let inputOutputError: Int32 = 5

  /// Decides everything random.
  public let seed: UInt64
  /// The time on the device.
  public let clock: ManualClock
  private let state: Guarded<State>

  /// Makes an empty device without a size limit.
  ///
  /// - Parameters:
  ///   - seed: decides everything random; see `Seeds`.
  ///   - clock: the time on the device. Several devices may share a clock.
  public init(seed: UInt64 = 1, clock: ManualClock = ManualClock()) {
    self.seed = seed
    self.clock = clock
    state = Guarded(
      State(fileSystem: SimulatedFileSystem(), random: SeededRandom(seed: seed)))
  }

  // MARK: - Power

  /// Cuts the power now. Calls on databases that are open on the device throw from here on, and
  /// their unsynced writes are at risk. The power returns when the next database is opened.
  public func powerCut() {
    state.withLock { state in
      state.fileSystem.state.withLock { $0.hasPower = false }
    }
  }

  /// Cuts the power after a number of further operations, in the middle of whatever a database does
  /// then. With a loop from 0 on, a test tries every moment of its work:
  ///
  /// ```swift
  /// let before = device.operations
  /// try await save(order, in: database)
  /// let needed = device.operations - before  // now as many devices, each cut a step later
  /// ```
  ///
  /// - Parameter operations: the number of writes and syncs that still succeed. Reads do not count.
  public func powerCut(after operations: Int) {
    state.withLock { state in
      state.fileSystem.cutPower(before: state.fileSystem.operations + max(0, operations))
    }
  }

  /// Kills the process that uses the device. All writes exist, synced or not, and only data that a
  /// database had in memory alone is gone. Calls on open databases throw; open them again. Unsynced
  /// writes are still at risk of a power cut.
  public func kill() {
    state.withLock { state in
      guard state.fileSystem.hasPower else { return }
      state.fileSystem.state.withLock { $0.hasPower = false }
      state.startAnew(with: state.fileSystem.storage.afterKill())
    }
  }

  /// Whether the device has power; false between a power cut and the next open.
  public var hasPower: Bool { state.withLock { $0.fileSystem.hasPower } }

  /// The number of writes and syncs so far, with each part of one counted.
  public var operations: Int { state.withLock { $0.fileSystem.operations } }

  // MARK: - Failures

  /// Makes operations of one kind fail, with the system's error for a broken device (`EIO`).
  ///
  /// The database behaves as on a real device: it repeats a failed read next time, and a failed
  /// sync, or a failed write to its log, ends writing with `.unavailable` until the database is
  /// reopened. Several calls add up.
  ///
  /// - Parameters:
  ///   - operation: the kind of operation.
  ///   - successes: the number of these that succeed first.
  ///   - forGood: whether all fail from then on, instead of only one.
  public func fail(_ operation: Operation, after successes: Int = 0, forGood: Bool = false) {
    let fault = Fault(
      failing: operation.kinds, after: max(0, successes), errno: Self.inputOutputError,
      isSticky: forGood)
    state.withLock { state in
      state.fileSystem.state.withLock { $0.faults.append(fault) }
    }
  }

  /// Cancels everything that `fail` ordered.
  public func repair() {
    state.withLock { $0.fileSystem.inject([]) }
  }

  /// The largest total size of all files in bytes; nil, the initial value, for no limit. Existing
  /// bytes stay, even if they exceed it. On a full device writes throw `.resourceExhausted`, and
  /// deletes still work.
  public var capacity: Int? {
    get { state.withLock { $0.fileSystem.capacity } }
    set { state.withLock { $0.fileSystem.setCapacity(newValue) } }
  }

  /// The size of all files in bytes, including reserved space.
  public var usedBytes: Int { state.withLock { $0.fileSystem.used } }

  // MARK: - Opening

  /// Returns the world of a database that is opened now, and the options for it.
  fileprivate func start(
    _ options: Database.Options
  ) async -> (Environment, Database.Options) {
    let (fileSystem, seed, lost) = state.withLock { state in
      if !state.fileSystem.hasPower {
        let seed = state.random.next()
        state.startAnew(with: state.fileSystem.storage.afterPowerCut(seed: seed))
      }
      defer { state.lost = [] }
      return (state.fileSystem, state.random.next(), state.lost)
    }
    // They can do nothing any more, but their tasks would continue to try.
    for former in lost { try? await former.database?.close() }
    let random = Guarded(SeededRandom(seed: seed))
    let environment = Environment(
      fileSystem: fileSystem, now: { [clock] in clock.microsecondsSince1970 },
      sleep: { [clock] in await clock.time.doze(microseconds: $0) },
      rest: { _ in await Task.yield() },
      random: { random.withLock { $0.next() } }, threads: InlineWorkers(),
      executor: clock.background)
    var options = options
    options.clock = nil
    options.automaticID = options.automaticID ?? { random.withLock { $0.documentID() } }
    options.logger.handler = PoweredLog(options.logger.handler, fileSystem)
    return (environment, options)
  }

  /// Records that the database is on this device.
  fileprivate func note(_ database: Database) {
    state.withLock { state in
      state.open.removeAll { $0.database == nil }
      state.open.append(OpenDatabase(database: database))
    }
  }
}

extension SimulatedDevice.State {
  /// Continues with the remaining files, as full and as broken as before.
  fileprivate mutating func startAnew(with storage: SimulatedStorage) {
    let next = SimulatedFileSystem(storage: storage)
    let (operations, faults, capacity) = fileSystem.state.withLock {
      ($0.operations, $0.faults, $0.capacity)
    }
    next.state.withLock { state in
      (state.operations, state.faults, state.capacity) = (operations, faults, capacity)
    }
    fileSystem = next
    lost += open
    open = []
  }
}

extension SimulatedDevice: CustomStringConvertible {
  /// The seed, for the message of a failed check.
  public var description: String { "the device with seed \(seed)" }
}

extension Database {
  /// Opens the database in a directory of a simulated device, and creates it if it does not exist,
  /// as `open(at:options:)` does on a real one. After a power cut the device has power again, and
  /// the database recovers what survived.
  ///
  /// Time comes from the device's clock, and automatic ids come from the device's seed unless
  /// `Options.automaticID` makes them. `Options.clock` is ignored. Copies from
  /// `backup(to:progress:)` are on the device as well, and URLs of files lead nowhere. With
  /// `.readOnly` access the database follows its writer when the clock moves, or on `refresh()`.
  /// Without power the database logs nothing.
  ///
  /// - Parameters:
  ///   - path: any name. The device has a directory for each.
  ///   - options: as on a real device.
  ///   - device: the device for the files.
  /// - Throws: as `open(at:options:)`; `.internal` if an operation fails that the device was told
  ///   to fail.
  public static func open(
    at path: String, options: Options = Options(), on device: SimulatedDevice
  ) async throws(DatabaseError) -> Database {
    let (environment, options) = await device.start(options)
    let database = try await open(at: path, options: options, environment: environment)
    device.note(database)
    return database
  }
}

extension SimulatedDevice.Operation {
  /// The file system's kinds for it.
  fileprivate var kinds: Set<OperationKind> {
    switch self {
    case .read: [.open, .read]
    case .write: [.create, .write, .remove, .reserve]
    case .sync: [.sync, .syncDirectory]
    }
  }
}

extension SeededRandom {
  private static let letters = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

  /// Twenty letters and digits, in the form of a database's ids.
  fileprivate mutating func documentID() -> String {
    String((0..<20).map { _ in Self.letters[below(Self.letters.count)] })
  }
}
