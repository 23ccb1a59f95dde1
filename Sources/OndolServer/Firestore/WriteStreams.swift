// The streams that devices write by. A device sends one group of writes after the other and keeps
// each until it is answered. When the connection ends in between, it opens a stream with the last
// token it was given and sends again what has no answer. So a token says which group it follows,
// and a group that was committed, but whose answer was lost, is answered again and not committed
// twice.

#if Server
  import Foundation
  import Ondol
  import Synchronization

  /// The streams of writes, open ones and those that may come back.
  final class WriteStreams: Sendable {
    private struct Kept: Sendable {
      let stream: WriteStream
      var used: ContinuousClock.Instant
    }

    /// Streams that are kept, and for how long after their last opening.
    private static let most = 10_000
    private static let longest = Duration.seconds(3_600)

    private let streams = Mutex<[String: Kept]>([:])

    /// A new stream, or the one that the token is of.
    ///
    /// Throws `.invalidArgument` for a token that is no stream's.
    func open(token: [UInt8]) throws(DatabaseError) -> OpenWriteStream {
      let now = ContinuousClock.now
      guard !token.isEmpty else { return add(at: now) }
      guard let token = WriteStreamToken(token) else { throw WriteStreamToken.wrong }
      let known = streams.withLock { streams in
        streams[token.stream]?.used = now
        return streams[token.stream]?.stream
      }
      // After a restart of the server nothing is known of it, and what has no answer is committed
      // again: writes that set fields come to the same, increments do not.
      guard let known else { return add(at: now) }
      return OpenWriteStream(known, after: token.number)
    }

    private func add(at now: ContinuousClock.Instant) -> OpenWriteStream {
      let stream = WriteStream(id: UUID().uuidString)
      streams.withLock { streams in
        streams[stream.id] = Kept(stream: stream, used: now)
        guard streams.count > Self.most else { return }
        streams = streams.filter { now - $0.value.used < Self.longest }
        while streams.count > Self.most,
          let oldest = streams.min(by: { $0.value.used < $1.value.used })
        {
          streams[oldest.key] = nil
        }
      }
      return OpenWriteStream(stream, after: 0)
    }
  }

  /// Which group of writes of which stream was answered last.
  struct WriteStreamToken: Sendable {
    let stream: String
    let number: UInt64

    init(stream: String, number: UInt64) {
      self.stream = stream
      self.number = number
    }

    init?(_ bytes: [UInt8]) {
      let parts = String(decoding: bytes, as: UTF8.self).split(separator: ":")
      guard parts.count == 2, let number = UInt64(parts[1]) else { return nil }
      self.init(stream: String(parts[0]), number: number)
    }

    var bytes: [UInt8] { Array("\(stream):\(number)".utf8) }

    static let wrong = DatabaseError(
      .invalidArgument, "the stream token is none that this server has given")
  }

  /// What is known of a stream, whoever has it open.
  final class WriteStream: Sendable {
    private struct State: Sendable {
      var number: UInt64 = 0
      var last: ClientCommit?
    }

    let id: String
    private let state = Mutex(State())

    init(id: String) {
      self.id = id
    }

    /// What the group after `number` came to, when it was committed.
    func answer(after number: UInt64) -> ClientCommit? {
      state.withLock { $0.number == number + 1 ? $0.last : nil }
    }

    func note(_ number: UInt64, _ commit: ClientCommit) {
      state.withLock { $0 = State(number: number, last: commit) }
    }
  }

  /// A stream as one connection has it open.
  final class OpenWriteStream: Sendable {
    private let stream: WriteStream
    private let number: Mutex<UInt64>

    init(_ stream: WriteStream, after number: UInt64) {
      self.stream = stream
      self.number = Mutex(number)
    }

    var id: String { stream.id }

    var token: [UInt8] {
      WriteStreamToken(stream: stream.id, number: number.withLock { $0 }).bytes
    }

    /// Commits a group of writes, unless that has happened.
    func commit(
      _ writes: [ClientWrite], in database: Database
    ) async throws(DatabaseError) -> ClientCommit {
      let number = self.number.withLock { $0 }
      let commit: ClientCommit
      if let known = stream.answer(after: number) {
        commit = known
      } else {
        commit = try await database.commit(writes)
        stream.note(number + 1, commit)
      }
      self.number.withLock { $0 = number + 1 }
      return commit
    }
  }
#endif
