// A client in Swift. It makes calls by their descriptors, so it needs no generated client code.

#if Server
  import GRPCCore
  import GRPCNIOTransportHTTP2Posix
  import GRPCProtobuf
  import OndolWire
  import SwiftProtobuf

  /// Calls a server on this machine.
  struct Client: Sendable {
    typealias Transport = HTTP2ClientTransport.Posix

    let calls: GRPCClient<Transport>
    /// What every call has, such as a token.
    var metadata: Metadata = [:]

    /// Runs `body` with a client of the server on a port.
    static func with<Result: Sendable>(
      port: Int, _ body: @escaping @Sendable (Client) async throws -> Result
    ) async throws -> Result {
      let transport = try Transport(
        target: .ipv4(address: "127.0.0.1", port: port), transportSecurity: .plaintext)
      return try await withGRPCClient(transport: transport) { calls in
        try await body(Client(calls: calls))
      }
    }

    func call<Input: Message, Output: Message>(
      _ method: MethodDescriptor, _ request: Input, as output: Output.Type = Output.self
    ) async throws -> Output {
      try await calls.unary(
        request: ClientRequest(message: request, metadata: metadata), descriptor: method,
        serializer: ProtobufSerializer<Input>(), deserializer: ProtobufDeserializer<Output>(),
        options: .defaults
      ) { response in try response.message }
    }

    /// Runs a query; returns the number of its documents.
    func count(_ request: WireRunQueryRequest) async throws -> Int {
      try await calls.serverStreaming(
        request: ClientRequest(message: request, metadata: metadata),
        descriptor: WireFirestore.Method.RunQuery.descriptor,
        serializer: ProtobufSerializer<WireRunQueryRequest>(),
        deserializer: ProtobufDeserializer<WireRunQueryResponse>(), options: .defaults
      ) { response in
        var count = 0
        for try await message in response.messages where message.hasDocument { count += 1 }
        return count
      }
    }

    /// Opens a stream, sends one message, and passes the answers to `body` until it returns false.
    func stream<Input: Message, Output: Message>(
      _ method: MethodDescriptor, _ request: Input,
      _ body: @escaping @Sendable (Output) async -> Bool
    ) async throws {
      try await calls.bidirectionalStreaming(
        request: StreamingClientRequest { writer in
          try await writer.write(request)
          // The client's side stays open as long as the stream does.
          try? await Task.sleep(for: .seconds(86_400))
        }, descriptor: method, serializer: ProtobufSerializer<Input>(),
        deserializer: ProtobufDeserializer<Output>(), options: .defaults
      ) { response in
        for try await message in response.messages where !(await body(message)) { return }
      }
    }
  }
#endif
