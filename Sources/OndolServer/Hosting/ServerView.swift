// What a server does, for those who answer for it: which calls are open and what they listen to,
// how many calls there are of each kind, and what was refused lately. A program that wants to look
// makes a view and gives it to the server's options. Without one, calls cost nothing more.

#if Server
  import Foundation
  package import Ondol
  import OndolJSON
  import Synchronization

  /// Watches one server.
  package final class ServerView: Sendable {
    /// The number of refusals that are kept.
    private static let mostEvents = 200
    /// The number of open calls, and of what one listens to, that are shown.
    private static let mostCalls = 200
    private static let mostListeners = 50

    let metrics = CallMetrics()
    private let calls = Mutex<[ObjectIdentifier: OpenCall]>([:])
    private let events = Mutex<[AuditEvent]>([])

    package init() {}

    func begin(_ call: OpenCall) { calls.withLock { $0[ObjectIdentifier(call)] = call } }

    func end(_ call: OpenCall) {
      _ = calls.withLock { $0.removeValue(forKey: ObjectIdentifier(call)) }
    }

    /// Keeps an event.
    func note(_ event: AuditEvent) {
      events.withLock { events in
        if events.count >= Self.mostEvents { events.removeFirst() }
        events.append(event)
      }
    }

    /// Everything, as JSON: counts since the start, open calls with the oldest first, and events
    /// with the newest first.
    ///
    /// - Complexity: O(n log n) in open calls.
    package var state: Value {
      let open = calls.withLock { Array($0.values) }.sorted { $0.start < $1.start }
      let events = events.withLock { $0 }.reversed()
      let time = Int64(Date().timeIntervalSince1970 * 1_000_000)
      return [
        "time": .string("\(time)"), "openCalls": .integer(Int64(open.count)),
        "listeners": .integer(Int64(open.reduce(0) { $0 + $1.listeners.count })),
        "calls": .array(open.prefix(Self.mostCalls).map(Self.shown)),
        "methods": .array(metrics.counts.map(Self.shown)),
        "events": .array(events.map(Self.shown)),
      ]
    }

    private static func shown(_ call: OpenCall) -> Value {
      let listeners = call.listeners
      var fields: [String: Value] = [
        "method": .string(call.method), "received": .integer(Int64(call.received)),
        "sent": .integer(Int64(call.sent)),
        "seconds": .double((ContinuousClock.now - call.start) / .seconds(1)),
        "caller": .string(call.shownCaller.name),
        "listeners": .array(listeners.prefix(mostListeners).map { .string($0) }),
        "listenerCount": .integer(Int64(listeners.count)),
      ]
      fields["address"] = call.address.map { .string("\($0)") }
      return .map(fields)
    }

    private static func shown(_ counts: CallCounts) -> Value {
      [
        "method": .string(counts.method), "open": .integer(Int64(counts.open)),
        "ended": .map(counts.ended.mapValues { .integer(Int64($0)) }),
        "seconds": .double(counts.seconds), "received": .integer(Int64(counts.received)),
        "sent": .integer(Int64(counts.sent)),
      ]
    }

    private static func shown(_ event: AuditEvent) -> Value {
      (try? JSONReader.read(Array(event.line.utf8), .plain)) ?? .null
    }
  }
#endif
