// What a session pushes: for each place that the client listens to its data, then what has changed
// in it since. A commit of several places is one message, so the client never shows half of one.
// Rules are asked again before each push, because data that they depend on may have changed.

#if Server
  import Ondol
  import Synchronization

  /// What a client calls a listen: a place, and its number for a query of it.
  struct TreeListenKey: Sendable, Hashable {
    private let place: TreeReference
    private let tag: Int64?

    init(_ place: TreeReference, tag: Int64?) {
      self.place = place
      self.tag = tag
    }
  }

  /// The listens in whose places something may have changed.
  final class TreeNews: Sendable {
    let signal = TreeSignal()
    private let keys = Mutex<Set<TreeListenKey>>([])

    /// Called on a writer's thread.
    func note(_ key: TreeListenKey) {
      _ = keys.withLock { $0.insert(key) }
      signal.notify()
    }

    func take() -> Set<TreeListenKey> {
      keys.withLock { keys in
        defer { keys = [] }
        return keys
      }
    }
  }

  /// A place that a client listens to.
  struct TreeListen: Sendable {
    let listening: TreeRequest.Listening
    let follower: TreeFollower
    /// What the client has.
    var data: TreeData
  }

  extension TreeRequest.Listening {
    /// The place and the query, for people.
    fileprivate var name: String {
      "/\(place.text)\(query.map { " \(TreeText.json($0))" } ?? "")"
    }
  }

  extension TreeSession {
    private func key(_ listening: TreeRequest.Listening) -> TreeListenKey {
      TreeListenKey(listening.place.reference(in: database), tag: listening.tag)
    }

    /// Begins to listen, and sends the data unless the client has it.
    ///
    /// - Parameter hash: the hash of what the client has; empty when that is nothing.
    func listen(
      to listening: TreeRequest.Listening, hash: String?, _ number: Int64
    ) async throws {
      let key = key(listening)
      guard listens[key] != nil || listens.count < options.mostListens else {
        throw TreeRefusal(.tooBig, "a connection listens to \(options.mostListens) places at most")
      }
      listens[key] = nil
      try await access.checkRead(
        listening.terms, at: listening.place, in: database, as: principal)
      let query = listening.terms.query(at: listening.place.reference(in: database))
      let follower = TreeFollower(query) { [news] in news.note(key) }
      guard let first = try await follower.poll() else {
        throw TreeRefusal(.unavailable, "the database is closed")
      }
      listens[key] = TreeListen(listening: listening, follower: follower, data: first.nodeData)
      options.call?.listen(listening.name, to: listening.name)
      let isKnown = hash.map { !$0.isEmpty && $0 == TreeHash.hash(of: first.nodeData) } ?? false
      if !isKnown {
        try await pushData(listening, [], TreeText.json(first.nodeData))
      }
      let index = access.missingIndex(listening.terms, at: listening.place)
      try await answer(number, index == nil ? "{}" : "{\"w\":[\"no_index\"]}")
    }

    /// Stops listening.
    func unlisten(from listening: TreeRequest.Listening, _ number: Int64) async throws {
      listens[key(listening)] = nil
      options.call?.endListening(listening.name)
      try await answer(number)
    }

    // MARK: - Changes

    /// Pushes everything that has changed in what the client listens to.
    func push() async throws {
      await database.finishAnnouncing()
      for key in news.take() {
        guard let listen = listens[key] else { continue }
        do {
          try await push(key, listen)
        } catch let refusal as TreeRefusal where refusal.kind == .permissionDenied {
          try await revoke(key)
        }
      }
      if database.failure != nil { throw TreeRefusal(.unavailable, "the database has failed") }
    }

    private func push(_ key: TreeListenKey, _ listen: TreeListen) async throws {
      var listen = listen
      while let next = try await listen.follower.poll() {
        let changes = next.nodeData.changes(since: listen.data)
        if changes.isEmpty { continue }
        try await access.checkRead(
          listen.listening.terms, at: listen.listening.place, in: database, as: principal)
        listen.data = next.nodeData
        listens[key] = listen
        try await push(changes, to: listen.listening)
      }
      if listen.follower.isOver { throw TreeRefusal(.unavailable, "the database is closed") }
    }

    private func push(
      _ changes: [TreeDataChange], to listening: TreeRequest.Listening
    ) async throws {
      if changes.count == 1 {
        return try await pushData(listening, changes[0].keys, changes[0].json())
      }
      let values = changes.map { change in
        TreeText.json(change.keys.joined(separator: "/")) + ":" + change.json()
      }
      try await push("m", body(listening, [], "{" + values.joined(separator: ",") + "}"))
    }

    private func pushData(
      _ listening: TreeRequest.Listening, _ keys: [String], _ json: String
    ) async throws {
      try await push("d", body(listening, keys, json))
    }

    private func body(
      _ listening: TreeRequest.Listening, _ keys: [String], _ json: String
    ) -> String {
      let path = (listening.place.keys + keys).joined(separator: "/")
      let tag = listening.tag.map { ",\"t\":\($0)" } ?? ""
      return "{\"p\":\(TreeText.json(path)),\"d\":\(json)\(tag)}"
    }

    // MARK: - Permission

    /// Asks the rules about everything that the client listens to.
    func checkListens() async throws {
      for (key, listen) in listens {
        do {
          try await access.checkRead(
            listen.listening.terms, at: listen.listening.place, in: database, as: principal)
        } catch let refusal as TreeRefusal where refusal.kind == .permissionDenied {
          try await revoke(key)
        }
      }
    }

    /// Asks about everything again when other rules are in force.
    func checkRules() async throws {
      let number = access.rulesNumber
      guard number != rulesNumber else { return }
      rulesNumber = number
      try await checkListens()
    }

    private func revoke(_ key: TreeListenKey) async throws {
      guard let listen = listens.removeValue(forKey: key) else { return }
      access.gate?.audit.note(.denial, reason: "a listener may see its place no longer")
      let query = listen.listening.query.map { ",\"q\":[\(TreeText.json($0))]" } ?? ""
      try await push("c", "{\"p\":\(TreeText.json(listen.listening.place.text))\(query)}")
    }

    /// Takes the client's principal away when its credential has ended.
    func checkExpiry() async throws {
      guard let expiry = principal.expiry, expiry <= database.wallClock else { return }
      principal = .nobody
      try await push("ac", "{\"s\":\"expired_token\",\"d\":\"Auth token is expired.\"}")
      try await checkListens()
    }
  }

  extension TreeDataChange {
    /// The keys of the protocol's path.
    var keys: [String] {
      switch content {
      case .data: path
      case .priority: path + [".priority"]
      }
    }

    /// The new data, or the new priority.
    func json(_ form: TreeText.Form = .exported) -> String {
      switch content {
      case .data(let data): TreeText.json(data, form)
      case .priority(let priority): TreeText.json(priority ?? .null)
      }
    }
  }
#endif
