// What a session's requests do.

#if Server
  import Ondol

  extension TreeSession {
    /// Takes a request through the server's gate. Each is a call of its own; its bytes count for
    /// the connection.
    ///
    /// - Throws: only what ends the session.
    func pass(_ request: TreeRequest, _ number: Int64) async throws {
      guard let gate = access.gate else {
        _ = try await perform(request, number)
        return
      }
      let call = gate.open("database.\(request.name)", from: options.source)
      if let caller = principal.caller { call.note(caller) }
      var refusal: TreeRefusal? = TreeRefusal(.unavailable, "the connection has ended")
      defer {
        gate.end(
          call, status: refusal?.status ?? "ok", error: refusal?.message,
          isDenial: refusal?.kind == .permissionDenied, isFault: refusal?.kind == .fault)
      }
      do {
        if !principal.isAdministrator {
          do throws(LimitReached) { try gate.admit(call, options.source) } catch {
            throw error.error
          }
        }
        if let account = principal.account {
          try await call.bind { try gate.admission.admit(account) }
        }
      } catch {
        refusal = TreeRefusal(error)
        return try await answer(number, TreeRefusal(error))
      }
      refusal = try await call.bind { try await perform(request, number) }
    }

    /// Does what a request asks for, and answers it.
    ///
    /// - Returns: what it was refused with; nil for a request that was not.
    /// - Throws: only what ends the session.
    private func perform(_ request: TreeRequest, _ number: Int64) async throws -> TreeRefusal? {
      do {
        switch request {
        case .listen(let listening, let hash): try await listen(to: listening, hash: hash, number)
        case .unlisten(let listening): try await unlisten(from: listening, number)
        case .get(let place, let terms): try await get(place, terms, number)
        case .put(let target, let value, let hash):
          try await write(
            TreeWrite(put: value, at: target, now: milliseconds), ifHash: hash, number)
        case .merge(let place, let values, let hash):
          try await write(
            TreeWrite(merge: values, at: place, now: milliseconds), ifHash: hash, number)
        case .onDisconnect(let operation): try await note(operation, number)
        case .signIn(let credential, let acting):
          try await signIn(credential, acting: acting, number)
        case .signOut:
          principal = .nobody
          try await checkListens()
          try await answer(number)
        case .noted: try await answer(number)
        }
        return nil
      } catch  where error is TreeRefusal || error is DatabaseError {
        if database.failure != nil { throw error }
        try await answer(number, TreeRefusal(error))
        return TreeRefusal(error)
      }
    }

    private func get(_ place: TreePlace, _ terms: TreeQueryTerms, _ number: Int64) async throws {
      let snapshot = try await access.read(terms, at: place, in: database, as: principal)
      try await answer(number, TreeText.json(snapshot.nodeData))
    }

    /// Commits a write, and pushes what it changed before it is acknowledged. A client takes its
    /// own view of the write back when it is acknowledged, and shows what it was sent. It also
    /// computes a transaction again from what it was sent before `datastale`.
    private func write(
      _ write: TreeWrite, ifHash hash: String?, _ number: Int64
    ) async throws {
      do {
        try await access.write(write, ifHash: hash, to: database, as: principal)
      } catch let refusal as TreeRefusal where refusal.kind == .stale {
        try await push()
        throw refusal
      }
      try await push()
      try await answer(number)
    }

    private func note(_ operation: TreeRequest.OnDisconnect, _ number: Int64) async throws {
      let write: TreeWrite
      switch operation {
      case .cancel(let place):
        try await operations.cancel(at: place.reference(in: database))
        return try await answer(number)
      case .put(let target, let value):
        write = try TreeWrite(put: value, at: target, now: milliseconds)
      case .merge(let place, let values):
        write = try TreeWrite(merge: values, at: place, now: milliseconds)
      }
      guard onDisconnectCount < options.mostOnDisconnect else {
        throw TreeRefusal(
          .tooBig, "a connection has \(options.mostOnDisconnect) operations on disconnect at most")
      }
      try await access.checkWrite(write, to: database, as: principal)
      // Counted before, because a call that throws may have committed.
      onDisconnectCount += 1
      try await write.note(in: operations, of: database)
      try await answer(number)
    }

    private func signIn(
      _ credential: String, acting: Value?, _ number: Int64
    ) async throws {
      var next = try await access.authentication.principal(ofCredential: credential)
      if let acting { next = next.acting(as: acting) }
      principal = next
      // The task that waits for changes also waits for the end of the credential.
      news.signal.notify()
      try await checkListens()
      try await answer(number, "{\"auth\":\(TreeText.json(principal.auth.json))}")
    }
  }

  extension RuleValue {
    /// The value as JSON; null for what JSON does not have.
    fileprivate var json: Value {
      switch self {
      case .bool(let truth): .boolean(truth)
      case .int(let number): .integer(number)
      case .float(let number): .double(number)
      case .string(let text): .string(text)
      case .list(let elements): .array(elements.map(\.json))
      case .map(let fields): .map(fields.mapValues(\.json))
      default: .null
      }
    }
  }
#endif
