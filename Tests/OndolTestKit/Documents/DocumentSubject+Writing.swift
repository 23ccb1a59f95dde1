// Turns a commit of a crash test into writes of documents: by a batch or by a transaction, which
// sets, merges, updates, creates or deletes. With it go an entry in a counter, sometimes a transfer
// between accounts, and sometimes an entry in the diary, which uses the calls that write one
// document.

internal import Ondol
package import OndolEngine

/// How far the diary is written, and whether a task writes in it.
struct Diary: Sendable {
  var number = 0
  var isOpen = false
  /// An entry failed, so its progress is unknown.
  var isUncertain = false
}

extension DocumentSubject {
  package func commit(
    _ changes: [Change], _ durability: OndolEngine.Durability
  ) async throws -> CommitPlace {
    let claimed = Ondol.Durability(durability)
    let durability =
      mistake == .acknowledgesEarly && claimed == .power ? Ondol.Durability.process : claimed
    let entry = draw { $0.chance(1, in: 4) } ? try await writeDiary(durability) : nil
    let counter = draw { $0.below(Self.counterCount) }
    let commit: CompletedCommit?
    do {
      commit =
        draw { $0.chance(1, in: 2) }
        ? try await commitBatch(changes, counter, entry, durability)
        : try await commitTransaction(changes, counter, entry, durability)
    } catch {
      // It is unknown whether the entry is followed.
      if entry != nil { diary.withLock { $0.isUncertain = true } }
      throw error
    }
    if entry != nil { diary.withLock { $0.isOpen = false } }
    guard let receipt = commit?.receipt else {
      throw BrokenInvariant("a commit that counts itself has changed nothing")
    }
    return CommitPlace(sequence: receipt.sequence.rawValue, time: receipt.time)
  }

  /// Makes some commit, the same one for the same number.
  package func commitSample(_ number: Int) async throws {
    let sample = Workload.commit(seed: UInt64(number))
    _ = try await commit(sample.changes, sample.durability)
  }

  private func commitBatch(
    _ changes: [Change], _ counter: Int, _ entry: Int?, _ durability: Ondol.Durability
  ) async throws -> CompletedCommit? {
    let batch = database.batch()
    for change in changes {
      let document = database.document(try DocumentForm.path(of: change.key))
      guard let value = change.value else {
        batch.deleteDocument(document)
        continue
      }
      let fields = DocumentForm.fields(of: value, id: document.documentID)
      if draw({ $0.chance(1, in: 2) }) {
        try batch.setData(fields, forDocument: document)
      } else {
        try batch.setData(Self.patch(fields), forDocument: document, merge: true)
      }
    }
    try batch.setData(
      ["commits": FieldValue.increment(1)], forDocument: self.counter(counter), merge: true)
    if let entry { try batch.setData(["n": entry], forDocument: follower) }
    return try await batch.complete(durability: durability)
  }

  private func commitTransaction(
    _ changes: [Change], _ counter: Int, _ entry: Int?, _ durability: Ondol.Durability
  ) async throws -> CompletedCommit {
    let (from, to, amount) = draw {
      ($0.below(Self.accountCount), $0.below(Self.accountCount), 1 + $0.below(100))
    }
    return try await database.run(attempts: 1_000, durability: durability) { transaction in
      for change in changes { try write(change, transaction) }
      let count = try transaction.getDocument(self.counter(counter))["commits"] as Int? ?? 0
      try transaction.setData(["commits": count + 1], forDocument: self.counter(counter))
      try transfer(amount, from: from, to: to, transaction)
      if let entry { try transaction.setData(["n": entry], forDocument: follower) }
    }.commit
  }

  private func write(_ change: Change, _ transaction: Transaction) throws {
    let document = database.document(try DocumentForm.path(of: change.key))
    guard let value = change.value else {
      try transaction.deleteDocument(document)
      return
    }
    let fields = DocumentForm.fields(of: value, id: document.documentID)
    if try transaction.getDocument(document).exists {
      try transaction.updateData(Self.patch(fields), forDocument: document)
    } else {
      try transaction.create(fields, forDocument: document)
    }
  }

  private func transfer(
    _ amount: Int, from: Int, to: Int, _ transaction: Transaction
  ) throws {
    guard from != to else { return }
    for (number, change) in [(from, -amount), (to, amount)] {
      let document = account(number)
      let balance = try transaction.getDocument(document)["balance"] as Int? ?? 0
      try transaction.setData(["balance": balance + change], forDocument: document)
    }
  }

  /// Returns the fields, and deletes for those that the document must not have.
  private static func patch(_ fields: [String: Value]) -> [String: (any FieldContent)?] {
    var patch = fields.mapValues { $0 as (any FieldContent)? }
    for name in DocumentForm.optionalFields where fields[name] == nil {
      patch[name] = FieldValue.delete()
    }
    return patch
  }

  // MARK: - Places

  func counter(_ number: Int) -> DocumentReference { database.document("counters/c\(number)") }
  func account(_ number: Int) -> DocumentReference { database.document("bank/a\(number)") }
  var diaryEntry: DocumentReference { database.document("diary/entry") }
  /// Records how far the diary is certainly written, in the commit after an entry.
  var follower: DocumentReference { database.document("diary/follower") }

  // MARK: - The diary

  /// Writes the next entry by a call for one document. Every fourth is a deletion. Returns the
  /// entry's number; nil if another task writes.
  private func writeDiary(_ durability: Ondol.Durability) async throws -> Int? {
    let number: Int? = diary.withLock { diary in
      guard !diary.isOpen, !diary.isUncertain else { return nil }
      diary.isOpen = true
      return diary.number + 1
    }
    guard let number else { return nil }
    do {
      switch number % 4 {
      case 1: try await diaryEntry.setData(["n": number], durability: durability)
      case 2: try await diaryEntry.updateData(["n": number], durability: durability)
      case 3: try await diaryEntry.setData(["n": number], merge: true, durability: durability)
      default: try await diaryEntry.delete(durability: durability)
      }
    } catch {
      diary.withLock { $0 = Diary(number: number, isUncertain: true) }
      throw error
    }
    diary.withLock { $0.number = number }
    return number
  }

  /// Returns the diary's progress, from the stored documents.
  func readDiary() async throws -> Int {
    let snapshot = database.snapshot()
    let followed = try snapshot.getDocument(follower)["n"] as Int? ?? 0
    let entry = try snapshot.getDocument(diaryEntry)
    if let number = entry["n"] as Int? {
      guard (followed...(followed + 1)).contains(number), number % 4 != 0 else {
        throw BrokenInvariant("the diary is at \(number), which is followed by \(followed)")
      }
      return number
    }
    guard followed % 4 == 0 || followed % 4 == 3 else {
      throw BrokenInvariant("entry \(followed) of the diary is gone, and it had been followed")
    }
    return followed % 4 == 0 ? followed : followed + 1
  }
}

extension Ondol.Durability {
  init(_ durability: OndolEngine.Durability) {
    switch durability {
    case .memory: self = .memory
    case .process: self = .process
    case .periodic(let microseconds): self = .periodic(.microseconds(microseconds))
    case .power: self = .power
    }
  }
}
