// Empty calls of the same stack: gRPC's own cost, for comparison with the server's calls. The
// messages are those of the calls that they are compared with. One call is not empty: it commits as
// the embedded loop does, to show the cost of waiting for a disk in the middle of a call.

#if Server
  import GRPCCore
  import GRPCProtobuf
  import Ondol
  import OndolWire

  /// Answers every call with one document, and keeps streams open without sending anything.
  struct EchoService: RegistrableRPCService {
    static let echo = MethodDescriptor(
      service: ServiceDescriptor(fullyQualifiedService: "bench.Echo"), method: "Echo", type: .unary)
    static let commit = MethodDescriptor(
      service: ServiceDescriptor(fullyQualifiedService: "bench.Echo"), method: "Commit",
      type: .unary)
    static let hold = MethodDescriptor(
      service: ServiceDescriptor(fullyQualifiedService: "bench.Echo"), method: "Hold",
      type: .bidirectionalStreaming)

    let document: WireDocument
    /// Commits a document with a number; does nothing if it is nil.
    let write: (@Sendable (Int) async throws -> Void)?

    func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
      router.registerHandler(
        forMethod: Self.echo, deserializer: ProtobufDeserializer<WireGetDocumentRequest>(),
        serializer: ProtobufSerializer<WireDocument>()
      ) { request, _ in
        _ = try await ServerRequest(stream: request)
        return StreamingServerResponse(single: ServerResponse(message: document))
      }
      router.registerHandler(
        forMethod: Self.commit, deserializer: ProtobufDeserializer<WireCommitRequest>(),
        serializer: ProtobufSerializer<WireCommitResponse>()
      ) { request, _ in
        let request = try await ServerRequest(stream: request)
        try await write?(Int(request.message.writes[0].update.fields[0].value.integerValue))
        return StreamingServerResponse(single: ServerResponse(message: WireCommitResponse()))
      }
      router.registerHandler(
        forMethod: Self.hold, deserializer: ProtobufDeserializer<WireListenRequest>(),
        serializer: ProtobufSerializer<WireListenResponse>()
      ) { request, _ in
        StreamingServerResponse { writer in
          for try await _ in request.messages { try await writer.write(WireListenResponse()) }
          return [:]
        }
      }
    }
  }
#endif
