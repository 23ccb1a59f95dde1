// Stage 1 of the write path: turns the arguments of a call into an intent, on the caller, before
// anything is read. It refuses every error in the data that does not depend on what is stored, and
// names the field.
//
// What counts as what:
// - An instruction (a `FieldValue`) leaves the data and becomes a transform. A map that held
//   nothing else also leaves the data. An empty map that the app wrote is data.
// - `delete` is an instruction that adds its place to the mask and nothing to the fields.
// - A merge's mask is the leaves of the data. An empty map is a leaf, an array is a leaf.
// - A place listed in `mergeFields` or in an update is replaced as a whole, maps included.

/// Compiles calls into intents.
enum WriteCompiler {
  /// `setData` without options: the document becomes `data`.
  static func set(_ data: [String: FieldInput]) throws(DatabaseError) -> WriteIntent {
    var split = InstructionSplit(deletes: .refused("only a merge or an update can delete a field"))
    let fields = try split.plainFields(of: data)
    return WriteIntent(change: .replace(fields: fields), transforms: split.transforms)
  }

  /// `setData` of an encoded Codable value: a map, usually without instructions.
  static func set(_ input: FieldInput) throws(DatabaseError) -> WriteIntent {
    switch input.form {
    case .map(let fields): return try set(fields)
    case .value(.map(let fields)):
      for (name, value) in fields {
        try checkName(name, at: [name])
        try ValueCheck.check(value, at: [name], depth: 1)
      }
      return WriteIntent(change: .replace(fields: fields))
    case .value, .operation:
      throw DatabaseError(.invalidArgument, "a document is a map of fields")
    }
  }

  /// `create`: like `set`, but the document must not exist.
  static func create(_ data: [String: FieldInput]) throws(DatabaseError) -> WriteIntent {
    var intent = try set(data)
    intent.precondition = .exists(false)
    return intent
  }

  /// `setData(merge: true)`: sets every leaf of `data` and keeps everything else.
  static func merge(_ data: [String: FieldInput]) throws(DatabaseError) -> WriteIntent {
    var split = InstructionSplit(deletes: .collected)
    let fields = try split.plainFields(of: data)
    var mask = split.deletes
    appendLeaves(of: fields, below: [], to: &mask)
    return WriteIntent(
      change: .patch(fields: fields, mask: mask), transforms: split.transforms)
  }

  /// `setData(mergeFields:)`: the listed places get the values in `data`; everything else stays.
  static func merge(
    _ data: [String: FieldInput], only listed: [FieldPath]
  ) throws(DatabaseError) -> WriteIntent {
    var places: [FieldNames] = []
    for path in listed {
      places.append(try path.names())
    }
    try refuseOverlaps(places)
    try refuseDeletes(in: data, except: places)
    var entries: [(FieldNames, FieldInput)] = []
    for place in places {
      guard let input = lookUp(place[...], in: data) else {
        throw DatabaseError(
          .invalidArgument, "the field is listed in mergeFields but missing from the data",
          field: describe(place))
      }
      entries.append((place, input))
    }
    return try patch(entries)
  }

  /// `updateData`: replaces each place. The document must exist.
  static func update(
    _ data: [(path: FieldPath, input: FieldInput)], precondition: Precondition = .exists(true)
  ) throws(DatabaseError) -> WriteIntent {
    guard !data.isEmpty else {
      throw DatabaseError(.invalidArgument, "an update must name at least one field")
    }
    guard precondition != .exists(false), precondition != .version(.missing) else {
      throw DatabaseError(.invalidArgument, "an update cannot require the document to be missing")
    }
    var entries: [(FieldNames, FieldInput)] = []
    for (path, input) in data {
      entries.append((try path.names(), input))
    }
    try refuseOverlaps(entries.map { $0.0 })
    var intent = try patch(entries)
    intent.precondition = precondition
    return intent
  }

  /// `delete`.
  static func delete(precondition: Precondition = .none) -> WriteIntent {
    WriteIntent(change: .delete, precondition: precondition)
  }

  /// A patch whose fields and mask the caller already has apart.
  static func patch(
    _ fields: [String: Value], at mask: [FieldNames]
  ) throws(DatabaseError) -> WriteIntent {
    try refuseOverlaps(mask)
    for place in mask {
      for name in place { try checkName(name, at: place) }
      guard let value = Ondol.lookUp(place[...], in: fields) else { continue }
      try ValueCheck.check(value, at: place, depth: place.count)
    }
    return WriteIntent(change: .patch(fields: fields, mask: mask))
  }

  /// Transforms that the caller already has apart from the fields, in their order.
  static func transforms(
    _ list: [(path: FieldNames, operation: FieldValue.Operation)]
  ) throws(DatabaseError) -> [FieldTransform] {
    var split = InstructionSplit(deletes: .refused("a delete is not a transform"))
    for (path, operation) in list {
      for name in path { try checkName(name, at: path) }
      try split.take(operation, at: path)
    }
    return split.transforms
  }

  /// A patch that replaces each place as a whole.
  private static func patch(
    _ entries: [(FieldNames, FieldInput)]
  ) throws(DatabaseError) -> WriteIntent {
    var fields: [String: Value] = [:]
    var mask: [FieldNames] = []
    var split = InstructionSplit(
      deletes: .refused("a delete must be the direct value of a field that is listed"))
    for (place, input) in entries {
      switch input.form {
      case .operation(.delete):
        mask.append(place)
      case .operation(let operation):
        try split.take(operation, at: place)
      case .value, .map:
        // In the mask even when it holds only instructions: what remains of the map replaces it.
        mask.append(place)
        if let plain = try split.plainPart(of: input, at: place) {
          try assign(plain, at: place[...], in: &fields)
        }
      }
    }
    return WriteIntent(change: .patch(fields: fields, mask: mask), transforms: split.transforms)
  }

  private static func appendLeaves(
    of fields: [String: Value], below place: FieldNames, to mask: inout [FieldNames]
  ) {
    for (name, value) in ValueOrder.sorted(fields) {
      if case .map(let nested) = value, !nested.isEmpty {
        appendLeaves(of: nested, below: place + [name], to: &mask)
      } else {
        mask.append(place + [name])
      }
    }
  }
}

// MARK: - Refusals

extension WriteCompiler {
  /// Refuses a place that is listed twice or is inside another.
  private static func refuseOverlaps(_ places: [FieldNames]) throws(DatabaseError) {
    // In this order, a place comes directly before the ones inside it, if there are any.
    let sorted = places.sorted { ValueOrder.compareSegments($0, $1) < 0 }
    for (outer, inner) in zip(sorted, sorted.dropFirst()) where outer.count <= inner.count {
      guard ValueOrder.compareSegments(outer, Array(inner.prefix(outer.count))) == 0 else {
        continue
      }
      let problem =
        outer.count == inner.count
        ? "the field is written twice" : "the field lies inside '\(describe(outer))', also written"
      throw DatabaseError(
        .invalidArgument, "\(problem); one write can change a place once", field: describe(inner))
    }
  }

  /// Refuses a delete in the data that `mergeFields` would silently ignore.
  private static func refuseDeletes(
    in data: [String: FieldInput], except places: [FieldNames], below outer: FieldNames = []
  ) throws(DatabaseError) {
    for (name, input) in ValueOrder.sorted(data) {
      let place = outer + [name]
      switch input.form {
      case .operation(.delete):
        guard places.contains(where: { ValueOrder.compareSegments($0, place) == 0 }) else {
          throw DatabaseError(
            .invalidArgument, "the data deletes a field that mergeFields does not list",
            field: describe(place))
        }
      case .map(let nested): try refuseDeletes(in: nested, except: places, below: place)
      case .value, .operation: break
      }
    }
  }

  static func checkName(
    _ name: String, at place: @autoclosure () -> FieldNames
  ) throws(DatabaseError) {
    guard let problem = ResourceName.problem(withField: name) else { return }
    throw DatabaseError(
      .invalidArgument, "\"\(name)\" cannot name a field: \(problem)", field: describe(place()))
  }

  static func describe(_ place: FieldNames) -> String {
    place.map(FieldPath.quoted).joined(separator: ".")
  }

  private static func lookUp(
    _ place: ArraySlice<String>, in data: [String: FieldInput]
  ) -> FieldInput? {
    guard let first = place.first, let input = data[exactly: first] else { return nil }
    let rest = place.dropFirst()
    if rest.isEmpty { return input }
    switch input.form {
    case .map(let nested): return lookUp(rest, in: nested)
    case .value(.map(let nested)): return Ondol.lookUp(rest, in: nested).map { FieldInput($0) }
    case .value, .operation: return nil
    }
  }
}

/// Splits data into plain values and instructions, and checks both.
private struct InstructionSplit {
  enum Deletes {
    case collected
    /// Why a delete is not allowed here.
    case refused(String)
  }

  let deletePolicy: Deletes
  var transforms: [FieldTransform] = []
  var deletes: [FieldNames] = []

  init(deletes: Deletes) {
    deletePolicy = deletes
  }

  mutating func plainFields(
    of data: [String: FieldInput]
  ) throws(DatabaseError) -> [String: Value] {
    var fields: [String: Value] = [:]
    fields.reserveCapacity(data.count)
    for (name, input) in data {
      if let plain = try plainPart(of: input, at: [name]) { try fields.put(plain, at: name) }
    }
    // The same call makes the same intent, whatever order the dictionary has.
    transforms.sort { ValueOrder.compareSegments($0.path, $1.path) < 0 }
    return fields
  }

  /// The part of `input` that is data; nil when it consists of instructions only.
  mutating func plainPart(
    of input: FieldInput, at place: FieldNames
  ) throws(DatabaseError) -> Value? {
    try checkName(place)
    switch input.form {
    case .value(let value):
      try ValueCheck.check(value, at: place, depth: place.count)
      return value
    case .operation(let operation):
      try take(operation, at: place)
      return nil
    case .map(let children):
      var plain: [String: Value] = [:]
      for (name, child) in children {
        if let part = try plainPart(of: child, at: place + [name]) {
          try plain.put(part, at: name)
        }
      }
      // Spelled out: a bare `nil` could also be null, which is a value.
      return plain.isEmpty ? Optional.none : .some(.map(plain))
    }
  }

  mutating func take(
    _ operation: FieldValue.Operation, at place: FieldNames
  ) throws(DatabaseError) {
    switch operation {
    case .delete:
      if case .refused(let reason) = deletePolicy {
        throw DatabaseError(.invalidArgument, reason, field: WriteCompiler.describe(place))
      }
      deletes.append(place)
      return
    case .arrayUnion(let elements), .arrayRemove(let elements):
      try ValueCheck.check(.array(elements), at: place, depth: place.count)
    case .invalid(let error):
      throw error
    case .serverTimestamp, .increment, .minimum, .maximum:
      break
    }
    transforms.append(FieldTransform(path: place, operation: operation))
  }

  private func checkName(_ place: FieldNames) throws(DatabaseError) {
    if let name = place.last { try WriteCompiler.checkName(name, at: place) }
  }
}
