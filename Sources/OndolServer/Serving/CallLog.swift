// Logs one line for each call and records it in the metrics: method, database, status, time, bytes.
// It wraps all services.

#if Server
  import GRPCCore
  import Logging
  import Ondol
  import OndolWire

  /// Watches calls from their start to the end of their answer.
  struct CallLog: ServerInterceptor {
    let logger: Logger
    let metrics: CallMetrics

    func intercept<Input: Sendable, Output: Sendable>(
      request: StreamingServerRequest<Input>, context: ServerContext,
      next:
        @concurrent @Sendable (StreamingServerRequest<Input>, ServerContext) async throws ->
        StreamingServerResponse<Output>
    ) async throws -> StreamingServerResponse<Output> {
      let call = WatchedCall(context, request.metadata, logger, metrics)
      do {
        var response = try await call.bind { try await next(request, context) }
        switch response.accepted {
        case .success(var contents):
          let producer = contents.producer
          contents.producer = { writer in
            do {
              let metadata = try await call.bind { try await producer(writer) }
              call.end(nil)
              return metadata
            } catch {
              call.end(error)
              throw error
            }
          }
          response.accepted = .success(contents)
        case .failure(let error): call.end(error)
        }
        return response
      } catch {
        call.end(error)
        throw error
      }
    }
  }

  /// A call in progress.
  private struct WatchedCall: Sendable {
    private let method: String
    private let peer: String
    private let database: String
    private let start = ContinuousClock.now
    private let record = CallRecord()
    private let logger: Logger
    private let metrics: CallMetrics

    init(
      _ context: ServerContext, _ metadata: Metadata, _ logger: Logger, _ metrics: CallMetrics
    ) {
      method = context.descriptor.method
      peer = context.remotePeer
      // Clients also name a call's database in the metadata, so that routers need not read the
      // message.
      database = metadata[stringValues: "google-cloud-resource-prefix"].first { _ in true } ?? ""
      self.logger = logger
      self.metrics = metrics
      metrics.begin(method)
    }

    /// Runs a part of the call's work, which reports to it.
    func bind<R>(_ body: () async throws -> R) async throws -> R {
      try await CallRecord.$current.withValue(record, operation: body)
    }

    func end(_ error: (any Error)?) {
      let duration = ContinuousClock.now - start
      let status = error.map { Self.status(of: $0) } ?? "OK"
      metrics.end(
        method, status: status, after: duration, received: record.received,
        sent: record.sent)
      let isOurs = error != nil && ["INTERNAL", "UNKNOWN", "DATA_LOSS"].contains(status)
      var metadata: Logger.Metadata = [
        "database": "\(database)", "peer": "\(peer)",
        "milliseconds": "\((duration / .microseconds(10)).rounded() / 100)",
        "received": "\(record.received)", "sent": "\(record.sent)",
      ]
      if let name = record.caller { metadata["caller"] = "\(name)" }
      if let error { metadata["error"] = "\((error as? RPCError)?.message ?? "\(error)")" }
      logger.log(level: isOurs ? .error : .info, "\(method) \(status)", metadata: metadata)
    }

    /// The code's name in gRPC's documentation: ALREADY_EXISTS.
    private static func name(of code: RPCError.Code) -> String {
      if code == .internalError { return "INTERNAL" }
      var name = ""
      for character in "\(code)" {
        if character.isUppercase { name += "_" }
        name += character.uppercased()
      }
      return name
    }

    private static func status(of error: any Error) -> String {
      switch error {
      case let error as RPCError: name(of: error.code)
      case is CancellationError: "CANCELLED"
      default: "UNKNOWN"
      }
    }
  }
#endif
