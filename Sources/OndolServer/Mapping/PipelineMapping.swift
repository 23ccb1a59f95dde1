// Converts a client's pipeline to the database's. What is wrong with a stage's arguments is an
// error here; what is wrong with a function is one of the database's, for every caller alike.

#if Server
  import Foundation
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// Maps pipelines for one database.
  struct PipelineMapping: Sendable {
    let values: ValueMapping

    /// Messages within messages, which protects the stack.
    private static let mostNesting = 100

    func stages(_ wire: WirePipeline) throws(DatabaseError) -> [PipelineStage] {
      try stages(wire, depth: 0)
    }

    private func stages(
      _ wire: WirePipeline, depth: Int
    ) throws(DatabaseError) -> [PipelineStage] {
      guard depth <= PipelineMapping.mostNesting else { throw Self.tooDeep }
      var stages: [PipelineStage] = []
      for stage in wire.stages { stages.append(try self.stage(stage, depth: depth)) }
      return stages
    }

    private func stage(
      _ wire: WirePipeline.Stage, depth: Int
    ) throws(DatabaseError) -> PipelineStage {
      let arguments = StageArguments(wire)
      switch wire.name {
      case "collection", "collection_group", "database", "documents", "literals":
        return try source(wire, arguments)
      case "where": return .filter(try expression(arguments[0]))
      case "select": return .select(try columns(arguments[0]))
      case "add_fields": return .addFields(try columns(arguments[0]))
      case "remove_fields":
        var fields: [PipelineField] = []
        for argument in wire.args { fields.append(try field(argument, "remove_fields")) }
        return .removeFields(fields)
      case "replace_with":
        let mode = wire.args.count > 1 ? wire.args[1].stringValue : "full_replace"
        guard let replacement = MapReplacement(rawValue: mode) else {
          throw arguments.error("\"\(mode)\" is no way to combine maps")
        }
        return .replaceWith(try expression(arguments[0]), replacement)
      case "sort": return .sort(try orders(wire.args, arguments))
      case "offset": return .offset(try arguments.integer(0))
      case "limit": return .limit(try arguments.integer(0))
      case "aggregate":
        let groups = wire.args.count > 1 ? try columns(wire.args[1]) : []
        return .aggregate(try aggregates(arguments[0], arguments), groups: groups)
      case "distinct": return .distinct(try columns(arguments[0]))
      case "unnest": return try unnest(wire, arguments)
      case "union":
        guard case .pipelineValue(let other) = try arguments[0].valueType else {
          throw arguments.error("its argument is a pipeline")
        }
        return .union(try stages(other, depth: depth + 1))
      case "sample": return try sample(arguments)
      case "find_nearest": return try nearest(wire, arguments)
      case "search": return try search(wire, arguments)
      default:
        throw DatabaseError(.invalidArgument, "there is no stage \"\(wire.name)\"")
      }
    }

    // MARK: - Sources

    private func source(
      _ wire: WirePipeline.Stage, _ arguments: StageArguments
    ) throws(DatabaseError) -> PipelineStage {
      switch wire.name {
      case "collection":
        return .collection(try CollectionPath(try arguments.reference(0)))
      case "collection_group":
        guard case .stringValue(let id) = try arguments[1].valueType else {
          throw arguments.error("its second argument is a collection's id")
        }
        return .collectionGroup(id)
      case "documents":
        var paths: [DocumentPath] = []
        for index in wire.args.indices {
          paths.append(try DocumentPath(arguments.reference(index)))
        }
        return .documents(paths)
      case "literals":
        var rows: [[AliasedExpression]] = []
        for argument in wire.args { rows.append(try columns(argument)) }
        return .literals(rows)
      default: return .database
      }
    }

    // MARK: - Stages

    private func unnest(
      _ wire: WirePipeline.Stage, _ arguments: StageArguments
    ) throws(DatabaseError) -> PipelineStage {
      let alias = try arguments[wire.args.count > 1 ? 1 : 0]
      guard case .fieldReferenceValue(let name) = alias.valueType else {
        throw arguments.error("its second argument is a field")
      }
      return .unnest(
        AliasedExpression(name: name, expression: try expression(arguments[0])),
        indexField: try arguments.fieldOption("index_field"))
    }

    private func sample(_ arguments: StageArguments) throws(DatabaseError) -> PipelineStage {
      guard case .stringValue(let mode) = try arguments[1].valueType else {
        throw arguments.error("its second argument is \"documents\" or \"percent\"")
      }
      switch (mode, try arguments[0].valueType) {
      case ("documents", .integerValue(let count)?): return .sample(.rows(Int(clamping: count)))
      case ("percent", .doubleValue(let share)?): return .sample(.share(share))
      case ("percent", .integerValue(let share)?): return .sample(.share(Double(share)))
      default: throw arguments.error("it keeps a number of \"documents\" or a \"percent\"")
      }
    }

    private func nearest(
      _ wire: WirePipeline.Stage, _ arguments: StageArguments
    ) throws(DatabaseError) -> PipelineStage {
      guard case .stringValue(let name) = try arguments[2].valueType,
        let measure = DistanceMeasure(rawValue: name)
      else { throw arguments.error("it measures euclidean, cosine or dot_product") }
      guard let vector = try values.value(arguments[1]).vector else {
        throw arguments.error("its second argument is a vector")
      }
      return .findNearest(
        NearestSearch(
          field: try expression(arguments[0]), vector: vector, measure: measure,
          limit: try arguments.integerOption("limit"),
          distanceField: try arguments.fieldOption("distance_field")))
    }

    private func search(
      _ wire: WirePipeline.Stage, _ arguments: StageArguments
    ) throws(DatabaseError) -> PipelineStage {
      var text: String?
      switch arguments.option("query")?.valueType {
      case .stringValue(let words)?: text = words
      case .functionValue(let function)? where function.name == "document_matches":
        text = function.args.first?.stringValue
      default: break
      }
      guard let text else {
        throw arguments.error("its option query is a text, or document_matches of one")
      }
      for entry in wire.options where !["query", "limit"].contains(entry.key) {
        throw DatabaseError(.unimplemented, "the stage search has no option \"\(entry.key)\" here")
      }
      return .search(
        PipelineSearch(
          text: text, fields: [], limit: try arguments.integerOption("limit"), scoreField: nil))
    }

    private func orders(
      _ wire: [WireValue], _ arguments: StageArguments
    ) throws(DatabaseError) -> [PipelineOrdering] {
      var orders: [PipelineOrdering] = []
      for value in wire {
        let fields = value.mapValue.fields
        guard let operand = fields.first(where: { $0.key == "expression" }) else {
          throw arguments.error("an order is a map of an expression and a direction")
        }
        let direction = fields.first { $0.key == "direction" }?.value.stringValue ?? "ascending"
        guard ["ascending", "descending"].contains(direction) else {
          throw arguments.error("\"\(direction)\" is no direction")
        }
        orders.append(
          PipelineOrdering(
            try expression(operand.value), descending: direction == "descending"))
      }
      return orders
    }

    private func columns(_ wire: WireValue) throws(DatabaseError) -> [AliasedExpression] {
      guard case .mapValue(let map) = wire.valueType else {
        throw DatabaseError(.invalidArgument, "columns are a map of expressions by name")
      }
      var columns: [AliasedExpression] = []
      for entry in map.fields {
        columns.append(
          AliasedExpression(name: entry.key, expression: try expression(entry.value)))
      }
      return columns
    }

    private func aggregates(
      _ wire: WireValue, _ arguments: StageArguments
    ) throws(DatabaseError) -> [AliasedAggregate] {
      guard case .mapValue(let map) = wire.valueType else {
        throw arguments.error("accumulators are a map of functions by name")
      }
      var aggregates: [AliasedAggregate] = []
      for entry in map.fields {
        guard case .functionValue(let function) = entry.value.valueType else {
          throw arguments.error("\"\(entry.key)\" is no accumulator")
        }
        guard function.args.count <= 1 else {
          throw arguments.error("\(function.name) takes at most 1 argument")
        }
        let operand = try function.args.first.map { (value) throws(DatabaseError) in
          try expression(value)
        }
        aggregates.append(
          AliasedAggregate(name: entry.key, aggregate: .function(function.name, operand)))
      }
      return aggregates
    }

    private func field(
      _ wire: WireValue, _ stage: String
    ) throws(DatabaseError) -> PipelineField {
      guard case .fieldReferenceValue(let name) = wire.valueType else {
        throw DatabaseError(.invalidArgument, "the stage \(stage): its arguments are fields")
      }
      return PipelineField(FieldPath(name))
    }

    // MARK: - Expressions

    func expression(_ wire: WireValue) throws(DatabaseError) -> PipelineExpression {
      try expression(wire, depth: 0)
    }

    private func expression(
      _ wire: WireValue, depth: Int
    ) throws(DatabaseError) -> PipelineExpression {
      guard depth <= Self.mostNesting else { throw Self.tooDeep }
      switch wire.valueType {
      case .fieldReferenceValue(let name):
        return Field(FieldPath(name)).pipelineExpression
      case .variableReferenceValue(let name): return .variable(name)
      case .functionValue(let function):
        var arguments: [any PipelineOperand] = []
        arguments.reserveCapacity(function.args.count)
        for argument in function.args {
          arguments.append(try expression(argument, depth: depth + 1))
        }
        return .function(function.name, arguments: arguments)
      case .pipelineValue:
        throw DatabaseError(.unimplemented, "a pipeline as a value is not supported")
      case .referenceValue(let name) where !name.hasPrefix("projects/"):
        // Clients name documents in expressions as in stages: by their path.
        return PipelineExpression(.reference(try DocumentPath(name)))
      default: return PipelineExpression(try values.value(wire))
      }
    }

    private static let tooDeep = DatabaseError(
      .invalidArgument, "a pipeline's values are nested more than \(mostNesting) deep")
  }

  /// The arguments and options of one stage.
  private struct StageArguments {
    private let wire: WirePipeline.Stage

    init(_ wire: WirePipeline.Stage) {
      self.wire = wire
    }

    func error(_ message: String) -> DatabaseError {
      DatabaseError(.invalidArgument, "the stage \(wire.name): \(message)")
    }

    subscript(index: Int) -> WireValue {
      get throws(DatabaseError) {
        guard index < wire.args.count else {
          throw error("it has \(wire.args.count) arguments, and needs \(index + 1)")
        }
        return wire.args[index]
      }
    }

    func integer(_ index: Int) throws(DatabaseError) -> Int {
      guard case .integerValue(let number) = try self[index].valueType else {
        throw error("its argument is an integer")
      }
      return Int(clamping: number)
    }

    /// A path in a reference, which begins with "/".
    func reference(_ index: Int) throws(DatabaseError) -> String {
      guard case .referenceValue(let path) = try self[index].valueType else {
        throw error("its argument is a reference")
      }
      return path
    }

    func option(_ name: String) -> WireValue? {
      wire.options.first { $0.key == name }?.value
    }

    func fieldOption(_ name: String) throws(DatabaseError) -> String? {
      guard let option = option(name) else { return nil }
      switch option.valueType {
      case .fieldReferenceValue(let field): return field
      case .stringValue(let field): return field
      default: throw error("its option \(name) is a field")
      }
    }

    func integerOption(_ name: String) throws(DatabaseError) -> Int? {
      guard let option = option(name) else { return nil }
      guard case .integerValue(let number) = option.valueType else {
        throw error("its option \(name) is an integer")
      }
      return Int(clamping: number)
    }
  }
#endif
