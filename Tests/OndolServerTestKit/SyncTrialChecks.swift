// What must be true when all is quiet, of devices and server.

#if Server && Sync
  import Ondol
  import OndolEngine
  import OndolSync
  import OndolTestKit

  extension SyncTrial {
    private typealias Contents = [String: [String: [String: Value]]]

    private static func contents(of database: Database) throws -> Contents {
      var contents: Contents = [:]
      let snapshot = database.snapshot()
      for collection in SimulatedDevice.collections {
        contents[collection] = [:]
        for document in try snapshot.getDocuments(database.collection(collection)).documents {
          contents[collection]?[document.documentID] = document.data()
        }
      }
      return contents
    }

    /// Compares the devices with the server, and both with what was acknowledged.
    func compare() async throws {
      var shown: [Contents] = []
      var rejected: [Rejection] = []
      for device in devices {
        let life = try await device.life()
        shown.append(try Self.contents(of: life.database))
        rejected += try await life.sync.pendingRejections()
        try await checkRows(of: device, life)
        try await checkContents(of: "device \(device.number)", life.database)
      }
      let counts = rejected.count
      ledger.withLock { $0.counts.rejections += counts }
      let server = try await site.life(of: 0)
      let served = try await server.newestDatabase()
      try await checkContents(of: "the server", served)
      var there = try Self.contents(of: served)
      try check(there, rejected)
      there["notes"] = there["notes"]?.filter { note in
        note.value["n"]?.integer.map { $0 < SimulatedDevice.noteLimit } ?? false
      }
      for (device, shown) in zip(devices, shown) {
        for collection in SimulatedDevice.collections
        where shown[collection] != there[collection] {
          throw fault(
            "device \(device.number) has \(collection) \(shown[collection] ?? [:]), and the server"
              + " \(there[collection] ?? [:])")
        }
      }
    }

    /// What a device keeps beside the documents.
    private func checkRows(of device: SimulatedDevice, _ life: DeviceLife) async throws {
      let database = life.database
      for collection in SimulatedDevice.collections {
        let metadata = try await database.collection(collection).getDocuments().metadata
        guard !metadata.hasPendingWrites, metadata.isComplete else {
          throw fault("device \(device.number) shows \(collection) as \(metadata)")
        }
      }
      let waiting = try await database.syncOutbox.getDocuments().documents
      guard waiting.isEmpty else {
        throw fault("device \(device.number) has \(waiting.count) entries in its outbox")
      }
      var known: Set<String> = []
      for row in try await database.syncedDocuments.getDocuments().documents {
        let fields = row.data()
        guard fields["waiting"] == nil, fields["base"] == nil, fields["follows"] != nil,
          case .reference(let path)? = fields["path"]
        else { throw fault("device \(device.number) keeps \(fields)") }
        known.insert(path.segments.joined(separator: "/"))
      }
      var there: Set<String> = []
      for collection in SimulatedDevice.collections {
        for document in try await database.collection(collection).getDocuments().documents {
          there.insert(document.reference.path)
        }
      }
      guard known == there else {
        throw fault(
          "device \(device.number) has rows of \(known.symmetricDifference(there).sorted()) alone")
      }
    }

    /// Every content can be read, and a check finds nothing.
    private func checkContents(of owner: String, _ database: Database) async throws {
      for document in try await database.collection("photos").getDocuments().documents {
        do {
          try await check(document, in: database)
        } catch let error as DatabaseError {
          throw fault("\(owner) does not have \(document.reference.path): \(error)")
        }
      }
      let findings = try await database.verify().filter { $0.severity == .error }
      guard findings.isEmpty else { throw fault("\(owner): \(findings)") }
    }

    /// What acknowledged commits came to on the server.
    private func check(_ there: Contents, _ rejected: [Rejection]) throws {
      let ledger = ledger.withLock { $0 }
      func number(_ collection: String, _ id: String) -> Int {
        Int(there[collection]?[id]?["n"]?.integer ?? 0)
      }
      func rejections(_ path: String) -> Int {
        rejected.count { rejection in
          rejection.documents.contains { $0.path.segments.joined(separator: "/") == path }
        }
      }
      for rejection in rejected
      where rejection.documents.contains(where: { $0.path.segments[0] == "photos" }) {
        throw fault("a photograph was refused: \(rejection.reason)")
      }
      for name in ["a", "b"] {
        let (sure, unsure) = (ledger.added[name] ?? 0, ledger.unsure[name] ?? 0)
        let refused = rejections("counters/\(name)")
        guard refused == 0 else { throw fault("\(refused) increments of \(name) were refused") }
        // Google's servers may count an increment twice.
        let most = isGoogles ? Int.max : sure + unsure
        guard (sure...most).contains(number("counters", name)) else {
          throw fault(
            "\(sure) increments of \(name) were acknowledged, \(unsure) are unsure, and the sum is"
              + " \(number("counters", name))")
        }
      }
      // What was refused may have been committed there before, by a message whose answer was lost.
      if isGoogles { return }
      let counted = ledger.counted - rejections("tally/t")
      let most = counted + ledger.unsureCounted
      let number = number("tally", "t")
      let bumps = ledger.bumped...(ledger.bumped + ledger.unsureBumped)
      guard counted <= most, (counted...most).contains(number % 1_000),
        bumps.contains(number / 1_000)
      else {
        throw fault(
          "\(ledger.counted) transactions were acknowledged, \(ledger.unsureCounted) are unsure,"
            + " \(rejections("tally/t")) were refused, and the number is \(number)"
            + " with \(bumps) thousands; refused: \(rejected.map(\.reason))")
      }
      let lines = Set(Self.lines(there["merged"]?["k"] ?? [:]))
      let lost = ledger.lines.subtracting(ledger.removedLines).subtracting(lines)
      guard rejections("merged/k") == 0, lost.isEmpty else {
        throw fault(
          "\(rejections("merged/k")) lines were refused, and \(lost.sorted()) of"
            + " \(lines.sorted()) are lost; refused: \(rejected)")
      }
      for seat in 0..<3 {
        let count = (there["bookings"] ?? [:]).values.count { $0["seat"]?.integer == Int64(seat) }
        let refused = rejected.count { rejection in
          rejection.documents.contains { document in
            document.path.segments[0] == "bookings"
              && document.mine?["seat"] == .integer(Int64(seat))
          }
        }
        let won = (ledger.booked[seat] ?? 0) - refused
        guard count <= 1, (won...max(won, won + (ledger.unsureBooked[seat] ?? 0))).contains(count)
        else {
          throw fault("seat \(seat) is booked \(count) times, of \(won) that were not refused")
        }
      }
      let traces = (there["slots"] ?? [:]).filter { $0.key != "s" }.values
      let taken = traces.count { $0["takes"] == true } - traces.count { $0["takes"] == false }
      guard taken == (there["slots"]?["s"] == nil ? 0 : 1) else {
        throw fault("taken \(taken) times, and is there: \(there["slots"]?["s"] ?? [:])")
      }
      for name in Set(ledger.made.keys).union(ledger.unsureMade.keys) {
        let won = (ledger.made[name] ?? 0) - rejections("made/\(name)")
        let isThere = there["made"]?[name] != nil
        let range = won...(won + (ledger.unsureMade[name] ?? 0))
        guard range.contains(isThere ? 1 : 0) else {
          throw fault("of the creations of \(name) \(range) won, and there: \(isThere)")
        }
      }
    }
  }
#endif
