// Reports whether the server serves, by gRPC's health protocol.

#if Server
  import GRPCCore
  import OndolWire
  import SwiftProtobuf

  struct HealthService: WireHealth.SimpleServiceProtocol {
    let drain: Drain
    /// The known services. The empty name is the whole server.
    let services: Set<String>

    func check(
      request: WireHealthCheckRequest, context: ServerContext
    ) async throws -> WireHealthCheckResponse {
      guard request.service.isEmpty || services.contains(request.service) else {
        throw RPCError(code: .notFound, message: "there is no service \(request.service)")
      }
      return .with { $0.status = drain.hasBegun ? .notServing : .serving }
    }

    func watch(
      request: WireHealthCheckRequest, response: RPCWriter<WireHealthCheckResponse>,
      context: ServerContext
    ) async throws {
      let isKnown = request.service.isEmpty || services.contains(request.service)
      guard isKnown else { return try await response.write(.with { $0.status = .serviceUnknown }) }
      try await response.write(.with { $0.status = drain.hasBegun ? .notServing : .serving })
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await drain.wait() }
        group.addTask { try? await context.cancellation.cancelled }
        // The server shuts down, or the client has disconnected.
        await group.next()
        group.cancelAll()
      }
      if drain.hasBegun { try await response.write(.with { $0.status = .notServing }) }
    }
  }
#endif
