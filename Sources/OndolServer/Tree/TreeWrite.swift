// Writes as both faces of the protocol have them, checked for what the protocol forbids and the
// database would store: keys with its special characters.

#if Server
  import Ondol

  /// A write of a client.
  struct TreeWrite: Sendable {
    private enum Content: Sendable {
      case value(Value)
      case priority(Value)
      /// By paths below the place, which may end with `.priority`.
      case values([String: Value])
    }

    /// The node that is written, or below which values are.
    let place: TreePlace
    private let content: Content
    /// The places for which rules are asked.
    let places: [TreePlace]

    /// Replaces a node or, with a path that ends with `.priority`, only its priority.
    ///
    /// - Parameter now: milliseconds since 1970, for priorities that are the server's time.
    init(put value: Value, at target: TreeTarget, now: Int64) throws(TreeRefusal) {
      place = target.place
      let checked = try Self.checked(value, now)
      content = target.isPriority ? .priority(Self.priority(checked, now)) : .value(checked)
      places = [target.place]
    }

    /// Replaces several places below a node.
    init(merge values: Value, at place: TreePlace, now: Int64) throws(TreeRefusal) {
      guard let fields = values.map else {
        throw TreeRefusal(.invalid, "Invalid data; an update is an object of values by path")
      }
      self.place = place
      var (checked, places) = ([String: Value](), [TreePlace]())
      for (path, value) in fields {
        let target = try TreeTarget(path)
        guard target.isPriority || !target.place.keys.isEmpty else {
          throw TreeRefusal(.invalid, "Invalid data; the path of an update is empty")
        }
        let suffix = target.isPriority ? [".priority"] : []
        let value = try Self.checked(value, now)
        checked[(target.place.keys + suffix).joined(separator: "/")] =
          target.isPriority ? Self.priority(value, now) : value
        places.append(place.appending(target.place))
      }
      content = .values(checked)
      self.places = places
    }

    /// Whether the server computes a part of it.
    var hasServerValues: Bool {
      switch content {
      case .value(let value): Self.hasServerValue(value)
      case .priority: false
      case .values(let values): values.values.contains { Self.hasServerValue($0) }
      }
    }

    // MARK: - Writing

    func commit(to database: Database) async throws(DatabaseError) {
      let reference = place.reference(in: database)
      switch content {
      case .value(let value): try await reference.setValue(value)
      case .priority(let priority): try await reference.setPriority(priority)
      case .values(let values): try await reference.updateChildValues(values)
      }
    }

    func apply(in transaction: Transaction, of database: Database) throws(DatabaseError) {
      let reference = place.reference(in: database)
      switch content {
      case .value(let value): try transaction.setValue(value, at: reference)
      case .priority(let priority): try transaction.setPriority(priority, at: reference)
      case .values(let values): try transaction.updateChildValues(values, at: reference)
      }
    }

    /// Stores the write for the end of a connection.
    func note(
      in operations: ConnectionOperations, of database: Database
    ) async throws(DatabaseError) {
      let reference = place.reference(in: database)
      switch content {
      case .value(let value): try await operations.setValue(value, at: reference)
      case .priority:
        throw DatabaseError(
          .invalidArgument, "a priority cannot be set on disconnect; set the value with it")
      case .values(let values): try await operations.updateChildValues(values, at: reference)
      }
    }

    // MARK: - Checking

    /// The value with the keys that the protocol allows, and priorities that are known. The depth
    /// is limited by the reader of the JSON.
    private static func checked(_ value: Value, _ now: Int64) throws(TreeRefusal) -> Value {
      switch value {
      case .map(let fields):
        if fields[".sv"] != nil { return value }
        var checked: [String: Value] = [:]
        for (key, child) in fields {
          switch key {
          case ".priority": checked[key] = priority(child, now)
          case ".value": checked[key] = try Self.checked(child, now)
          default:
            if let problem = TreePlace.problem(with: key) {
              throw TreeRefusal(.invalid, "Invalid data; \(problem)")
            }
            checked[key] = try Self.checked(child, now)
          }
        }
        return .map(checked)
      case .array(let elements):
        var checked: [Value] = []
        for element in elements { checked.append(try Self.checked(element, now)) }
        return .array(checked)
      default: return value
      }
    }

    private static func priority(_ value: Value, _ now: Int64) -> Value {
      value[".sv"] == .string("timestamp") ? .integer(now) : value
    }

    private static func hasServerValue(_ value: Value) -> Bool {
      switch value {
      case .map(let fields): fields[".sv"] != nil || fields.values.contains(where: hasServerValue)
      case .array(let elements): elements.contains(where: hasServerValue)
      default: false
      }
    }
  }
#endif
