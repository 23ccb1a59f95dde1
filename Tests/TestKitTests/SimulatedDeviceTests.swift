// The test kit's promises to apps, with only the public calls of both products: a simulated device
// loses exactly what was not synced, fails and fills up on command, and repeats itself by its seed.

import Ondol
import OndolTestKit
import Testing

@Suite struct SimulatedDeviceTests {
  private static let path = "app.ondol"

  /// Writes counters one after another, each with the previous one's number. Returns how many were
  /// acknowledged before an error.
  private func count(
    to last: Int, in database: Database, durability: Durability? = nil
  ) async -> Int {
    for number in 1...last {
      do {
        try await database.document("counters/\(number)")
          .setData(["number": number], durability: durability)
      } catch {
        return number - 1
      }
    }
    return last
  }

  private func counters(in database: Database) async throws -> [Int] {
    try await database.collection("counters").order(by: "number").getDocuments().documents
      .compactMap { $0["number"] as Int? }
  }

  @Test(arguments: Seeds.first(200))
  func `No write with power durability is lost in a power cut`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let device = SimulatedDevice(seed: seed)
    let database = try await Database.open(at: Self.path, on: device)
    device.powerCut(after: Int.random(in: 0..<40, using: &random))
    let acknowledged = await count(to: 20, in: database)
    device.powerCut()

    let next = try await Database.open(at: Self.path, on: device)
    let found = try await counters(in: next)
    // The write during the power cut may exist or not.
    #expect(found == Array(1...20).prefix(found.count).map { $0 })
    #expect(found.count >= acknowledged && found.count <= acknowledged + 1)
    #expect(try await next.verify().isEmpty)
    try await next.close()
  }

  @Test func `Writes with process durability are lost in some power cuts and in no kill`()
    async throws
  {
    var lost = 0
    var kept = 0
    for seed in Seeds.first(100) {
      let device = SimulatedDevice(seed: seed)
      let database = try await Database.open(at: Self.path, on: device)
      #expect(await count(to: 5, in: database, durability: .process) == 5)
      device.kill()
      let afterKill = try await Database.open(at: Self.path, on: device)
      #expect(try await counters(in: afterKill) == [1, 2, 3, 4, 5], "\(device)")

      for number in 6...8 {
        try await afterKill.document("counters/\(number)")
          .setData(["number": number], durability: .process)
      }
      device.powerCut()
      let afterCut = try await Database.open(at: Self.path, on: device)
      let found = try await counters(in: afterCut)
      #expect(found == Array(1...8).prefix(found.count).map { $0 }, "\(device)")
      if found.count < 8 { lost += 1 } else { kept += 1 }
      try await afterCut.close()
    }
    #expect(lost > 0 && kept > 0, "\(lost) lost a write, \(kept) kept all")
  }

  @Test func `A synchronized database loses nothing, whatever it was written with`() async throws {
    try await Seeds.forEach(50) { seed in
      let device = SimulatedDevice(seed: seed)
      let database = try await Database.open(
        at: Self.path, options: .init(durability: .memory), on: device)
      #expect(await count(to: 5, in: database) == 5)
      try await database.synchronize()
      device.powerCut()
      let next = try await Database.open(at: Self.path, on: device)
      #expect(try await counters(in: next) == [1, 2, 3, 4, 5], "\(device)")
      try await next.close()
    }
  }

  @Test func `A picture and the document that names it survive together or not at all`()
    async throws
  {
    let probe = SimulatedDevice()
    let first = try await Database.open(at: Self.path, on: probe)
    let before = probe.operations
    try await putLamp(in: first)
    let needed = probe.operations - before
    try await first.close()

    for cut in 0...needed {
      let device = SimulatedDevice(seed: UInt64(cut))
      let database = try await Database.open(at: Self.path, on: device)
      device.powerCut(after: cut)
      let isPut = (try? await putLamp(in: database)) != nil
      device.powerCut()
      let next = try await Database.open(at: Self.path, on: device)
      let document = try await next.document("items/lamp").getDocument()
      let images = try await next.storage.reference(withPath: "images").listAll().items
      #expect(document.exists || !isPut, "cut \(cut)")
      #expect(images.count == (document.exists ? 1 : 0), "cut \(cut)")
      if document.exists { #expect(try await images[0].data(maxSize: 100).count == 4) }
      try await next.close()
    }
  }

  private func putLamp(in database: Database) async throws {
    try await database.runTransaction { transaction in
      try await transaction.putData([137, 80, 78, 71] as [UInt8], at: "images/lamp.png")
      try transaction.setData(
        ["imagePath": "images/lamp.png"], forDocument: database.document("items/lamp"))
    }
  }

  @Test func `Calls throw while the power is out, and the next opening brings it back`()
    async throws
  {
    let device = SimulatedDevice()
    let database = try await Database.open(at: Self.path, on: device)
    device.powerCut()
    #expect(!device.hasPower)
    await #expect(throws: DatabaseError.self) {
      try await database.document("a/b").setData(["n": 1])
    }
    let next = try await Database.open(at: Self.path, on: device)
    #expect(device.hasPower)
    try await next.document("a/b").setData(["n": 1])
    #expect(try await next.document("a/b").getDocument()["n"] as Int? == 1)
    try await next.close()
  }

  @Test func `A failed sync ends writing until the database is reopened`() async throws {
    let device = SimulatedDevice()
    let database = try await Database.open(at: Self.path, on: device)
    try await database.document("a/1").setData(["n": 1])
    device.fail(.sync)
    for id in ["2", "3"] {
      let error = await #expect(throws: DatabaseError.self) {
        try await database.document("a/\(id)").setData(["n": 2])
      }
      #expect(error?.code == .unavailable)
    }
    #expect(try await database.document("a/1").getDocument().exists)
    try? await database.close()
    let next = try await Database.open(at: Self.path, on: device)
    try await next.document("a/3").setData(["n": 3])
    #expect(try await next.document("a/1").getDocument().exists)
    try await next.close()
  }

  @Test func `A write that fails for good fails every time until the device is repaired`()
    async throws
  {
    let device = SimulatedDevice()
    device.fail(.write, forGood: true)
    for _ in 1...2 {
      let error = await #expect(throws: DatabaseError.self) {
        _ = try await Database.open(at: Self.path, on: device)
      }
      #expect(error?.code == .internal)
    }
    device.repair()
    let database = try await Database.open(at: Self.path, on: device)
    try await database.close()
  }

  @Test func `Failed reads throw, and the next one after a repair reads again`() async throws {
    let device = SimulatedDevice()
    var database = try await Database.open(at: Self.path, on: device)
    #expect(await count(to: 100, in: database) == 100)
    try await database.compact()
    try await database.close()
    database = try await Database.open(at: Self.path, on: device)
    // Permanently, because background reads would otherwise consume a single failure.
    device.fail(.read, forGood: true)
    await #expect(throws: DatabaseError.self) { _ = try await counters(in: database) }
    device.repair()
    #expect(try await counters(in: database).count == 100)
    try await database.close()
  }

  @Test func `A full device refuses writes, accepts deletes, and continues when there is room`()
    async throws
  {
    let device = SimulatedDevice()
    let database = try await Database.open(at: Self.path, on: device)
    #expect(await count(to: 10, in: database) == 10)
    device.capacity = device.usedBytes
    let photo = database.storage.reference(withPath: "photo.jpg")
    let bytes = (0..<(4 << 20)).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }
    let error = await #expect(throws: DatabaseError.self) { try await photo.putData(bytes) }
    #expect(error?.code == .resourceExhausted)
    try await database.document("counters/1").delete()
    device.capacity = nil
    try await photo.putData(bytes)
    #expect(try await counters(in: database) == Array(2...10))
    try await database.close()
  }

  @Test func `The same seed repeats everything`() async throws {
    func life() async throws -> [String] {
      let device = SimulatedDevice(seed: 42)
      let database = try await Database.open(
        at: Self.path, options: .init(durability: .process), on: device)
      var seen: [String] = []
      for number in 1...20 {
        let reference = try await database.collection("a").addDocument(data: ["number": number])
        seen.append(reference.documentID)
      }
      device.powerCut()
      let next = try await Database.open(at: Self.path, on: device)
      for document in try await next.collection("a").getDocuments().documents {
        seen.append("\(document.documentID) \(document.data())")
      }
      try await next.close()
      return seen
    }
    #expect(try await life() == life())
  }
}
