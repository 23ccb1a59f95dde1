// What rules mean for the calls of the service.

#if Server
  import Ondol
  import OndolMapping
  import OndolWire

  extension QueryMapping {
    init(_ call: FirestoreService.Call, parent: DocumentPath?) {
      self.init(
        values: call.values, database: call.database, parent: parent,
        readsWhole: call.access.rules != nil)
    }
  }

  extension FirestoreService.Call {
    /// What the rules say of a query; nil for callers to whom none apply.
    ///
    /// - Throws: as `RuledList.init`.
    func ruled(
      _ wire: WireStructuredQuery, below parent: DocumentPath?, at moment: ReadMoment
    ) async throws(DatabaseError) -> RuledList? {
      guard let access = access.rules else { return nil }
      return try await RuledList(wire, below: parent, values, access, at: moment)
    }

    /// The guard of the call's writes; nil when there is none.
    var writeGuard: (any WriteGuard)? {
      access.rules.map { RuleGuard(access: $0, time: database.ruleTime) }
    }

    /// Commits one write; returns the document as the write left it.
    func write(_ write: ClientWrite) async throws(DatabaseError) -> DocumentSnapshot {
      guard case .ruled = access else {
        let document = try await database.write(write)
        noteChanges([write])
        return document
      }
      let commit = try await database.commit([write], access)
      let moment = try await served.moments.moment(at: commit.time)
      return try await moment.documents(at: [write.path])[0]
    }

    /// Records what a commit changed of accounts and rules: only administrators can write there.
    func noteChanges(_ writes: [ClientWrite]) {
      guard case .everything = access else { return }
      var hasRules = false
      for write in writes where RuledAccess.isClosed(write.path) && !write.isVerify {
        let path = write.path.segments
        if path.first == ServerRules.root {
          hasRules = true
        } else {
          audit.note(.accountChange, account: path.count == 2 ? path.last : nil)
        }
      }
      if hasRules { audit.note(.rulesChange) }
    }
  }
#endif
