// Calls that run queries: documents as a stream, aggregations, explanations, and partitions.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  extension FirestoreService {
    // MARK: - Documents

    func runQuery(
      request: WireRunQueryRequest, response: RPCWriter<WireRunQueryResponse>,
      context: ServerContext
    ) async throws {
      try await answerWhileWaitedFor(request.parent) { call in
        let mapped = try Self.query(request.structuredQuery, request.parent, call)
        let explains = request.hasExplainOptions
        if explains { try call.access.requireEverything() }
        guard !explains || request.explainOptions.analyze else {
          let plan = try await Self.plan(of: mapped.query, request.structuredQuery)
          return try await response.write(.with { $0.explainMetrics.planSummary = plan })
        }
        let start = ContinuousClock.now
        let reading = try await call.reading(request.consistency(call.values))
        let list = try await call.ruled(
          request.structuredQuery, below: DatabaseName.parent(request.parent).path,
          at: reading.moment)
        var head = WireRunQueryResponse()
        head.readTime = call.values.wire(reading.moment.time)
        if reading.isNew, let transaction = reading.transaction {
          try await response.write(.with { $0.transaction = Data(transaction.id.bytes) })
        }
        var count = 0
        func send(_ documents: [DocumentSnapshot]) async throws {
          try await list?.check(documents, at: reading.moment)
          count += documents.count
          try await response.write(
            contentsOf: documents.map { document in
              var part = head
              part.document = call.values.wire(document, mask: mapped.mask)
              return part
            })
        }
        if mapped.isOfAllCollections {
          let ids = try await reading.moment.collectionGroupIDs()
          let queries = try ids.map { id in
            try Self.query(request.structuredQuery, request.parent, call, in: id).query
          }
          let limit = request.structuredQuery
          try await reading.documents(
            ofAll: queries, limit: limit.hasLimit ? Int(limit.limit.value) : nil, send)
        } else {
          try await reading.documents(of: mapped.query, send)
        }
        head.done = true
        if explains {
          head.explainMetrics = try await Self.metrics(
            of: mapped.query, request.structuredQuery, returned: count, since: start)
        }
        try await response.write(head)
      }
    }

    /// - Parameter id: the collection id of this part, if the query reads all collections.
    static func query(
      _ wire: WireStructuredQuery, _ parent: String, _ call: Call, in id: String? = nil
    ) throws(DatabaseError) -> MappedQuery {
      let (_, path) = try DatabaseName.parent(parent)
      return try QueryMapping(call, parent: path).query(wire, in: id)
    }

    static func refuseAllCollections(_ mapped: MappedQuery) throws(DatabaseError) {
      guard mapped.isOfAllCollections else { return }
      throw DatabaseError(.unimplemented, "only documents are asked of all collections at once")
    }

    // MARK: - Numbers

    func runAggregationQuery(
      request: WireRunAggregationQueryRequest,
      response: RPCWriter<WireRunAggregationQueryResponse>, context: ServerContext
    ) async throws {
      try await answerWhileWaitedFor(request.parent) { call in
        let wire = request.structuredAggregationQuery
        let mapped = try Self.query(wire.structuredQuery, request.parent, call)
        try Self.refuseAllCollections(mapped)
        let aggregations = try AggregationMapping(wire.aggregations)
        let explains = request.hasExplainOptions
        if explains { try call.access.requireEverything() }
        guard !explains || request.explainOptions.analyze else {
          let plan = try await Self.plan(
            of: mapped.query, wire.structuredQuery, aggregating: aggregations.fieldNames)
          return try await response.write(.with { $0.explainMetrics.planSummary = plan })
        }
        let start = ContinuousClock.now
        let reading = try await call.reading(request.consistency(call.values))
        let list = try await call.ruled(
          wire.structuredQuery, below: DatabaseName.parent(request.parent).path,
          at: reading.moment)
        if let list, list.asksForEach || mapped.isOfGroup {
          try await reading.documents(of: mapped.query) {
            try await list.check($0, at: reading.moment)
          }
        }
        let source = aggregations.source(
          mapped.query, isLimited: wire.structuredQuery.hasLimit,
          hasOrder: !wire.structuredQuery.orderBy.isEmpty)
        let result = try await reading.aggregation(source.aggregate(aggregations.fields))
        var answer = WireRunAggregationQueryResponse()
        answer.readTime = call.values.wire(reading.moment.time)
        if reading.isNew, let transaction = reading.transaction {
          answer.transaction = Data(transaction.id.bytes)
        }
        answer.result.aggregateFields = call.values.wire(aggregations.values(of: result))
        if explains {
          answer.explainMetrics = try await Self.metrics(
            of: mapped.query, wire.structuredQuery, returned: 1,
            aggregating: aggregations.fieldNames, since: start)
        }
        try await response.write(answer)
      }
    }

    // MARK: - Explaining

    /// The indexes that serve a query, in Firestore's words and in Ondol's.
    private static func plan(
      of query: Query, _ wire: WireStructuredQuery, aggregating fields: [String] = []
    ) async throws -> WirePlanSummary {
      let explanation = try await query.explain()
      return .with { $0.indexesUsed = [index(of: wire, fields, explanation)] }
    }

    private static func index(
      of wire: WireStructuredQuery, _ aggregated: [String], _ explanation: QueryExplanation
    ) -> Google_Protobuf_Struct {
      var properties: [String] = []
      var names: Set<String> = ["__name__"]
      for field in QueryFields.equalities(of: wire.where) where names.insert(field).inserted {
        properties.append("\(field) ASC")
      }
      for order in wire.orderBy where names.insert(order.field.fieldPath).inserted {
        let direction = order.direction == .descending ? "DESC" : "ASC"
        properties.append("\(order.field.fieldPath) \(direction)")
      }
      for field in QueryFields.inequalities(of: wire.where) where names.insert(field).inserted {
        properties.append("\(field) ASC")
      }
      for field in aggregated where names.insert(field).inserted {
        properties.append("\(field) ASC")
      }
      let last = wire.orderBy.last?.direction == .descending ? "DESC" : "ASC"
      properties.append("__name__ \(last)")
      let isGroup = wire.from.first?.allDescendants == true
      return Google_Protobuf_Struct(fields: [
        "query_scope": .init(stringValue: isGroup ? "Collection Group" : "Collection"),
        "properties": .init(stringValue: "(\(properties.joined(separator: ", ")))"),
        "access": .init(stringValue: explanation.lines.joined(separator: "\n")),
      ])
    }

    /// The statistics of a query. The counts come from a second, counting run as of now. Read
    /// operations are Firestore's billing units: one for each document, and for aggregations one
    /// for a thousand entries.
    private static func metrics(
      of query: Query, _ wire: WireStructuredQuery, returned: Int,
      aggregating fields: [String]? = nil, since start: ContinuousClock.Instant
    ) async throws -> WireExplainMetrics {
      let duration = ContinuousClock.now - start
      let explanation = try await query.explain(analyze: true)
      let charged =
        fields == nil ? returned : ((explanation.entriesVisited ?? 0) + 999) / 1_000
      return .with {
        $0.planSummary.indexesUsed = [index(of: wire, fields ?? [], explanation)]
        $0.executionStats.resultsReturned = Int64(returned)
        $0.executionStats.executionDuration = Google_Protobuf_Duration(rounding: duration)
        $0.executionStats.readOperations = Int64(max(1, charged))
        $0.executionStats.debugStats = Google_Protobuf_Struct(fields: [
          "index_entries_scanned": .init(stringValue: "\(explanation.entriesVisited ?? 0)"),
          "documents_scanned": .init(stringValue: "\(explanation.documentsExamined ?? 0)"),
          "billing_details": .init(
            structValue: .init(fields: [
              "documents_billable": .init(stringValue: "\(fields == nil ? returned : 0)"),
              "index_entries_billable": .init(
                stringValue: "\(fields == nil ? 0 : explanation.entriesVisited ?? 0)"),
              "small_ops": .init(stringValue: "0"), "min_query_cost": .init(stringValue: "0"),
            ])),
        ])
      }
    }

    // MARK: - Parts

    /// Returns the cursors that split a query into parts with about as many documents.
    func partitionQuery(
      request: WirePartitionQueryRequest, context: ServerContext
    ) async throws -> WirePartitionQueryResponse {
      try await answerWhileWaitedFor(request.parent) { call in
        try call.access.requireEverything()
        let mapped = try Self.query(request.structuredQuery, request.parent, call)
        try Self.refuseAllCollections(mapped)
        guard request.partitionCount > 0 else {
          throw DatabaseError(
            .invalidArgument, "a query is cut at \(request.partitionCount) places")
        }
        let reading = try await call.reading(request.consistency(call.values))
        let cuts = try await reading.cuts(
          of: mapped.query, atMost: Int(clamping: request.partitionCount))
        let size = try Self.pageSize(request.pageSize)
        guard let done = Int(request.pageToken.isEmpty ? "0" : request.pageToken),
          (0...cuts.count).contains(done)
        else { throw Self.wrongPage }
        let page = cuts[done...].prefix(size)
        return .with {
          $0.partitions = page.map { path in
            .with {
              $0.values = [call.values.wire(.reference(path))]
              $0.before = true
            }
          }
          if done + page.count < cuts.count { $0.nextPageToken = "\(done + page.count)" }
        }
      }
    }
  }

  extension Reading {
    /// Returns the documents that begin parts of about the same size; fewer for a small result.
    fileprivate func cuts(of query: Query, atMost count: Int) async throws -> [DocumentPath] {
      let total = try await moment.aggregation(query.count).count
      let parts = min(count + 1, max(1, total))
      guard parts > 1 else { return [] }
      var (cuts, place) = ([DocumentPath](), 0)
      try await documents(of: query.select([])) { documents in
        for document in documents {
          // The first document of each part except the first.
          let part = place * parts / total
          if place > 0, part != (place - 1) * parts / total {
            cuts.append(try DocumentPath(document.reference.path))
          }
          place += 1
        }
      }
      return cuts
    }
  }

  /// The fields that a query names.
  enum QueryFields {
    /// The fields with an equality.
    static func equalities(of filter: WireStructuredQuery.Filter) -> [String] {
      leaves(of: filter).filter(\.isEquality).map(\.field)
    }

    /// The fields with an inequality.
    static func inequalities(of filter: WireStructuredQuery.Filter) -> [String] {
      leaves(of: filter).filter { !$0.isEquality }.map(\.field)
    }

    private static func leaves(
      of filter: WireStructuredQuery.Filter
    ) -> [(field: String, isEquality: Bool)] {
      switch filter.filterType {
      case .compositeFilter(let composite): composite.filters.flatMap { leaves(of: $0) }
      case .fieldFilter(let filter):
        [
          (
            filter.field.fieldPath,
            [.equal, .in, .arrayContains, .arrayContainsAny].contains(filter.op)
          )
        ]
      case .unaryFilter(let filter):
        [(filter.field.fieldPath, [.isNull, .isNan].contains(filter.op))]
      case nil: []
      }
    }
  }
#endif
