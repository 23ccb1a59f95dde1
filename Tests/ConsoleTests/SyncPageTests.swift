// The console's page of synchronisation: it is there for a database that is synchronised, and
// changes nothing where nothing may be changed.

import Ondol
import OndolConsole
import Synchronization
import Testing

@Suite struct `The console's page of synchronisation` {
  /// A synchronisation with one refusal.
  private final class Shown: ConsoleSyncView {
    private let refused = Mutex<[String]>(["one"])
    let retried = Mutex<[String]>([])

    func state() async throws -> Value {
      ["isOnline": true, "rejections": .array(refused.withLock { $0.map(Value.string) })]
    }

    private func take(_ id: String) throws {
      try refused.withLock { refused in
        guard let place = refused.firstIndex(of: id) else {
          throw DatabaseError(.notFound, "there is no such refusal")
        }
        refused.remove(at: place)
      }
    }

    func retry(_ id: String) async throws {
      try take(id)
      retried.withLock { $0.append(id) }
    }

    func dismiss(_ id: String) async throws { try take(id) }
  }

  @Test func `It shows what waits and what was refused, to put again or to forget`() async throws {
    let shown = Shown()
    let bench = ConsoleBench(try await Database.inMemory(), sync: shown)
    #expect(try await bench.ask("GET", "sync").text.contains("\"one\""))
    #expect(try await bench.ask("GET", "database").text.contains("[[\"sync\",\"Sync\"]]"))
    #expect(try await bench.ask("GET", "/sync", isAPI: false).status == 200)
    #expect(try await bench.ask("GET", "/assets/sync.js", isAPI: false).status == 200)
    #expect(try await bench.ask("GET", "/assets/server.css", isAPI: false).status == 200)
    #expect(try await bench.ask("GET", "/assets/server.js", isAPI: false).status == 404)
    #expect(try await bench.status("POST", "sync/retry", #"{"id":"two"}"#) == 404)
    #expect(try await bench.status("POST", "sync/retry", "{}") == 400)
    #expect(try await bench.status("POST", "sync/retry", #"{"id":"one"}"#) == 200)
    #expect(shown.retried.withLock { $0 } == ["one"])
    #expect(try await bench.status("POST", "sync/dismiss", #"{"id":"one"}"#) == 404)
    #expect(try await bench.status("POST", "sync/other", #"{"id":"one"}"#) == 404)
    #expect(try await bench.status("GET", "sync?x=1") == 400)
  }

  @Test func `A console that only reads changes nothing`() async throws {
    let bench = ConsoleBench(try await Database.inMemory(), .read, sync: Shown())
    #expect(try await bench.status("GET", "sync") == 200)
    #expect(try await bench.status("POST", "sync/retry", #"{"id":"one"}"#) == 403)
    #expect(try await bench.status("POST", "sync/dismiss", #"{"id":"one"}"#) == 403)
  }

  @Test func `Without a synchronisation there is no page`() async throws {
    let bench = try await ConsoleBench()
    #expect(try await bench.status("GET", "sync") == 404)
    #expect(try await bench.ask("GET", "/sync", isAPI: false).status == 404)
    #expect(try await bench.ask("GET", "/assets/sync.js", isAPI: false).status == 404)
    #expect(try await !bench.ask("GET", "database").text.contains("[[\"sync\",\"Sync\"]]"))
  }
}
