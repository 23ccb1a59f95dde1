// Listens only on this machine's own address, and limits the connections' number and time. The
// sockets come from a library.

import Foundation
import Ondol
import OndolEngine
import OndolPlatform

#if Console
  import FlyingSocks

  /// The server.
  final class ConsoleServer: Sendable {
    /// The largest number of connections. Beyond it, the server closes the connection that has been
    /// idle longest.
    static let mostConnections = 100

    let port: Int
    private let handler: ConsoleHandler
    private let connections = Guarded(Connections())
    private let work = Guarded<[Task<Void, Never>]>([])

    private struct Connections: Sendable {
      var all: [Int: (task: Task<Void, Never>, patience: Patience)] = [:]
      var next = 0
      var isOver = false
    }

    private init(_ handler: ConsoleHandler, port: Int) {
      self.handler = handler
      self.port = port
    }

    /// Listens on 127.0.0.1.
    static func start(_ handler: ConsoleHandler, port: Int) async throws -> ConsoleServer {
      guard let number = UInt16(exactly: port) else {
        throw DatabaseError(.invalidArgument, "a port must be from 0 to 65535, not \(port)")
      }
      do {
        let listener = try listen(on: number)
        guard case .ip4(_, let actual) = try listener.sockname() else {
          throw DatabaseError(.unavailable, "cannot find out where the console listens")
        }
        let server = ConsoleServer(handler, port: Int(actual))
        try await server.serve(listener, SocketPool<Poll>.make(maxEvents: 64))
        return server
      } catch let error as SocketError {
        throw DatabaseError(.unavailable, "cannot listen on port \(port): \(error)")
      }
    }

    private static func listen(on port: UInt16) throws -> Socket {
      let socket = try Socket(domain: Int32(AF_INET), type: .stream)
      do {
        try socket.setValue(true, for: .localAddressReuse)
        #if canImport(Darwin)
          try socket.setValue(true, for: .noSIGPIPE)
        #endif
        try socket.bind(to: .inet(ip4: "127.0.0.1", port: port))
      } catch {
        try? socket.close()
        throw error
      }
      try socket.listen()
      return socket
    }

    private func serve(_ listener: Socket, _ pool: some AsyncSocketPool) async throws {
      let socket: AsyncSocket
      do {
        try await pool.prepare()
        socket = try AsyncSocket(socket: listener, pool: pool)
      } catch {
        try? listener.close()
        throw error
      }
      let tasks: [Task<Void, Never>] = [
        Task { await self.welcome(socket) }, Task { await self.watch() },
        Task { _ = try? await pool.run() },
      ]
      work.withLock { $0 = tasks }
    }

    /// Accepts connections, whatever happens to one of them. A process without a free descriptor
    /// soon has one again.
    private func welcome(_ listener: AsyncSocket) async {
      while !Task.isCancelled {
        do {
          take(try await listener.accept())
        } catch {
          makeRoom()
          try? await Task.sleep(for: .milliseconds(20))
        }
      }
      try? listener.close()
    }

    private func take(_ socket: AsyncSocket) {
      // The messages are short, and a client waits for each.
      try? socket.socket.setValue(
        true, for: BoolSocketOption(level: Int32(IPPROTO_TCP), name: TCP_NODELAY))
      let patience = Patience()
      patience.idle(.seconds(60))
      if connections.withLock({ $0.all.count >= Self.mostConnections }) { makeRoom() }
      let isTaken = connections.withLock { connections in
        guard !connections.isOver, connections.all.count < Self.mostConnections else {
          return false
        }
        connections.next += 1
        let number = connections.next
        let task = Task {
          await Connection(socket, self.handler, patience).serve()
          self.connections.withLock { _ = $0.all.removeValue(forKey: number) }
        }
        connections.all[number] = (task, patience)
        return true
      }
      if !isTaken { try? socket.close() }
    }

    /// Closes the connection that has been idle longest.
    private func makeRoom() {
      let task = connections.withLock { connections -> Task<Void, Never>? in
        let idle = connections.all.compactMap { number, one in
          one.patience.idleSince.map { (since: $0, number: number) }
        }
        guard let oldest = idle.min(by: { $0.since < $1.since }) else { return nil }
        return connections.all.removeValue(forKey: oldest.number)?.task
      }
      task?.cancel()
    }

    /// Closes the connections that take too long.
    private func watch() async {
      while !Task.isCancelled {
        try? await Task.sleep(for: .seconds(1))
        let now = ContinuousClock.now
        let late = connections.withLock { connections in
          connections.all.values.filter { $0.patience.isOver(now) }.map(\.task)
        }
        for task in late { task.cancel() }
      }
    }

    func stop() async {
      let tasks = work.withLock { $0 }
      tasks.first?.cancel()
      await tasks.first?.value
      let open = connections.withLock { connections in
        connections.isOver = true
        return connections.all.values.map(\.task)
      }
      for task in open { task.cancel() }
      // A response that is under way gets time to finish.
      for _ in 0..<100 where !connections.withLock({ $0.all.isEmpty }) {
        try? await Task.sleep(for: .milliseconds(10))
      }
      for task in tasks { task.cancel() }
    }
  }
#else
  /// There is no server, because the package was built without its trait.
  final class ConsoleServer: Sendable {
    let port = 0

    static func start(_ handler: ConsoleHandler, port: Int) async throws -> ConsoleServer {
      handler.close()
      throw DatabaseError(
        .unimplemented,
        "this was built without the console: build with the package's trait Console",
        suggestion: "swift build --traits Console, or traits: [\"Console\"] where you depend on it")
    }

    func stop() async {}
  }
#endif
