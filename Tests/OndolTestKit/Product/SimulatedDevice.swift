// A device that a test can do to what life does to real ones: take its power, kill the process,
// fill it up, have its operations fail. The files are in memory, in `SimulatedFileSystem`, whose
// rules of what a power cut leaves are in PowerCut.swift; here is what an app's tests see of it.

internal import Logging
public import Ondol
internal import OndolEngine

/// A device in memory that keeps databases through power cuts.
///
/// A database is opened on it by `Database.open(at:options:on:)` and used like any other. What was
/// written and not synced may be there after a power cut, or not, or in part; the seed decides
/// which, as freely as a real device may.
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
  /// What the operations of a device are to databases.
  public enum Operation: Sendable, Hashable, CaseIterable {
    /// Opening a file, or reading its bytes, its size or a directory's names.
    case read
    /// Writing bytes, making or removing a file, setting space aside.
    case write
    /// Making the bytes of a file or the names of a directory survive a power cut.
    case sync
  }

  fileprivate struct State: Sendable {
    var fileSystem: SimulatedFileSystem
    var random: SeededRandom
    /// Databases opened in this life of the device.
    var open: [OpenDatabase] = []
    /// Those of earlier lives, whose background work is still to be ended.
    var lost: [OpenDatabase] = []
  }

  fileprivate struct OpenDatabase: Sendable {
    weak let database: Database?
  }

  private static let inputOutputError: Int32 = 5

  /// Decides all that is left to chance.
  public let seed: UInt64
  /// The time on the device.
  public let clock: ManualClock
  private let state: Guarded<State>

  /// An empty device, as large as need be.
  ///
  /// - Parameters:
  ///   - seed: decides all that is left to chance; see `Seeds`.
  ///   - clock: the time on the device. Several devices may share a clock.
  public init(seed: UInt64 = 1, clock: ManualClock = ManualClock()) {
    self.seed = seed
    self.clock = clock
    state = Guarded(
      State(fileSystem: SimulatedFileSystem(), random: SeededRandom(seed: seed)))
  }

  // MARK: - Power

  /// Takes the power, now. Calls on databases that are open on the device throw from here on; what
  /// they had not synced is at risk. The power is back when the next database is opened.
  public func powerCut() {
    state.withLock { state in
      state.fileSystem.state.withLock { $0.hasPower = false }
    }
  }

  /// Takes the power after so many more operations, in the middle of whatever a database does then.
  /// With a loop from 0 on a test tries every moment of what it does:
  ///
  /// ```swift
  /// let before = device.operations
  /// try await save(order, in: database)
  /// let needed = device.operations - before  // now as many devices, each cut a step later
  /// ```
  ///
  /// - Parameter operations: how many writes and syncs still succeed. Reads are not counted.
  public func powerCut(after operations: Int) {
    state.withLock { state in
      state.fileSystem.cutPower(before: state.fileSystem.operations + max(0, operations))
    }
  }

  /// Kills the process that uses the device: all that was written is there, synced or not, and only
  /// what a database had in memory alone is gone. Calls on databases that were open throw; open
  /// them again. What was not synced is still at risk of a power cut.
  public func kill() {
    state.withLock { state in
      guard state.fileSystem.hasPower else { return }
      state.fileSystem.state.withLock { $0.hasPower = false }
      state.startAnew(with: state.fileSystem.storage.afterKill())
    }
  }

  /// Whether the device has power; false between a power cut and the next opening.
  public var hasPower: Bool { state.withLock { $0.fileSystem.hasPower } }

  /// Writes and syncs so far, each part of one counted.
  public var operations: Int { state.withLock { $0.fileSystem.operations } }

  // MARK: - Failures

  /// Has operations of one kind fail, with the system's error for a broken device (`EIO`).
  ///
  /// What becomes of the database is that of a real one: a read that failed is read anew next time;
  /// a failed sync, or a failed write to its log, ends writing with `.unavailable` until the
  /// database is opened again. Several calls add up.
  ///
  /// - Parameters:
  ///   - operation: the kind.
  ///   - successes: how many of these succeed before.
  ///   - forGood: whether all fail from then on, and not only one.
  public func fail(_ operation: Operation, after successes: Int = 0, forGood: Bool = false) {
    let fault = Fault(
      failing: operation.kinds, after: max(0, successes), errno: Self.inputOutputError,
      isSticky: forGood)
    state.withLock { state in
      state.fileSystem.state.withLock { $0.faults.append(fault) }
    }
  }

  /// Takes back all that `fail` ordered.
  public func repair() {
    state.withLock { $0.fileSystem.inject([]) }
  }

  /// Bytes that all files together may take; nil, at first, for no limit. What there is stays, also
  /// when it is more. A full device has writes throw `.resourceExhausted`; deletes go on.
  public var capacity: Int? {
    get { state.withLock { $0.fileSystem.capacity } }
    set { state.withLock { $0.fileSystem.setCapacity(newValue) } }
  }

  /// Bytes that files take, space set aside included.
  public var usedBytes: Int { state.withLock { $0.fileSystem.used } }

  // MARK: - Opening

  /// The world of a database that is opened now, and the options for it.
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
    // They can do nothing any more, but their tasks would go on trying.
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

  /// Keeps in mind that the database is on this device.
  fileprivate func note(_ database: Database) {
    state.withLock { state in
      state.open.removeAll { $0.database == nil }
      state.open.append(OpenDatabase(database: database))
    }
  }
}

extension SimulatedDevice.State {
  /// Goes on with what is left, as full and as broken as before.
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
  /// Opens the database in a directory of a simulated device, making one when there is none, as
  /// `open(at:options:)` does on a real one. After a power cut the device has power again, and what
  /// survived is recovered.
  ///
  /// Time is the device's clock, and automatic ids come from the device's seed unless
  /// `Options.automaticID` makes them; `Options.clock` is not asked. Copies made by
  /// `backup(to:progress:)` are on the device, too, and URLs of files lead nowhere. With
  /// `.readOnly` access the database follows its writer when the clock moves, or by `refresh()`.
  /// Without power nothing is logged.
  ///
  /// - Parameters:
  ///   - path: any name; the device has a directory for each.
  ///   - options: as on a real device.
  ///   - device: where the files are.
  /// - Throws: as `open(at:options:)`; `.internal` when an operation fails that the device was told
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
  /// What it is to the file system.
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

  /// Twenty letters and digits, as databases make ids.
  fileprivate mutating func documentID() -> String {
    String((0..<20).map { _ in Self.letters[below(Self.letters.count)] })
  }
}
