// What the app on a simulated device does beside counting: photographs, lines that are merged,
// seats that are booked when a query finds none, and things that one device has at a time.

#if Server && Sync
  import Foundation
  import Ondol
  import OndolEngine
  @testable import OndolSync
  import OndolTestKit

  extension SyncTrial {
    /// The bytes of a photograph.
    static func bytes(of tag: String, _ count: Int) -> [UInt8] {
      var random = SeededRandom(seed: tag.utf8.reduce(7) { $0 &* 31 &+ UInt64($1) })
      return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    func photograph(
      _ random: inout SeededRandom, _ tag: String, _ life: DeviceLife
    ) async throws {
      let count = [20, 900, 3_500][random.below(3)]
      let name = "photos/p\(random.below(3))"
      let blob = try await life.database.storage.put(Self.bytes(of: tag, count))
      try await life.database.document(name).setData(["tag": tag, "photo": blob])
    }

    /// Reads the contents that a device shows, if they can be had.
    func look(_ life: DeviceLife) async throws {
      for document in try await life.database.collection("photos").getDocuments().documents {
        do {
          try await check(document, in: life.database)
        } catch let error as DatabaseError {
          // The network is away, or the document is no longer the server's.
          guard life.isOver || [.unavailable, .notFound, .cancelled].contains(error.code) else {
            throw fault("\(document.reference.path) has no photograph: \(error)")
          }
        }
      }
    }

    /// Expects the bytes of a document's content.
    func check(_ document: DocumentSnapshot, in database: Database) async throws {
      guard let tag = document["tag"] as String?, let blob = document["photo"] as BlobReference?
      else { throw fault("\(document.reference.path) is no photograph") }
      let bytes = try await database.storage.data(of: blob)
      guard Array(bytes) == Self.bytes(of: tag, blob.length) else {
        throw fault("\(document.reference.path) has the bytes of another")
      }
      ledger.withLock { $0.counts.contents += 1 }
    }

    /// Adds a line to the merged document, as an app does that shows it in a text field.
    func addLine(_ line: String, _ life: DeviceLife) async throws {
      let document = life.database.document("merged/k")
      let known = Self.lines(try await document.getDocument().data())
      ledger.withLock { _ = $0.unsureLines.insert(line) }
      do {
        let result = try await document.updateData(
          ["lines": known + [line]], returning: .before)
        guard !life.isOver else {
          // The same may have happened, and nobody knows.
          return ledger.withLock { $0.removedLines.formUnion($0.lines.union($0.unsureLines)) }
        }
        let between = Set(Self.lines(result.before?.data() ?? [:])).subtracting(known)
        ledger.withLock { ledger in
          ledger.removedLines.formUnion(between)
          ledger.unsureLines.remove(line)
          ledger.lines.insert(line)
          ledger.counts.lines += 1
        }
      } catch {
        ledger.withLock { ledger in
          if life.isOver {
            ledger.removedLines.formUnion(ledger.lines.union(ledger.unsureLines))
          } else {
            ledger.unsureLines.remove(line)
          }
        }
        throw error
      }
    }

    static func lines(_ fields: [String: Value]) -> [String] {
      (fields["lines"]?.array ?? []).compactMap {
        if case .string(let line) = $0 { line } else { nil }
      }
    }

    /// Books a seat if a query finds no booking of it.
    func book(_ seat: Int, _ name: String, _ life: DeviceLife) async throws {
      let bookings = life.database.collection("bookings")
      ledger.withLock { $0.unsureBooked[seat, default: 0] += 1 }
      var isUnsure = false
      defer { if !isUnsure { ledger.withLock { $0.unsureBooked[seat, default: 0] -= 1 } } }
      let isBooked: Bool
      do {
        isBooked = try await life.database.runTransaction { transaction in
          let taken = bookings.whereField("seat", isEqualTo: seat)
          guard try transaction.getDocuments(taken).isEmpty else { return false }
          try transaction.setData(["seat": seat], forDocument: bookings.document(name))
          return true
        }
      } catch {
        isUnsure = life.isOver
        throw error
      }
      isUnsure = life.isOver
      guard !isUnsure, isBooked else { return }
      ledger.withLock { ledger in
        ledger.booked[seat, default: 0] += 1
        ledger.counts.bookings += 1
      }
    }

    /// Takes what nobody has, or releases what this device has. Each leaves a trace in its commit.
    func take(_ name: String, _ owner: String, _ life: DeviceLife) async throws {
      let slot = life.database.document("slots/s")
      try await life.database.runTransaction { transaction in
        let found = try transaction.getDocument(slot)
        if !found.exists {
          try transaction.setData(["by": owner], forDocument: slot)
        } else if found["by"] as String? == owner {
          try transaction.deleteDocument(slot)
        } else {
          return
        }
        try transaction.setData(
          ["takes": !found.exists], forDocument: life.database.document("slots/\(name)"))
      }
    }

    func note(_ random: inout SeededRandom, _ life: DeviceLife) async throws {
      let note = life.database.document("notes/n\(random.below(5))")
      if random.chance(1, in: 4) {
        try await note.delete()
      } else if random.chance(1, in: 2) {
        try await note.setData(["n": random.below(10), "t": random.below(100)])
      } else {
        // Two documents in one commit.
        let batch = life.database.batch()
        try batch.setData(["n": random.below(10)], forDocument: note, merge: true)
        try batch.setData(
          ["n": random.below(6)], forDocument: life.database.document("notes/both"), merge: true)
        try await batch.commit()
      }
    }
  }
#endif
