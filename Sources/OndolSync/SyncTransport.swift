// The streams between a device and its server. The state machines above know messages and nothing
// of connections: GRPCTransport brings them over a network, and tests over a simulated one.

#if Sync
  package import OndolWire

  /// Makes the two streams of Firestore's protocol that a device needs, and calls of storage.
  package protocol SyncTransport: Sendable {
    /// Listens until the server or the caller ends the stream.
    ///
    /// - Parameters:
    ///   - credential: the bearer's token; nil for nobody's.
    ///   - requests: what the device sends.
    ///   - receive: takes one message at a time. While it works, the server is not asked for more.
    /// - Throws: `RPCError`, and what `receive` throws.
    func listen(
      _ credential: String?, _ requests: AsyncStream<WireListenRequest>,
      _ receive: @escaping @Sendable (WireListenResponse) async throws -> Void
    ) async throws

    /// Writes until the server or the caller ends the stream; otherwise as `listen`.
    func write(
      _ credential: String?, _ requests: AsyncStream<WireWriteRequest>,
      _ receive: @escaping @Sendable (WireWriteResponse) async throws -> Void
    ) async throws

    /// Makes a request to the server's storage.
    ///
    /// - Throws: `DatabaseError.endlessAnswer` for an answer of more bytes than the request wants,
    ///   and the errors of connections.
    func call(_ credential: String?, _ request: StorageRequest) async throws -> StorageAnswer

    /// Begins again with a new connection. To be called while no stream is open: a connection that
    /// has failed pauses before it tries again.
    func renew()

    /// Ends all connections, for good.
    func close() async
  }

  extension SyncTransport {
    package func renew() {}
  }
#endif
