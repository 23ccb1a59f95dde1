// The call that executes pipelines. It answers in batches, and the last one has the explanation
// when the client asks for it.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  extension FirestoreService {
    /// Results that are sent together.
    private static let resultsOfResponse = 64

    func executePipeline(
      request: WireExecutePipelineRequest,
      response: RPCWriter<WireExecutePipelineResponse>, context: ServerContext
    ) async throws {
      try await answerWhileWaitedFor(request.database) { call in
        // Rules know no pipelines: what a stage makes of documents has no owner any more.
        try call.access.requireEverything()
        let stages = try PipelineMapping(values: call.values).stages(
          request.structuredPipeline.pipeline)
        let pipeline = Pipeline(database: call.database, stages: stages)
        let explain = try ExplainRequest(request.structuredPipeline.options)
        if let explain, !explain.analyzes {
          return try await response.write(
            try explain.response(try await pipeline.explain(), call.values))
        }
        let reading = try await call.reading(request.consistency(call.values))
        let results = try await reading.results(of: pipeline)
        var head = WireExecutePipelineResponse()
        head.executionTime = call.values.wire(reading.moment.time)
        if reading.isNew, let transaction = reading.transaction {
          head.transaction = Data(transaction.id.bytes)
        }
        var start = 0
        repeat {
          let end = min(start + Self.resultsOfResponse, results.count)
          head.results = results[start..<end].map { call.values.wire($0) }
          start = end
          try await response.write(head)
          head.transaction = Data()
        } while start < results.count
        if request.autoCommitTransaction, let transaction = reading.transaction {
          _ = try await transaction.commit([])
        }
        if let explain {
          try await response.write(
            try explain.response(try await pipeline.explain(analyze: true), call.values))
        }
      }
    }
  }

  extension WireExecutePipelineRequest: ConsistencySelecting {
    func consistency(_ values: ValueMapping) throws(DatabaseError) -> Consistency {
      switch consistencySelector {
      case .transaction(let id): Consistency(transaction: id)
      case .newTransaction(let options): .new(options)
      case .readTime(let time): .time(try values.timestamp(time))
      case nil: .latest
      }
    }
  }

  extension Reading {
    /// The rows of a pipeline's answer.
    func results(of pipeline: Pipeline) async throws(DatabaseError) -> [PipelineResult] {
      guard let transaction else { return try await pipeline.execute(at: moment) }
      return try await transaction.read { (transaction) throws(DatabaseError) in
        try transaction.execute(pipeline)
      }
    }
  }

  extension ValueMapping {
    /// A row as a document: with a name only where it is one.
    func wire(_ result: PipelineResult) -> WireDocument {
      .with {
        if let reference = result.reference { $0.name = "\(database.documents)/\(reference.path)" }
        $0.fields = wire(result.data())
        if let time = result.createTime { $0.createTime = wire(time) }
        if let time = result.updateTime { $0.updateTime = wire(time) }
      }
    }
  }

  /// The options of an explanation.
  private struct ExplainRequest {
    let analyzes: Bool

    /// Nil when none is asked for.
    init?(_ options: [WireEntry]) throws(DatabaseError) {
      guard let wire = options.first(where: { $0.key == "explain_options" }) else { return nil }
      let mode = wire.value.mapValue.fields.first { $0.key == "mode" }?.value.stringValue
      switch mode {
      case "analyze"?: analyzes = true
      case "explain"?, nil: analyzes = false
      default: throw DatabaseError(.invalidArgument, "an explanation explains or analyzes")
      }
    }

    func response(
      _ explanation: PipelineExplanation, _ values: ValueMapping
    ) throws -> WireExecutePipelineResponse {
      let text = Google_Protobuf_StringValue(explanation.description)
      return try .with { $0.explainStats.data = try Google_Protobuf_Any(message: text) }
    }
  }
#endif
