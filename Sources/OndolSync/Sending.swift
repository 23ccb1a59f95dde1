// The task that sends. It takes the entries of the outbox in the order of their commits, several
// under way at once, and writes down the answers. Each has a number and a name, by which the server
// knows one that it has already: so an entry whose answer was lost is sent again and counts once.

#if Sync
  import Foundation
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// Entries between the outbox and their answers, for one stream.
  private struct Window {
    /// Entries that may be under way at once. Together with answers that are not written down they
    /// are fewer than the names that the server keeps.
    static let width = 32
    /// Answers that are written down together.
    static let answerCount = 16

    var isOpen = false
    /// The entries to send, in order.
    var queue: ArraySlice<OutboxEntry.Place> = []
    var underWay: [OutboxEntry] = []
    var answers: [(entry: OutboxEntry, answer: OutboxEntry.Answer)] = []
    /// The number of the last entry that was sent.
    var number: Int64
    /// The names of entries that were sent and whose answers are not written down.
    var names: Set<String> = []
    /// Whether entries are being sent.
    var isFilling = false
    /// Whether something has changed meanwhile: an entry that could not be sent may be free now.
    var hasChanged = false
    /// The next entry, when its contents must be sent first.
    var held: OutboxEntry?
    /// The name of the entry whose contents were sent.
    var prepared: String?
    /// Whether there may be entries that nobody has read. They are read once the server is there: a
    /// device without a network may have very many.
    var hasMissed = true
  }

  extension SyncEngine {
    /// Sends until the task is cancelled.
    func send() async {
      var backoff = Backoff()
      while !Task.isCancelled {
        do {
          guard try await hasUnanswered() else {
            await sendBell.wait()
            continue
          }
          tell()
          let stream = WriteStream(self, after: client.answered)
          writing = stream.requests
          defer { writing = nil }
          do {
            try await stream.run()
          } catch {
            try await stream.close()
            try await take(failure: error, of: stream, &backoff)
            continue
          }
          try await stream.close()
          backoff.reset()
        } catch {
          if note(failure: error) { continue }
          guard !Task.isCancelled else { return }
          await rest(sendBell, wakedBy: sendWakeBell, &backoff)
        }
      }
    }

    /// Whether there are entries without an answer.
    private func hasUnanswered() async throws(DatabaseError) -> Bool {
      for try await row in database.syncOutbox.query.documents
      where OutboxEntry.openPlace(row) != nil {
        return true
      }
      return false
    }

    /// The entries without an answer, in their order; all of them survive a crash. Those that wait
    /// to be merged are not among them.
    fileprivate func unanswered() async throws(DatabaseError) -> [OutboxEntry.Place] {
      var places: [OutboxEntry.Place] = []
      for try await row in database.syncOutbox.query.documents {
        if let place = OutboxEntry.openPlace(row) { places.append(place) }
      }
      // An entry can be read before it would survive a crash. After one that lost it, the device
      // would send another under its number, and the server would take it for a copy.
      if !places.isEmpty { try await database.synchronize() }
      return places.sorted()
    }

    /// Decides what the end of a stream means: for the oldest entry under way, for this device, or
    /// for nobody.
    private func take(
      failure error: any Error, of stream: WriteStream, _ backoff: inout Backoff
    ) async throws {
      if let error = error as? RPCError, error.metadata["ondol-client"].contains("foreign") {
        return try await becomeAnother()
      }
      if let refused = error as? EntryRefusal {
        backoff.reset()
        sent.remove(refused.entry.name)
        let reason = refused.reason
        try await commits.takeBack(
          refused.entry, for: .server(reason.code, reason.message), client)
        return tell()
      }
      let reason = DatabaseError(sync: error)
      // An error of this device's own refuses nothing.
      guard let refusal = error as? RPCError, reason.isRefusal, let entry = await stream.oldest
      else {
        throw error
      }
      backoff.reset()
      var next = client
      next.answered += 1
      if Self.mayMerge(entry, after: reason) {
        let text = refusal.metadata[stringValues: "ondol-time"].first { _ in true }
        let time = text.flatMap { Int64($0) }
          .flatMap { try? Timestamp(microsecondsSince1970: $0) }
        try await hold(entry, for: reason, at: time, next)
      } else {
        try await commits.takeBack(entry, for: .server(reason.code, reason.message), next)
        client = next
      }
      sent.remove(entry.name)
      answerBell.ring()
      tell()
    }

    /// Goes on under a new identity, because another device has this one: one database is a copy of
    /// the other. What it has written since it was opened is its own. Earlier entries are in both
    /// copies, and the other one may have sent them.
    private func becomeAnother() async throws {
      client = SyncClient(id: AutomaticID.make(environment.random))
      try await commits.write(client)
      // What waits to be merged is in both copies as well.
      for name in try await unanswered().map(\.name) + held.keys.sorted() {
        let row = try await database.syncOutbox.document(name).getDocument()
        guard row.exists else { continue }
        let entry = try OutboxEntry(row)
        sent.remove(name)
        if entry.session != session {
          held[name] = nil
          try await commits.takeBack(entry, for: .copiedDatabase, client)
        }
      }
      answerBell.ring()
      tell()
    }

    /// Writes answers down.
    fileprivate func acknowledge(
      _ answers: [(entry: OutboxEntry, answer: OutboxEntry.Answer)]
    ) async throws {
      guard !answers.isEmpty else { return }
      // Only what is written down counts: the end of a stream may cancel this. Numbers beyond what
      // the row says would come again with other names after the next start, and the server would
      // take this device for another one with its identity.
      var next = client
      next.answered += Int64(answers.count)
      try await commits.acknowledge(answers, next)
      client = next
      for (entry, answer) in answers {
        sent.remove(entry.name)
        var entry = entry
        entry.answer = answer
        answered.append(entry)
      }
      answerBell.ring()
      probeBell.ring()
      if requests == nil { listenBell.ring() }
      tell()
    }

    fileprivate func noteSending(_ entry: OutboxEntry) { sent.insert(entry) }
  }

  /// The server does not take the contents of an entry.
  private struct EntryRefusal: Error {
    let entry: OutboxEntry
    let reason: DatabaseError
  }

  /// One stream of writes.
  private actor WriteStream {
    private let engine: SyncEngine
    private var window: Window
    /// Takes what is sent, until the stream is to end.
    nonisolated let requests: AsyncStream<WireWriteRequest>.Continuation
    private let stream: AsyncStream<WireWriteRequest>
    /// The last token of the server, which Google's protocol repeats in each message.
    private var token = Data()

    init(_ engine: SyncEngine, after number: Int64) {
      self.engine = engine
      window = Window(number: number)
      (stream, requests) = AsyncStream.makeStream(of: WireWriteRequest.self)
    }

    /// The oldest entry without an answer; nil before the server has accepted the stream.
    var oldest: OutboxEntry? { window.isOpen ? window.underWay.first : nil }

    /// Sends all entries, and those that come meanwhile, until the server or this device ends the
    /// stream.
    func run() async throws {
      let credential = try await engine.credential()
      let client = await engine.client
      requests.yield(
        .with {
          $0.database = "\(engine.values.database)"
          if !engine.isGoogles {
            $0.streamToken = Data("\(client.id):\(client.answered)".utf8)
          }
        })
      try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask { [self] in
          try await engine.transport.write(credential, stream) { [self] message in
            try await take(message)
          }
          return true
        }
        group.addTask { [self] in
          while !Task.isCancelled {
            await engine.sendBell.wait()
            try await sendContents()
            try await refill()
          }
          return false
        }
        defer { group.cancelAll() }
        while let isOver = try await group.next() { if isOver { break } }
      }
      guard window.underWay.isEmpty else {
        throw DatabaseError(.unavailable, "the server has ended the stream")
      }
    }

    /// Sends the contents that the next entry waits for. Meanwhile answers are taken as always.
    private func sendContents() async throws {
      while let entry = window.held {
        do {
          try await engine.exchange.send(entry.contents)
        } catch let error as ContentRefusal {
          throw EntryRefusal(entry: entry, reason: error.reason)
        }
        (window.held, window.prepared) = (nil, entry.name)
        try await advance()
      }
    }

    /// Sends what has come since the entries were read.
    private func refill() async throws {
      guard window.isOpen else {
        window.hasMissed = true
        return
      }
      guard window.queue.isEmpty, !window.isFilling else {
        window.hasMissed = true
        return try await fill()
      }
      let waiting = try await engine.unanswered()
      guard window.queue.isEmpty, !window.isFilling else {
        window.hasMissed = true
        return try await fill()
      }
      window.queue = waiting.filter { !window.names.contains($0.name) }[...]
      try await fill()
    }

    /// Sends what may be sent now.
    private func advance() async throws {
      try await fill()
      while window.hasMissed, window.queue.isEmpty, !window.isFilling {
        window.hasMissed = false
        try await refill()
      }
    }

    /// Writes down the answers that have come, and ends the stream.
    func close() async throws {
      requests.finish()
      try await settle()
    }

    private func take(_ message: WireWriteResponse) async throws {
      token = message.streamToken
      guard window.isOpen else {
        window.isOpen = true
        await engine.noteReached()
        return try await advance()
      }
      guard !window.underWay.isEmpty else {
        throw DatabaseError(.dataLoss, "the server has answered what was not sent")
      }
      let entry = window.underWay[0]
      guard message.writeResults.count == entry.writes.count else {
        throw DatabaseError(
          .dataLoss,
          "the server has answered \(entry.writes.count) writes with"
            + " \(message.writeResults.count) results")
      }
      window.underWay.removeFirst()
      var updates: [Timestamp?] = []
      for result in message.writeResults {
        updates.append(
          result.hasUpdateTime ? try engine.values.timestamp(result.updateTime) : nil)
      }
      window.answers.append(
        (entry, .init(time: try engine.values.timestamp(message.commitTime), updates: updates)))
      // Before the answers are written down, so that the server has something to do meanwhile.
      try await fill()
      if window.underWay.isEmpty || window.answers.count >= Window.answerCount {
        try await settle()
      }
      try await advance()
    }

    private func settle() async throws {
      let answers = window.answers
      window.answers = []
      try await engine.acknowledge(answers)
      window.names.subtract(answers.map(\.entry.name))
    }

    /// Sends as many entries as may be under way.
    private func fill() async throws {
      window.hasChanged = true
      guard !window.isFilling else { return }
      window.isFilling = true
      defer { window.isFilling = false }
      while window.hasChanged {
        window.hasChanged = false
        try await sendQueue()
      }
    }

    /// Sends entries until one cannot be sent.
    private func sendQueue() async throws {
      while window.underWay.count < Window.width, window.held == nil,
        let name = window.queue.first?.name
      {
        let row = try await engine.database.syncOutbox.document(name).getDocument()
        let entry = row.exists ? try OutboxEntry(row) : nil
        guard let entry, entry.answer == nil, !window.names.contains(name) else {
          window.queue.removeFirst()
          continue
        }
        // It has another place by now, and the server knows a device by the order of its entries.
        guard entry.place == window.queue.first else {
          window.queue = []
          window.hasMissed = true
          return engine.sendBell.ring()
        }
        // What it relies on must be answered first: the answer says when the server updated it.
        // The bell rings when it can be sent.
        if !entry.reliedOn.isEmpty {
          guard entry.isDelayed || window.names.isEmpty else { return }
          let isDelayed = entry.isDelayed ? true : try await engine.commits.delayIfMerging(name)
          guard isDelayed else { return }
          window.queue.removeFirst()
          continue
        }
        if window.prepared != name, await !engine.exchange.isReady(entry.contents) {
          window.held = entry
          return engine.sendBell.ring()
        }
        window.queue.removeFirst()
        try await send(entry)
      }
    }

    private func send(_ entry: OutboxEntry) async throws {
      window.number += 1
      let client = await engine.client
      var writes: [WireWrite] = []
      for one in entry.writes {
        var write = one.write
        switch one.reliance {
        case .none: break
        case .updated(let time): write = write.when(.updated(at: time))
        case .absent: write = write.when(.exists(false))
        case .after:
          throw DatabaseError(.internal, "an entry relies on one that has no answer")
        }
        writes.append(try engine.values.wire(write))
      }
      window.underWay.append(entry)
      window.names.insert(entry.name)
      await engine.noteSending(entry)
      var name = "\(client.id):\(window.number):\(entry.name)"
      if !engine.isGoogles, !entry.footprints.isEmpty {
        let footprints = entry.footprints.map { footprint in
          var sent = footprint
          sent.target = FollowedQuery.sent(footprint.target, to: engine.values.database)
          return sent
        }
        name += ":" + (try QueryFootprint.text(of: footprints))
      }
      requests.yield(
        .with {
          $0.writes = writes
          $0.streamToken = engine.isGoogles ? token : Data(name.utf8)
        })
    }
  }

  extension DatabaseError {
    /// Whether the server would refuse the same writes again.
    fileprivate var isRefusal: Bool {
      switch code {
      case .invalidArgument, .notFound, .alreadyExists, .permissionDenied, .failedPrecondition,
        .outOfRange, .unimplemented:
        true
      default: false
      }
    }
  }
#endif
