// Takes requests off a connection: a head, its body in pieces, the next head. Any program that
// finds the port can send these bytes, so everything has a limit of size and of time.

import OndolEngine

/// The deadline of an operation.
final class Patience: Sendable {
  private struct State: Sendable {
    var end: ContinuousClock.Instant?
    var idleSince: ContinuousClock.Instant?
  }

  private let state = Guarded(State())

  /// Sets the deadline this long from now; no deadline for nil.
  func give(_ duration: Duration?) {
    let end = duration.map { ContinuousClock.now + $0 }
    state.withLock { $0 = State(end: end) }
  }

  /// Waits this long for a next request that may never come.
  func idle(_ duration: Duration) {
    let now = ContinuousClock.now
    state.withLock { $0 = State(end: now + duration, idleSince: now) }
  }

  /// A request has begun to arrive, and must be complete soon.
  func hurry(_ duration: Duration) {
    let end = ContinuousClock.now + duration
    state.withLock { $0.end = end }
  }

  /// The time since which neither a request nor a part of its body has arrived; nil while a request
  /// is under way.
  var idleSince: ContinuousClock.Instant? { state.withLock { $0.idleSince } }

  func isOver(_ now: ContinuousClock.Instant) -> Bool {
    state.withLock { $0.end.map { $0 < now } ?? false }
  }
}

/// The requests of a connection. One caller reads at a time.
actor Incoming {
  private static let longestLine = 4 << 10
  private static let mostTrailers = 100

  private enum Rest: Equatable {
    case none
    case bytes(Int)
    /// The size of the next chunk.
    case size
    case chunk(Int)
    case broken
  }

  private let patience: Patience
  private let read: @Sendable () async -> [UInt8]
  private let proceed: @Sendable () async throws -> Void
  private var buffer: [UInt8] = []
  private var start = 0
  private var rest = Rest.none
  private var isWaiting = false

  /// - Parameters:
  ///   - patience: receives the deadlines.
  ///   - proceed: tells the client to send its body.
  ///   - read: returns the next bytes; none at the end.
  init(
    _ patience: Patience, proceed: @escaping @Sendable () async throws -> Void,
    read: @escaping @Sendable () async -> [UInt8]
  ) {
    self.patience = patience
    self.proceed = proceed
    self.read = read
  }

  /// Returns the next head; nil when the client has no more requests.
  func head() async throws -> RequestHead? {
    patience.idle(.seconds(60))
    var seen = start
    while true {
      while seen < buffer.count {
        defer { seen += 1 }
        guard buffer[seen] == UInt8(ascii: "\n") else { continue }
        var before = seen
        if before > start, buffer[before - 1] == UInt8(ascii: "\r") { before -= 1 }
        guard before == start || buffer[before - 1] == UInt8(ascii: "\n") else { continue }
        let head = try RequestHead(buffer[start..<before])
        start = seen + 1
        begin(head)
        return head
      }
      guard buffer.count - start <= RequestHead.longest else {
        throw ConsoleFailure(431, "resourceExhausted", "the head is longer than 128 KiB")
      }
      let isFirst = start == buffer.count
      let done = seen - start
      guard await fill() else { return nil }
      seen = start + done
      if isFirst { patience.hurry(.seconds(15)) }
    }
  }

  private func begin(_ head: RequestHead) {
    patience.give(nil)
    switch head.body {
    case .bytes(0): rest = .none
    case .bytes(let count): rest = .bytes(count)
    case .chunks: rest = .size
    }
    isWaiting = head.isWaiting
  }

  /// Returns the next piece of the body; nil at its end.
  func piece() async throws -> [UInt8]? {
    do {
      patience.give(.seconds(30))
      defer { patience.give(nil) }
      return try await take()
    } catch {
      rest = .broken
      throw error
    }
  }

  private func take() async throws -> [UInt8]? {
    while true {
      switch rest {
      case .none: return nil
      case .broken: throw ConsoleFailure.wrong("the body broke off")
      case .bytes(let count):
        let piece = try await some(atMost: count)
        rest = piece.count == count ? .none : .bytes(count - piece.count)
        return piece
      case .chunk(let count):
        let piece = try await some(atMost: count)
        rest = .chunk(count - piece.count)
        if piece.count == count {
          guard try await line().isEmpty else { throw ConsoleFailure.wrong("a chunk has no end") }
          rest = .size
        }
        return piece
      case .size:
        let digits = try await line().prefix { $0 != UInt8(ascii: ";") }
        guard let size = RequestHead.digits(digits, radix: 16) else {
          throw ConsoleFailure.wrong("the size of a chunk is not a number")
        }
        rest = .chunk(size)
        guard size == 0 else { continue }
        for _ in 0...Self.mostTrailers {
          guard try await line().isEmpty else { continue }
          rest = .none
          return nil
        }
        throw ConsoleFailure.wrong("there is too much after the last chunk")
      }
    }
  }

  /// Discards the rest of the body. Returns false when that is not worthwhile, and no request can
  /// follow.
  func skip(atMost limit: Int) async -> Bool {
    // The server did not ask for the body, so it does not come.
    if isWaiting, rest != .none { return false }
    var skipped = 0
    do {
      while skipped <= limit {
        guard let piece = try await piece() else { return true }
        skipped += piece.count
      }
    } catch {}
    return false
  }

  /// Discards everything that arrives for a moment, so that the client receives the last response.
  func linger() async {
    patience.give(.seconds(2))
    for _ in 0..<1_000 {
      start = buffer.count
      guard await fill() else { return }
    }
  }

  // MARK: - Bytes

  private func fill() async -> Bool {
    if start > 0 {
      buffer.removeSubrange(..<start)
      start = 0
    }
    let piece = await read()
    buffer += piece
    return !piece.isEmpty
  }

  private func fillBody() async throws {
    if isWaiting {
      isWaiting = false
      try await proceed()
    }
    guard await fill() else { throw ConsoleFailure.wrong("the body broke off") }
  }

  private func some(atMost count: Int) async throws -> [UInt8] {
    if start == buffer.count { try await fillBody() }
    let end = start + min(count, buffer.count - start)
    defer { start = end }
    return Array(buffer[start..<end])
  }

  private func line() async throws -> [UInt8] {
    var line: [UInt8] = []
    while line.count <= Self.longestLine {
      if start == buffer.count { try await fillBody() }
      let byte = buffer[start]
      start += 1
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        continue
      }
      guard line.popLast() == UInt8(ascii: "\r") else { break }
      return line
    }
    throw ConsoleFailure.wrong("a line of the body does not end in CR LF")
  }
}
