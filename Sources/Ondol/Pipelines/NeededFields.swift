// Which fields of documents the stages of a pipeline can look at. All others are never decoded.

/// Fields of the rows that stages are applied to.
struct NeededFields: Sendable, Equatable {
  /// What is needed of a field at the top of rows.
  enum Extent: Sendable, Equatable {
    case whole
    /// Fields of the map that it is.
    case inner(Set<String>)
  }

  /// The fields at the top of rows; nil when all of them are needed, because the result shows them.
  private(set) var names: [String: Extent]? = [:]
  /// Whether the name or the times of the document that a row is are needed.
  private(set) var identity = false

  /// Everything, as at the end of a pipeline.
  private static let all: NeededFields = {
    var all = NeededFields()
    (all.names, all.identity) = (nil, true)
    return all
  }()

  private init() {}

  /// Fields that these stages or the result after them need.
  init(of stages: ArraySlice<PipelineStage>) {
    self = Self.all
    for stage in stages.reversed() {
      switch stage {
      case .filter(let condition): add([condition])
      case .select(let columns):
        names = [:]
        add(columns.map(\.expression))
      case .addFields(let columns): add(columns.map(\.expression))
      case .removeFields, .offset, .limit, .sample, .union: break
      case .replaceWith(let map, let replacement):
        if replacement == .fullReplace { names = [:] }
        add([map])
      case .sort(let orders): add(orders.map(\.expression))
      case .aggregate(let aggregates, let groups):
        self = NeededFields()
        add(groups.map(\.expression) + aggregates.compactMap(\.aggregate.argument))
      case .distinct(let groups):
        self = NeededFields()
        add(groups.map(\.expression))
      case .unnest(let array, _): add([array.expression])
      case .findNearest(let search): add([search.field])
      case .lookup(let lookup):
        switch lookup.match {
        case .reference(let expression), .equal(_, _, let expression): add([expression])
        }
      case .window(let windows, let groups, let orders):
        add(groups + orders.map(\.expression) + windows.map(\.window.operand))
      case .collection, .collectionGroup, .database, .documents, .literals, .search:
        self = Self.all
      }
    }
  }

  /// What is needed of a field at the top of rows.
  func extent(of name: String) -> Extent {
    // A column whose name is a path may be one in its map.
    guard let names, !name.utf8.contains(UInt8(ascii: ".")) else { return .whole }
    return names[name] ?? .inner([])
  }

  private mutating func add(_ expressions: [PipelineExpression]) {
    for expression in expressions {
      switch expression.form {
      case .field(let field):
        if case .names(let names) = field.form {
          add(names)
        } else {
          identity = true
        }
      case .function(_, let arguments): add(arguments)
      case .constant, .variable, .invalid: break
      }
    }
  }

  private mutating func add(_ names: FieldNames) {
    guard let first = names.first else { return }
    guard names.count > 1 else {
      self.names?[first] = .whole
      return
    }
    switch self.names?[first] {
    case .whole?: break
    case .inner(let known)?: self.names?[first] = .inner(known.union([names[1]]))
    case nil: self.names?[first] = .inner([names[1]])
    }
  }
}
