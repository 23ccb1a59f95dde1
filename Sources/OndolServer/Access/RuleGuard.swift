// Rules as the guard of a client's writes. Each write is a request of its own: create when there is
// no document yet, update when there is one, delete, and get for a write that only checks a
// condition. `get` shows other documents before the commit, `getAfter` with all of its writes.

#if Server
  import Ondol

  /// Asks a database's rules about writes.
  struct RuleGuard: WriteGuard {
    let access: RuledAccess
    let time: RuleTimestamp

    func check(_ writes: ProposedWrites) throws(DatabaseError) {
      let reads = reads(writes)
      for change in writes.changes {
        let path = change.write.path
        let (method, new) = method(of: change)
        let request = access.request(method, path, at: time, stored: change.before, new: new)
        guard try access.allows(request, at: path, reads) else { throw .refused }
      }
    }

    func mayRead(
      _ document: DocumentSnapshot, _ writes: ProposedWrites
    ) throws(DatabaseError) -> Bool {
      try access.allows(.get, [document], reads(writes))
    }

    private func method(
      of change: ProposedWrites.Change
    ) -> (RuleMethods, new: DocumentSnapshot?) {
      if change.write.isVerify { return (.get, nil) }
      guard change.after.exists else { return (.delete, nil) }
      return (change.before.exists ? .update : .create, change.after)
    }

    private func reads(_ writes: ProposedWrites) -> RuleReads {
      RuleReads(access, at: time) { (path, afterWrites) throws(DatabaseError) in
        try writes.document(at: path, afterWrites: afterWrites)
      }
    }
  }

  extension Database {
    /// Commits a client's writes as far as the call may make them.
    func commit(
      _ writes: [ClientWrite], as group: WriteGroup? = nil, _ access: CallAccess
    ) async throws(DatabaseError) -> ClientCommit {
      switch access {
      case .everything: try await commit(writes, as: group)
      case .ruled(let access):
        try await commit(
          writes, as: group, allowedBy: RuleGuard(access: access, time: ruleTime))
      }
    }
  }
#endif
