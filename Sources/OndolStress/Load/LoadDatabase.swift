// The database under load and the operations on it. Every document has its number in its fields, so
// that each read is checked: a read that returns another document's fields, or half of a document,
// is a violation, however fast it was.

import Foundation
import Ondol
import OndolTestKit
import Synchronization

/// The result of an operation.
enum OperationOutcome: Sendable {
  case done
  /// The document did not exist: it had been deleted.
  case missed
  /// The read returned something impossible.
  case wrong(String)
}

/// A scenario's documents in a database.
final class LoadDatabase: Sendable {
  /// The number of documents that share the queried field.
  private static let groupSize = 20

  let database: Database
  let scenario: Scenario
  private let collection: CollectionReference
  private let chooser: KeyChooser
  /// The number of assigned documents, and the number below which all are written.
  private let next: Atomic<Int>
  private let written: Atomic<Int>

  init(_ database: Database, _ scenario: Scenario) {
    self.database = database
    self.scenario = scenario
    collection = database.collection("load")
    chooser = KeyChooser(scenario.keys, documents: scenario.documents)
    next = Atomic(scenario.documents)
    written = Atomic(scenario.documents)
  }

  // MARK: - Documents

  private func document(_ number: Int) -> DocumentReference {
    collection.document("user\(KeyChooser.scatter(UInt64(number)))")
  }

  private func fields(_ number: Int, _ random: inout SeededRandom) -> [String: any FieldContent] {
    var fields: [String: any FieldContent] = ["n": number, "group": number / Self.groupSize]
    for index in 0..<scenario.fields { fields["field\(index)"] = text(number, &random) }
    return fields
  }

  private func text(_ number: Int, _ random: inout SeededRandom) -> String {
    let lengths = scenario.fieldLength
    let length = lengths.least + random.below(lengths.most - lengths.least + 1)
    let letters = random.bytes(length).map { 0x61 + $0 % 26 }
    // As much of the number as fits.
    let mark = Array("\(number).".utf8.prefix(length))
    return String(decoding: mark + letters.dropFirst(mark.count), as: UTF8.self)
  }

  /// Returns what is wrong with a document; nil if nothing is.
  private func fault(in snapshot: DocumentSnapshot, expecting number: Int?) -> String? {
    guard let found: Int = snapshot["n"] else { return "\(snapshot.documentID) has no number" }
    if let number, number != found { return "document \(number) is document \(found)" }
    guard snapshot.documentID == document(found).documentID,
      snapshot["group"] as Int? == found / Self.groupSize
    else { return "document \(found) has another's id or group" }
    let mark = "\(found)."
    for index in 0..<scenario.fields {
      guard let text: String = snapshot.get(FieldPath("field\(index)")) else {
        return "document \(found) has lost field \(index)"
      }
      guard zip(text.utf8, mark.utf8).allSatisfy({ $0 == $1 }) else {
        return "field \(index) of document \(found) is another's"
      }
    }
    return nil
  }

  private func outcome(_ faults: [String]) -> OperationOutcome {
    faults.first.map { .wrong($0) } ?? .done
  }

  // MARK: - Loading

  /// Writes the first documents, for as long as `goesOn` returns true.
  func load(seed: UInt64, goesOn: (Int) -> Bool) async throws {
    if (scenario.operations[.query] ?? 0) > 0 { try await collection.createIndex(on: ["group"]) }
    var random = SeededRandom(seed: SeededRandom.derive(seed, -7))
    for start in stride(from: 0, to: scenario.documents, by: 500) {
      let batch = database.batch()
      let end = min(start + 500, scenario.documents)
      for number in start..<end {
        try batch.setData(fields(number, &random), forDocument: document(number))
      }
      try await batch.commit(durability: .process)
      guard goesOn(end) else { break }
    }
    try await database.synchronize()
  }

  // MARK: - Operations

  func perform(
    _ kind: OperationKind, _ random: inout SeededRandom
  ) async throws -> OperationOutcome {
    let number = chooser.choose(below: written.load(ordering: .relaxed), &random)
    let durability = scenario.durability.durability
    switch kind {
    case .get:
      let found = try await document(number).getDocument()
      return found.exists
        ? outcome([fault(in: found, expecting: number)].compactMap { $0 }) : .missed
    case .put:
      try await document(number).setData(fields(number, &random), durability: durability)
      return .done
    case .insert:
      let number = next.add(1, ordering: .relaxed).oldValue
      try await document(number).setData(fields(number, &random), durability: durability)
      // Earlier ones may still be under way. A read that misses one is counted, but is not wrong.
      written.max(number + 1, ordering: .relaxed)
      return .done
    case .update: return try await update(number, durability, &random)
    case .query:
      let query = collection.whereField("group", isEqualTo: number / Self.groupSize)
        .limit(to: Self.groupSize)
      return outcome(
        try await query.getDocuments().documents.compactMap { found in
          found["group"] as Int? == number / Self.groupSize
            ? fault(in: found, expecting: nil) : "\(found.documentID) is not in the group asked for"
        })
    case .scan:
      let query = collection.order(by: .documentID()).start(at: [document(number).documentID])
        .limit(to: 1 + random.below(scenario.scanLength))
      let found = try await query.getDocuments().documents
      return found.isEmpty
        ? .missed : outcome(found.compactMap { fault(in: $0, expecting: nil) })
    case .transaction: return try await modify(number, durability, &random)
    case .delete:
      try await document(number).delete(durability: durability)
      return .done
    case .listener: return try await listen(number, &random)
    }
  }

  private func update(
    _ number: Int, _ durability: Durability, _ random: inout SeededRandom
  ) async throws -> OperationOutcome {
    let field = "field\(random.below(scenario.fields))"
    let value = text(number, &random)
    do throws(DatabaseError) {
      try await document(number).updateData([field: value], durability: durability)
      return .done
    } catch {
      guard error.code == .notFound else { throw error }
      return .missed
    }
  }

  private func modify(
    _ number: Int, _ durability: Durability, _ random: inout SeededRandom
  ) async throws -> OperationOutcome {
    let reference = document(number)
    let field = "field\(random.below(scenario.fields))"
    let value = text(number, &random)
    return try await database.runTransaction(attempts: 1_000, durability: durability) {
      transaction in
      let found = try transaction.getDocument(reference)
      guard found.exists else { return OperationOutcome.missed }
      if let fault = self.fault(in: found, expecting: number) { return .wrong(fault) }
      try transaction.updateData([field: value], forDocument: reference)
      return .done
    }
  }

  private func listen(
    _ number: Int, _ random: inout SeededRandom
  ) async throws -> OperationOutcome {
    var snapshots = document(number).snapshots.makeAsyncIterator()
    guard let first = try await snapshots.next(), first.exists else { return .missed }
    var value = text(number, &random)
    // A listener reports only a change. A text as short as "6" must become "6.!", which still names
    // its document, and not "6!".
    if first["field0"] as String? == value {
      let mark = "\(number)."
      value = mark + value.dropFirst(mark.count) + "!"
    }
    do throws(DatabaseError) {
      try await document(number).updateData(["field0": value], durability: .process)
    } catch {
      guard error.code == .notFound else { throw error }
      return .missed
    }
    // Other tasks may write the same document. The event must belong to it, and must come.
    while let snapshot = try await snapshots.next() {
      guard snapshot.exists else { return .missed }
      if let fault = fault(in: snapshot, expecting: number) { return .wrong(fault) }
      if snapshot.version >= first.version, snapshot != first { return .done }
    }
    return .wrong("listening to document \(number) has ended")
  }
}
