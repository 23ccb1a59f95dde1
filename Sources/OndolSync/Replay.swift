// Makes the visible state of a document: the server's, with the writes on top that wait. A write
// whose condition the server's state no longer meets is left out, because the server will refuse
// it. One that is to be merged is shown by its fields until then.

#if Sync
  import Ondol

  /// A document's state while writes are played on it.
  struct Replay {
    private let path: DocumentPath
    /// What makes the state, in order.
    private(set) var writes: [ClientWrite]
    private var exists: Bool
    /// What a write relies on that is made for what is shown. It need not be the last entry: one
    /// that was left out is not shown.
    private(set) var state: Reliance
    /// Whether an entry was left out on which the state depends. The server may have committed it
    /// after all, when the answer is late.
    private(set) var lacksEntry = false

    /// Begins with the server's state.
    init(_ path: DocumentPath, base: [String: Value]?, updated: Timestamp?) {
      self.path = path
      exists = base != nil
      state = updated.map { .updated($0) } ?? Reliance.none
      writes = [ClientWrite(path: path, base.map { .replace($0) } ?? .delete)]
    }

    /// Plays the writes of an entry, all of them or none.
    mutating func play(_ entry: OutboxEntry) {
      let own = entry.writes.filter { $0.write.path == path }
      guard own.contains(where: { !$0.write.isVerify }) else { return }
      var exists = exists
      for one in own {
        guard isMet(one, exists) else {
          lacksEntry = true
          return
        }
        switch one.write.change {
        case .replace, .patch: exists = true
        case .delete: exists = false
        case .verify: break
        }
      }
      self.exists = exists
      writes += own.map { $0.write.when(.none) }
      guard entry.determines(path) else {
        state = lacksEntry ? .impossible : .after(entry.name)
        return
      }
      lacksEntry = false
      state = entry.update(of: path) ?? .after(entry.name)
    }

    /// Plays writes, whatever they rely on.
    mutating func play(_ others: [ClientWrite]) { writes += others.map { $0.when(.none) } }

    private func isMet(_ one: OutboxEntry.Write, _ exists: Bool) -> Bool {
      if case .exists(let expected) = one.write.condition, expected != exists { return false }
      if one.mayMerge { return true }
      switch one.reliance {
      case .none: return true
      case .absent: return !exists
      case .updated, .after: return one.reliance == state
      }
    }
  }

  extension Transaction {
    /// Makes the document what the writes make of it. A write that cannot be carried out is left
    /// out: the server decides about it.
    func show(_ replay: Replay) throws(DatabaseError) {
      for write in replay.writes {
        do throws(DatabaseError) {
          try add(write)
        } catch {
          guard error.code == .outOfRange || error.code == .invalidArgument else { throw error }
        }
      }
    }
  }
#endif
