// The task that listens. It gathers what the server sends and makes one commit of each moment, or
// of several that came while the last commit was made. When the stream breaks, it forgets what it
// has gathered, and the next one continues from the last moment.

#if Sync
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolWire

  extension SyncEngine {
    /// Changes of a first load that are committed together.
    private static let loadCount = 500
    /// How long a moment waits for the answers to writes that it may show, in microseconds. Without
    /// them, a waiting increment could be seen twice for a while.
    private static let longestWait: Int64 = 5_000_000
    /// Changes of moments that may wait while another is committed.
    private static let mostPending = 2_000
    /// How long answered writes wait for a moment before the server is asked for one.
    private static let probePause: Int64 = 30_000

    /// Listens until the task is cancelled.
    func listen() async {
      var backoff = Backoff()
      while !Task.isCancelled {
        guard !follows.isEmpty || !answered.isEmpty || !held.isEmpty else {
          await listenBell.wait()
          continue
        }
        do {
          try await connect(&backoff)
          _ = note(failure: DatabaseError(.unavailable, "the server has ended the stream"))
        } catch {
          if note(failure: error) { continue }
        }
        guard !Task.isCancelled else { return }
        await rest(listenBell, wakedBy: listenWakeBell, &backoff)
      }
    }

    private func connect(_ backoff: inout Backoff) async throws {
      let credential = try await credential()
      let (stream, requests) = AsyncStream.makeStream(of: WireListenRequest.self)
      gathering = Gathering(values)
      self.requests = requests
      heldBefore = Set(held.keys)
      isFirstMoment = true
      defer {
        self.requests = nil
        requests.finish()
      }
      for follow in follows.values.sorted(by: { $0.number < $1.number }) {
        requests.yield(gathering.add(follow))
      }
      if !answered.isEmpty { probeBell.ring() }
      if follows.isEmpty { askForMoment() }
      pending = nil
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { [self] in
          try await transport.listen(credential, stream) { [self] message in
            try await take(message)
          }
        }
        group.addTask { [self] in
          while !Task.isCancelled {
            await momentBell.wait()
            try await showPending()
          }
        }
        defer { group.cancelAll() }
        try await group.next()
      }
    }

    /// Takes one message at a time.
    private func take(_ message: WireListenResponse) async throws {
      noteReached()
      switch try gathering.take(message) {
      case .nothing:
        if let part = gathering.takeLoaded(atLeast: Self.loadCount) { try await load(part) }
      case .failed(let number, let error):
        note(error, of: number)
      case .moment(let time, let token):
        guard gathering.isOnlyOfChanges, !isFirstMoment else {
          return try await show(as: time, token)
        }
        wait(for: gathering.takeMoment(time, token))
        momentBell.ring()
        if let pending, pending.moment.changes.count > Self.mostPending {
          try await showPending()
        }
      }
    }

    // MARK: - Moments that wait

    private func wait(for moment: ServerMoment) {
      let unanswered = unanswered(about: moment)
      guard pending != nil else {
        pending = PendingMoment(moment: moment, unanswered: unanswered)
        return
      }
      pending?.moment.add(moment)
      pending?.unanswered.formUnion(unanswered)
    }

    /// Commits what waits, after what is being committed.
    private func showPending() async throws {
      await beginShowing()
      defer { endShowing() }
      guard let next = pending.take() else { return }
      let time = next.moment.time ?? .minimum
      try await commit(next, decided: decided(as: time, isAsked: false))
    }

    /// Waits until nothing else is being committed.
    private func beginShowing() async {
      while isShowing {
        await withCheckedContinuation { showing.append($0) }
      }
      isShowing = true
    }

    private func endShowing() {
      isShowing = false
      let waiting = showing
      showing = []
      for one in waiting { one.resume() }
    }

    // MARK: - Commits

    /// Commits a part of a first load.
    private func load(_ part: ServerMoment) async throws {
      try await showPending()
      let (kept, follows) = try await commits.apply(part, finishing: [])
      gathering.hold(kept)
      expectContents(of: part)
      update(follows)
    }

    /// Commits a moment that more depends on than its changes: documents that the server has named
    /// all, or counted, or a moment that was asked for.
    private func show(as time: Timestamp, _ token: [UInt8]) async throws {
      try await showPending()
      let decided = decided(as: time, isAsked: isFirstMoment || gathering.isProbing)
      isFirstMoment = false
      let refreshed = gathering.refreshed
      var moment = gathering.takeMoment(time, token)
      for (follow, seen) in refreshed where (follows[follow.number]?.count ?? 0) > 0 {
        try await sweep(follow.number, except: seen, in: &moment)
      }
      try await commit(
        PendingMoment(moment: moment, unanswered: unanswered(about: moment)), decided: decided)
      for wrong in gathering.goOn(with: follows) { restart(wrong) }
    }

    private func commit(_ next: PendingMoment, decided: Set<String>) async throws {
      let (moment, time) = (next.moment, next.moment.time ?? .minimum)
      await waitForAnswers(of: next.unanswered)
      // The stream may have ended meanwhile, without the answers: the next one sends this again.
      try Task.checkCancellation()
      let finished = answered.filter { entry in (entry.answer?.time ?? .maximum) <= time }
      let (_, known) = try await commits.apply(moment, finishing: finished)
      expectContents(of: moment)
      let names = Set(finished.map(\.name))
      answered.removeAll { names.contains($0.name) }
      update(known)
      // What relies on them can be sent.
      if !finished.isEmpty { sendBell.ring() }
      try await mergeHeld(decided: decided)
      if !answered.isEmpty { probeBell.ring() }
      tell()
    }

    private func update(_ known: [FollowedQuery]) {
      for follow in known where follows[follow.number] != nil {
        follows[follow.number] = follow
      }
      tell()
    }

    /// Has documents leave that the server did not name when it named all.
    private func sweep(
      _ number: Int64, except seen: Set<PathDigest>, in moment: inout ServerMoment
    ) async throws(DatabaseError) {
      let members = database.syncedDocuments.whereField(
        SyncedRow.followsField, arrayContains: number)
      for try await document in members.documents {
        guard let row = SyncedRow(document.data()), !seen.contains(PathDigest(row.path)) else {
          continue
        }
        var change = moment.changes[row.path] ?? ServerChange(state: .left)
        if change.joined.contains(number) { continue }
        change.left.insert(number)
        moment.changes[row.path] = change
      }
    }

    /// The names of the entries about documents of a moment that the server may have committed by
    /// then.
    private func unanswered(about moment: ServerMoment) -> Set<String> {
      sent.names(about: moment.changes.keys)
    }

    /// Waits until none of these entries is without an answer.
    private func waitForAnswers(of names: Set<String>) async {
      let end = environment.uptime() + Self.longestWait
      while !Task.isCancelled, names.contains(where: sent.contains) {
        let left = end - environment.uptime()
        guard left > 0 else { return }
        await answerBell.wait(atMost: left, in: environment)
      }
    }

    // MARK: - Moments on demand

    /// Asks for a moment when answered or refused writes wait and nothing happens.
    func probe() async {
      while !Task.isCancelled {
        await probeBell.wait()
        await environment.sleep(Self.probePause)
        guard !Task.isCancelled else { return }
        askForMoment()
      }
    }

    private func askForMoment() {
      guard let requests, !gathering.isProbing,
        let path = answered.first?.paths.first ?? held.first?.value.path
      else { return }
      heldBefore.formUnion(held.keys)
      requests.yield(gathering.probe(path))
    }
  }
#endif
