// The table of open files compared with a list: the least recently used one is closed, held ones
// stay open, and when the system has no descriptor left some of the table's make room.

import Synchronization
import Testing

@testable import OndolEngine

/// Counts open files and refuses more than a limit.
private final class Descriptors: Sendable {
  let limit: Int
  private let count = Atomic(0)

  init(limit: Int = .max) { self.limit = limit }

  var open: Int { count.load(ordering: .relaxed) }

  func make(_ name: String) throws(EngineError) -> any File {
    guard open < limit else {
      throw .io(operation: "openat", file: name, offset: nil, errno: 24)
    }
    count.add(1, ordering: .relaxed)
    return CountedFile(name, self)
  }

  fileprivate func close() { count.subtract(1, ordering: .relaxed) }
}

private final class CountedFile: File {
  let name: String
  private let descriptors: Descriptors

  init(_ name: String, _ descriptors: Descriptors) {
    self.name = name
    self.descriptors = descriptors
  }

  deinit { descriptors.close() }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] { [] }
  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {}
  func sync() throws(EngineError) {}
  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {}
  func size() throws(EngineError) -> UInt64 { 0 }
}

@Suite struct OpenFileTableTests {
  @Test(arguments: 1...9)
  func `the file that was used longest ago is closed for another`(_ limit: Int) throws {
    let seed = UInt64(limit)
    var random = SeededRandom(seed: seed)
    let descriptors = Descriptors()
    let table = OpenFileTable(limit: limit)
    let tickets = (0..<20).map { _ in table.makeTicket() }
    // Open files, the newest last.
    var model: [Int] = []
    for step in 0..<2_000 {
      let ticket = try #require(tickets.randomElement(using: &random))
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        table.forget(ticket)
        model.removeAll { $0 == ticket }
      case 1:
        let isOpen = table.current(ticket) != nil
        #expect(isOpen == model.contains(ticket), "SEED=\(seed), step \(step)")
        if isOpen { model = model.filter { $0 != ticket } + [ticket] }
      default:
        var isOpened = false
        _ = try table.file(ticket) { () throws(EngineError) in
          isOpened = true
          return try descriptors.make("\(ticket)")
        }
        #expect(isOpened != model.contains(ticket), "SEED=\(seed), step \(step)")
        model = model.filter { $0 != ticket } + [ticket]
        if model.count > limit { model.removeFirst() }
      }
      #expect(table.count == model.count, "SEED=\(seed), step \(step)")
      #expect(descriptors.open == model.count, "SEED=\(seed), step \(step)")
    }
  }

  @Test func `a file that is being read stays open until the read is done`() throws {
    let descriptors = Descriptors()
    let table = OpenFileTable(limit: 1)
    let (first, second) = (table.makeTicket(), table.makeTicket())
    let reading = try table.file(first) { () throws(EngineError) in try descriptors.make("a") }
    _ = try table.file(second) { () throws(EngineError) in try descriptors.make("b") }
    #expect(table.current(first) == nil)
    withExtendedLifetime(reading) { #expect(descriptors.open == 2) }
  }

  @Test func `held files stay while others come and go`() throws {
    let descriptors = Descriptors()
    let table = OpenFileTable(limit: 8)
    #expect(table.heldRoom == 6)
    let held = (0..<6).map { _ in table.makeTicket() }
    for ticket in held {
      _ = try table.file(ticket, isHeld: true) { () throws(EngineError) in
        try descriptors.make("held")
      }
    }
    #expect(table.heldRoom == 0)
    for _ in 0..<40 {
      _ = try table.file(table.makeTicket()) { () throws(EngineError) in
        try descriptors.make("other")
      }
    }
    #expect(held.allSatisfy { table.current($0) != nil })
    #expect(descriptors.open == 8)
  }

  @Test(arguments: 1...12)
  func `when no descriptor is left some of ours make room`(_ available: Int) throws {
    let descriptors = Descriptors(limit: available)
    let table = OpenFileTable(limit: 100)
    for number in 0..<200 {
      _ = try table.file(table.makeTicket(), isHeld: number % 3 == 0) { () throws(EngineError) in
        try descriptors.make("\(number)")
      }
      #expect(descriptors.open <= available)
    }
    // Another user of descriptors is served as well.
    let other = try table.withDescriptors { () throws(EngineError) in
      try descriptors.make("other")
    }
    withExtendedLifetime(other) {}
  }

  @Test func `with nothing to close the lack of descriptors is reported`() throws {
    let descriptors = Descriptors(limit: 0)
    let table = OpenFileTable(limit: 4)
    #expect(throws: EngineError.self) {
      _ = try table.file(table.makeTicket()) { () throws(EngineError) in
        try descriptors.make("a")
      }
    }
  }

  @Test func `threads that open and read the same files agree`() async throws {
    let descriptors = Descriptors()
    let table = OpenFileTable(limit: 3)
    let tickets = (0..<12).map { _ in table.makeTicket() }
    let wrong = Tally()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<6 {
        group.addTask { @concurrent in
          var random = SeededRandom(seed: UInt64(task))
          for _ in 0..<2_000 {
            guard let ticket = tickets.randomElement(using: &random) else { return }
            let file = try? table.file(ticket) { () throws(EngineError) in
              try descriptors.make("\(ticket)")
            }
            if file?.name != "\(ticket)" { wrong.increase() }
          }
        }
      }
    }
    #expect(wrong.value == 0)
    #expect(table.count == 3)
    #expect(descriptors.open == 3)
  }
}
