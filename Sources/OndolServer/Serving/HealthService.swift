// Whether the server serves, in gRPC's own protocol for that.

#if Server
  import GRPCCore
  import OndolWire
  import SwiftProtobuf

  struct HealthService: WireHealth.SimpleServiceProtocol {
    let drain: Drain
    /// The services there are; the empty name is the server as a whole.
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
        // The server goes, or the client has gone.
        await group.next()
        group.cancelAll()
      }
      if drain.hasBegun { try await response.write(.with { $0.status = .notServing }) }
    }
  }
#endif
