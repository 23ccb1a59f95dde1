// A line between a device and a server that counts the bytes of both directions.

#if Server && Sync
  import NIOCore
  import NIOPosix
  import Synchronization

  /// Forwards connections.
  final class CountingLine: Sendable {
    private typealias Channel = NIOAsyncChannel<ByteBuffer, ByteBuffer>

    let port: Int
    private let task: Task<Void, any Error>
    private let count: Count

    private final class Count: Sendable {
      let bytes = Atomic(0)
    }

    private init(_ port: Int, _ count: Count, _ task: Task<Void, any Error>) {
      self.port = port
      self.count = count
      self.task = task
    }

    /// The bytes so far.
    var bytes: Int { count.bytes.load(ordering: .relaxed) }

    static func begin(to target: Int) async throws -> CountingLine {
      let group = MultiThreadedEventLoopGroup.singleton
      let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0) {
        channel in
        channel.eventLoop.makeCompletedFuture {
          try Channel(wrappingChannelSynchronously: channel)
        }
      }
      let count = Count()
      let task = Task {
        try await listener.executeThenClose { connections in
          try await withThrowingDiscardingTaskGroup { tasks in
            for try await near in connections {
              tasks.addTask {
                let far = try? await ClientBootstrap(group: group).connect(
                  host: "127.0.0.1", port: target
                ) { channel in
                  channel.eventLoop.makeCompletedFuture {
                    try Channel(wrappingChannelSynchronously: channel)
                  }
                }
                if let far { try? await join(near, far, count) }
              }
            }
          }
        }
      }
      return CountingLine(listener.channel.localAddress?.port ?? 0, count, task)
    }

    func end() async {
      task.cancel()
      _ = await task.result
    }

    private static func join(_ near: Channel, _ far: Channel, _ count: Count) async throws {
      try await near.executeThenClose { fromNear, toNear in
        try await far.executeThenClose { fromFar, toFar in
          try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await pump(fromNear, toFar, count) }
            tasks.addTask { try await pump(fromFar, toNear, count) }
            try await tasks.next()
            tasks.cancelAll()
          }
        }
      }
    }

    private static func pump(
      _ source: NIOAsyncChannelInboundStream<ByteBuffer>,
      _ target: NIOAsyncChannelOutboundWriter<ByteBuffer>, _ count: Count
    ) async throws {
      for try await buffer in source {
        count.bytes.add(buffer.readableBytes, ordering: .relaxed)
        try await target.write(buffer)
      }
    }
  }
#endif
