// Connections for reading, and for work without urgency. All databases of one process on one server
// share them. Otherwise a process with a hundred open databases would have four hundred. For each
// connection and each database, its existence is verified once.

internal import OndolEngine

/// The connections to one server.
final class ReaderWires: Sendable {
  let turnstile: Turnstile<Wire>

  /// Connections are made when needed. The connection that was returned last is used first.
  private static let count = 8

  private struct Reference: Sendable {
    weak let wires: ReaderWires?
  }

  private static let known = Guarded<[String: Reference]>([:])

  private init() {
    turnstile = Turnstile((0..<Self.count).map { _ in Wire() })
  }

  /// The connections that all databases of an address share, as long as they are in use. A
  /// different user or setting makes a different address.
  static func shared(_ address: PostgresAddress) -> ReaderWires {
    let key = address.settings.map { "\($0.name)=\($0.value)" }.joined(separator: "\0")
    return known.withLock { known in
      if let wires = known[key]?.wires { return wires }
      known = known.filter { $0.value.wires != nil }
      let wires = ReaderWires()
      known[key] = Reference(wires: wires)
      return wires
    }
  }
}

/// One database's use of them.
struct Readers: Sendable {
  private let settings: LinkSettings
  private let wires: ReaderWires

  init(_ settings: LinkSettings) {
    self.settings = settings
    wires = .shared(settings.address)
  }

  /// Lends a link to `body`. Blocks until one is free.
  func withOne<R, E: Error>(_ body: (Link) throws(E) -> R) throws(E) -> R {
    try wires.turnstile.withOne { (wire) throws(E) in try body(Link(settings, over: wire)) }
  }

  /// Lends a link to `body` if one is free.
  func withOneAtOnce<R>(_ body: (Link) -> R?) -> R? {
    wires.turnstile.withOneAtOnce { wire in body(Link(settings, over: wire)) }
  }
}
