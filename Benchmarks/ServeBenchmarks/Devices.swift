// What devices of the Realtime Database see: the time from a put on one connection to a listener on
// another beside thousands of connections, and the time until a listener has a place with a hundred
// thousand children. The client speaks WebSocket by NIO and knows as much of the protocol as it
// needs to ask and to tell an answer from a push.

#if Server
  import BenchmarkKit
  import Foundation
  import Logging
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import NIOWebSocket
  import Ondol
  import OndolServer
  import Synchronization

  /// The measurements of the tree.
  struct TreeTrial: Sendable {
    private static let children = 100_000

    let turns: Int
    let connections: Int
    let directory: String

    func run(_ result: inout SuiteResult) async throws {
      let database = try await Database.open(at: directory + "/tree")
      var options = Server.Options()
      (options.firestorePort, options.databasePort) = (0, 0)
      options.logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
      let server = Server(database, options: options)
      let ready = AsyncStream.makeStream(of: Server.Addresses.self)
      let running = Task { try await server.run { _ = ready.continuation.yield($0) } }
      var addresses = ready.stream.makeAsyncIterator()
      guard let host = await addresses.next()?.database,
        let port = Int(host.split(separator: ":")[1])
      else { return }
      try await measureChildren(database, port, &result)
      try await measureDelivery(port, &result)
      server.shutDown()
      try await running.value
      try await database.close()
    }

    private func measureChildren(
      _ database: Database, _ port: Int, _ result: inout SuiteResult
    ) async throws {
      let place = database.tree.child("many")
      for start in stride(from: 0, to: Self.children, by: 10_000) {
        var values: [String: (any FieldContent)?] = [:]
        for number in start..<start + 10_000 {
          values["child-\(number)"] = Value.map(
            ["name": .string("name \(number)"), "count": .integer(Int64(number))])
        }
        try await place.updateChildValues(values, durability: .process)
      }
      var times: [Double] = []
      for _ in 0..<max(5, turns / 4) {
        let device = try await Device.connect(port: port)
        let start = ContinuousClock.now
        try await device.ask("q", "{\"p\":\"/many\",\"h\":\"\"}")
        times.append((ContinuousClock.now - start) / .milliseconds(1))
        let count = device.pushed.split(separator: "\"count\":").count - 1
        guard count == Self.children else {
          throw ChildFailure(description: "\(count) children came instead of \(Self.children)")
        }
        await device.close()
      }
      result.note(Workload.treeChildren, median(times))
    }

    private func measureDelivery(_ port: Int, _ result: inout SuiteResult) async throws {
      var devices: [Device] = []
      // A server accepts so many at once, and no more.
      for start in stride(from: 0, to: connections, by: 100) {
        devices += try await withThrowingTaskGroup(of: Device.self) { group in
          for number in start..<min(start + 100, connections) {
            group.addTask {
              let device = try await Device.connect(port: port)
              try await device.ask("q", "{\"p\":\"/rooms/\(number)\",\"h\":\"\"}")
              return device
            }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
      }
      let (moments, deliver) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
      for device in devices { device.observe { deliver.yield(.now) } }
      let writer = try await Device.connect(port: port)
      var arrivals = moments.makeAsyncIterator()
      var times: [Double] = []
      for turn in 0..<(10 * turns) {
        let room = turn * 7_919 % connections
        let start = ContinuousClock.now
        try await writer.ask("p", "{\"p\":\"/rooms/\(room)\",\"d\":{\"turn\":\(turn)}}")
        guard let moment = await arrivals.next() else { break }
        times.append((moment - start) / .milliseconds(1))
      }
      result.note(Workload.treeDelivery, percentile(0.95, ofSorted: times.sorted()))
      for device in devices + [writer] { await device.close() }
    }
  }

  /// A device's connection.
  private final class Device: Sendable {
    private struct State: Sendable {
      var asked: CheckedContinuation<Void, any Error>?
      var pushed = ""
      var observer: (@Sendable () -> Void)?
      /// Frames of the present message that have not come yet.
      var missing = 0
    }

    private let channel: any Channel
    private let state = Mutex(State())

    private init(_ channel: any Channel) {
      self.channel = channel
    }

    static func connect(port: Int) async throws -> Device {
      let upgraded = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .connect(host: "127.0.0.1", port: port) { channel in
          channel.eventLoop.makeCompletedFuture {
            var headers = HTTPHeaders()
            headers.add(name: "Host", value: "127.0.0.1:\(port)")
            headers.add(name: "Content-Length", value: "0")
            let upgrader = NIOTypedWebSocketClientUpgrader<(any Channel)?>(
              upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeSucceededFuture(channel)
              })
            return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
              configuration: .init(
                upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration(
                  upgradeRequestHead: HTTPRequestHead(
                    version: .http1_1, method: .GET, uri: "/.ws?v=5&ns=bench", headers: headers),
                  upgraders: [upgrader],
                  notUpgradingCompletionHandler: { $0.eventLoop.makeSucceededFuture(nil) })))
          }
        }
      guard let channel = try await upgraded.get() else {
        throw ChildFailure(description: "the server does not speak WebSocket")
      }
      let device = Device(channel)
      try await channel.eventLoop.submit {
        try channel.pipeline.syncOperations.addHandler(Frames(device: device))
      }.get()
      return device
    }

    /// All that was pushed, as text.
    var pushed: String { state.withLock { $0.pushed } }

    /// Calls `observer` at each push from now on.
    func observe(_ observer: @escaping @Sendable () -> Void) {
      state.withLock { $0.observer = observer }
    }

    /// Sends a request, and returns when it is answered. One at a time.
    func ask(_ action: String, _ body: String) async throws {
      let request = "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"\(action)\",\"b\":\(body)}}"
      try await withCheckedThrowingContinuation { continuation in
        state.withLock { $0.asked = continuation }
        let frame = WebSocketFrame(
          fin: true, opcode: .text, maskKey: .random(), data: ByteBuffer(string: request))
        channel.writeAndFlush(frame, promise: nil)
      }
    }

    func close() async { try? await channel.close().get() }

    fileprivate func take(_ text: String) {
      let (asked, observer) = state.withLock {
        state -> (CheckedContinuation<Void, any Error>?, (@Sendable () -> Void)?) in
        if state.missing == 0 {
          if let count = Int(text) {
            state.missing = count
            return (nil, nil)
          }
          if text.contains("\"r\":1") { return (state.asked.take(), nil) }
          // The server's greeting is no push.
          guard text.contains("\"a\":\"d\"") else { return (nil, nil) }
          state.pushed += text
          return (nil, state.observer)
        }
        state.missing -= 1
        state.pushed += text
        return (nil, state.missing == 0 ? state.observer : nil)
      }
      observer?()
      asked?.resume()
    }

    fileprivate func end() {
      let asked = state.withLock { $0.asked.take() }
      asked?.resume(throwing: ChildFailure(description: "the connection ended"))
    }
  }

  /// Gives a device its frames.
  private final class Frames: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame

    private let device: Device

    init(device: Device) {
      self.device = device
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let frame = unwrapInboundIn(data)
      guard frame.opcode == .text else { return }
      device.take(String(buffer: frame.data))
    }

    func channelInactive(context: ChannelHandlerContext) {
      device.end()
      context.fireChannelInactive()
    }
  }
#endif
