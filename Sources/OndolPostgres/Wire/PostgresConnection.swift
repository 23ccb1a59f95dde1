// One connection to a server through libpq. All calls into the library are in this folder. Calls
// block, so they must be made on a thread that may block, and by one thread at a time. Internally
// the library works without blocking, so that the connection can be abandoned in time when a server
// stays silent.

internal import CLibPQ

/// A statement. A connection prepares it at its first use.
struct Statement: Sendable {
  /// Its name among the statements of a connection.
  let name: String
  let text: String
}

/// A notification from the server.
struct Notification: Sendable {
  /// The server process that it came from.
  var process: Int32
  var payload: String
}

/// A connection.
@safe
final class PostgresConnection: @unchecked Sendable {
  // Safe: its user calls it from one thread at a time (see `Link`) and closes it once, at the end.
  private let handle: OpaquePointer
  private let secrets: [String]
  /// The time limit for an answer. The user of the connection sets it.
  var answerTime: Duration

  /// What to call once if a call has no answer at a moment. The answer is still awaited.
  struct Lateness {
    var moment: ContinuousClock.Instant
    var note: () -> Void
  }

  /// Set by the user of the connection for a call.
  var lateness: Lateness?
  /// The databases that were found on it.
  private var found: Set<OpenedDatabase> = []
  private var prepared: Set<String> = []
  private(set) var isLost = false
  /// Whether an answer, or the end of one, has not been read yet.
  private var owesAnswer = false

  // MARK: - Life

  /// Connects. Blocks.
  init(to address: PostgresAddress, answerTime: Duration) throws(PostgresFailure) {
    secrets = address.secrets
    self.answerTime = answerTime
    let names = address.settings.map(\.name)
    let values = address.settings.map(\.value)
    let connected = unsafe Self.withStrings(names) { names in
      unsafe Self.withStrings(values) { values in
        // The last parameter may be a whole address, whose settings override those before it.
        unsafe PQconnectdbParams(names, values, 1)
      }
    }
    guard let connected = unsafe connected else { throw .lost("there is no memory to connect") }
    unsafe handle = connected
    guard unsafe PQstatus(handle) == CONNECTION_OK else {
      // This object is released, and with it the connection.
      throw .lost(message())
    }
    unsafe PQsetNoticeReceiver(handle, { _, _ in }, nil)
    guard unsafe PQsetnonblocking(handle, 1) == 0 else { throw .lost(message()) }
  }

  deinit {
    unsafe PQfinish(handle)
  }

  /// Lends null-terminated C strings.
  private static func withStrings<R>(
    _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> R
  ) -> R {
    var places: [Int] = []
    var bytes: [CChar] = []
    for string in strings {
      places.append(bytes.count)
      bytes += string.utf8.map { CChar(bitPattern: $0) } + [0]
    }
    // Safe: both buffers live as long as the closure runs.
    return unsafe bytes.withUnsafeBufferPointer { bytes in
      let pointers = unsafe places.map { place in unsafe bytes.baseAddress.map { unsafe $0 + place }
      }
      return unsafe (pointers + [nil]).withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
  }

  func hasFound(_ database: OpenedDatabase) -> Bool { found.contains(database) }

  func note(_ database: OpenedDatabase) { found.insert(database) }

  /// The server's version: 150020 is 15.20.
  var serverVersion: Int { unsafe Int(PQserverVersion(handle)) }

  /// The number of the server process at the other end.
  var process: Int32 { unsafe PQbackendPID(handle) }

  var descriptor: Int32 { unsafe PQsocket(handle) }

  /// Whether the server has closed the connection meanwhile. Sends nothing.
  func hasHungUp() -> Bool {
    // The server's last message comes before the end of the connection. Other messages may come as
    // well.
    for _ in 0..<16 {
      if isLost || descriptor < 0 { return true }
      guard Waiting.wait(for: descriptor, toWrite: false, until: .now) else { return false }
      if unsafe PQconsumeInput(handle) == 0 || PQstatus(handle) != CONNECTION_OK { isLost = true }
    }
    return true
  }

  /// The last error of the library or the server, on one line and without passwords.
  private func message() -> String {
    guard let text = unsafe PQerrorMessage(handle) else { return "no answer" }
    return unsafe clean(String(cString: text))
  }

  private func clean(_ text: String) -> String {
    var line = text.split(whereSeparator: \.isNewline)
      .map { $0.drop(while: \.isWhitespace) }.joined(separator: "; ")
    for secret in secrets { line = line.replacing(secret, with: "…") }
    return line.isEmpty ? "no answer" : line
  }

  private func lose(_ reason: String? = nil) -> PostgresFailure {
    isLost = true
    return .lost(reason ?? message())
  }

  // MARK: - Statements

  /// How long a thread may poll for an answer that is expected at once before it sleeps.
  private static let longestWatch = Duration.microseconds(100)

  /// Runs a statement.
  func run(
    _ statement: Statement, _ parameters: ParameterList = ParameterList()
  ) throws(PostgresFailure) -> PostgresAnswer {
    let deadline = ContinuousClock.now + answerTime
    try settle(deadline)
    try prepare(statement, deadline)
    try send(statement, parameters)
    return try takeOnlyAnswer(deadline)
  }

  /// Whether a statement was run here before.
  func hasPrepared(_ statement: Statement) -> Bool { prepared.contains(statement.name) }

  /// Runs a statement that was run here before, and waits until `deadline`, at first without
  /// letting the thread sleep. Returns nil if nothing can be sent yet or the answer is late. The
  /// next use of the connection then skips the answer.
  func run(
    _ statement: Statement, _ parameters: ParameterList,
    until deadline: ContinuousClock.Instant
  ) throws(PostgresFailure) -> PostgresAnswer? {
    guard hasPrepared(statement), try settleAtOnce() else { return nil }
    try send(statement, parameters)
    owesAnswer = true
    if unsafe PQflush(handle) == 0 {
      Waiting.watch(descriptor, until: min(deadline, .now + Self.longestWatch))
      guard unsafe PQconsumeInput(handle) == 1 else { throw lose() }
    }
    guard try waitForResult(deadline), let result = unsafe try nextResult() else { return nil }
    // The end of the answer has usually arrived together with it, and is not awaited.
    return try unsafe read(result).get()
  }

  /// Runs statements without parameters as one transaction, and ignores their answers.
  func run(script: String) throws(PostgresFailure) {
    try settle(.now + answerTime)
    guard unsafe PQsendQuery(handle, script) == 1 else { throw lose() }
    _ = try takeOnlyAnswer(.now + answerTime)
  }

  /// Runs two statements, each as its own transaction, in one round trip, and returns both answers.
  func run(
    _ first: Statement, _ parameters: ParameterList, then second: Statement,
    _ others: ParameterList = ParameterList()
  ) throws(PostgresFailure) -> (PostgresAnswer, PostgresAnswer) {
    let deadline = ContinuousClock.now + answerTime
    try settle(deadline)
    try prepare(first, deadline)
    try prepare(second, deadline)
    guard unsafe PQenterPipelineMode(handle) == 1 else { throw lose() }
    try send(first, parameters)
    guard unsafe PQpipelineSync(handle) == 1 else { throw lose() }
    try send(second, others)
    guard unsafe PQpipelineSync(handle) == 1 else { throw lose() }
    let answers = (try takePipelined(deadline), try takePipelined(deadline))
    guard unsafe PQexitPipelineMode(handle) == 1 else { throw lose() }
    return (try answers.0.get(), try answers.1.get())
  }

  private func prepare(
    _ statement: Statement, _ deadline: ContinuousClock.Instant
  ) throws(PostgresFailure) {
    if prepared.contains(statement.name) { return }
    guard unsafe PQsendPrepare(handle, statement.name, statement.text, 0, nil) == 1 else {
      throw lose()
    }
    _ = try takeOnlyAnswer(deadline)
    prepared.insert(statement.name)
  }

  private func send(
    _ statement: Statement, _ parameters: ParameterList
  ) throws(PostgresFailure) {
    var lengths: [Int32] = []
    for place in parameters.places {
      guard let length = Int32(exactly: place?.count ?? 0) else {
        throw .malformed("a parameter of \(place?.count ?? 0) bytes")
      }
      lengths.append(length)
    }
    let formats = [Int32](repeating: 1, count: lengths.count)
    // One additional byte, so that an empty value has an address and is not null.
    let buffer = parameters.buffer + [0]
    // Safe: the library copies what the pointers refer to before it returns.
    let isSent = unsafe buffer.withUnsafeBytes { bytes in
      let values = unsafe parameters.places.map { place -> UnsafePointer<CChar>? in
        guard let place, let base = bytes.baseAddress else { return nil }
        return unsafe (base + place.lowerBound).assumingMemoryBound(to: CChar.self)
      }
      return unsafe PQsendQueryPrepared(
        handle, statement.name, Int32(lengths.count), values, lengths, formats, 1)
    }
    guard isSent == 1 else { throw lose() }
  }

  // MARK: - Answers

  /// Reads the rest of an answer that is no longer awaited.
  private func settle(_ deadline: ContinuousClock.Instant) throws(PostgresFailure) {
    guard owesAnswer else { return }
    while let rest = unsafe try takeResult(deadline) { unsafe try passOver(rest) }
    owesAnswer = false
  }

  /// The same as far as it has arrived. Returns whether that was all of it.
  private func settleAtOnce() throws(PostgresFailure) -> Bool {
    var hasLooked = false
    while owesAnswer {
      if unsafe PQisBusy(handle) == 0 {
        if let rest = unsafe try nextResult() {
          unsafe try passOver(rest)
        } else {
          owesAnswer = false
        }
      } else {
        if hasLooked { return false }
        hasLooked = true
        guard unsafe PQconsumeInput(handle) == 1 else { throw lose() }
      }
    }
    return true
  }

  private func passOver(_ result: OpaquePointer) throws(PostgresFailure) {
    _ = unsafe read(result)
    if isLost { throw lose() }
  }

  /// The answer to the single running statement, or to the last one of a script.
  private func takeOnlyAnswer(
    _ deadline: ContinuousClock.Instant
  ) throws(PostgresFailure) -> PostgresAnswer {
    var last: Result<PostgresAnswer, PostgresFailure>?
    while let result = unsafe try takeResult(deadline) {
      let answer = unsafe read(result)
      if isLost { break }
      // The failure of a script remains, whatever follows it.
      if case .failure = last { continue }
      last = answer
    }
    guard let last, !isLost else { throw lose() }
    return try last.get()
  }

  /// The answer to a statement in a pipeline, up to the end of its transaction.
  private func takePipelined(
    _ deadline: ContinuousClock.Instant
  ) throws(PostgresFailure) -> Result<PostgresAnswer, PostgresFailure> {
    guard let result = unsafe try takeResult(deadline) else { throw lose() }
    let answer = unsafe read(result)
    // A null result ends the answer, and the next result ends the transaction.
    guard unsafe try takeResult(deadline) == nil, let end = unsafe try takeResult(deadline) else {
      throw lose()
    }
    defer { unsafe PQclear(end) }
    guard unsafe PQresultStatus(end) == PGRES_PIPELINE_SYNC else { throw lose() }
    return answer
  }

  private func takeResult(
    _ deadline: ContinuousClock.Instant
  ) throws(PostgresFailure) -> OpaquePointer? {
    guard try waitForResult(deadline) else {
      throw lose("the server has not answered in \(answerTime)")
    }
    return unsafe try nextResult()
  }

  private func nextResult() throws(PostgresFailure) -> OpaquePointer? {
    let result = unsafe PQgetResult(handle)
    if unsafe PQstatus(handle) != CONNECTION_OK {
      defer { unsafe PQclear(result) }
      throw lose()
    }
    return unsafe result
  }

  /// Waits until a result, or the end of the results, can be read. Returns false if the time
  /// expires first.
  private func waitForResult(
    _ deadline: ContinuousClock.Instant
  ) throws(PostgresFailure) -> Bool {
    var isSent = false
    while !isSent {
      switch unsafe PQflush(handle) {
      case 0: isSent = true
      case 1:
        guard Waiting.wait(for: descriptor, toWrite: true, until: deadline) else {
          return false
        }
        // The server may have to send an answer first.
        guard unsafe PQconsumeInput(handle) == 1 else { throw lose() }
      default: throw lose()
      }
    }
    while unsafe PQisBusy(handle) != 0 {
      let end = min(deadline, lateness?.moment ?? deadline)
      let isReadable = Waiting.wait(for: descriptor, toWrite: false, until: end)
      // A slow line may be readable again and again without a whole answer.
      if let late = lateness, late.moment <= .now {
        late.note()
        lateness = nil
      }
      guard isReadable || end < deadline else { return false }
      guard isReadable else { continue }
      guard unsafe PQconsumeInput(handle) == 1 else { throw lose() }
    }
    return true
  }

  /// Takes ownership of a result.
  private func read(_ result: OpaquePointer) -> Result<PostgresAnswer, PostgresFailure> {
    switch unsafe PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
      return unsafe .success(PostgresAnswer(owning: result))
    case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE:
      defer { unsafe PQclear(result) }
      return unsafe .failure(
        .refused(
          state: field("C", of: result), message: clean(field("M", of: result)),
          constraint: field("n", of: result)))
    default:
      unsafe PQclear(result)
      // For example, unrequested rows to be copied, which might never end.
      return .failure(lose("the server answers what was not asked"))
    }
  }

  /// A field of the server's error message, by the letter that the protocol uses for it.
  private func field(_ letter: Unicode.Scalar, of result: OpaquePointer) -> String {
    guard let text = unsafe PQresultErrorField(result, Int32(letter.value)) else { return "" }
    return unsafe String(cString: text)
  }

  // MARK: - Notifications

  /// The notifications that have arrived since the last call.
  func takeNotifications() throws(PostgresFailure) -> [Notification] {
    guard unsafe PQconsumeInput(handle) == 1 else { throw lose() }
    var notifications: [Notification] = []
    while let notification = unsafe PQnotifies(handle) {
      // Safe: it belongs to us until it is freed.
      let payload = unsafe notification.pointee.extra.map { unsafe String(cString: $0) } ?? ""
      notifications.append(
        Notification(process: unsafe notification.pointee.be_pid, payload: payload))
      unsafe PQfreemem(notification)
    }
    return notifications
  }
}
