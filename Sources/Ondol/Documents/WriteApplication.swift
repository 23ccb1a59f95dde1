// Makes the new document of an intent and the stored document. The code is pure: no catalog, no
// clock, no bytes. The commit's time is not known yet, so a server timestamp becomes
// `Timestamp.pending`. The encoder turns it into a stamp, and it equals nothing that is stored.

extension WriteIntent {
  /// The document's fields after this write; nil when there is no document then. A large document
  /// is decoded only when the write concerns more than a few fields.
  ///
  /// Throws as `apply(to:)` of decoded fields.
  func apply(to before: WrittenFields?) throws(DatabaseError) -> WrittenFields? {
    if case .keep = change { return before }
    if case .patch(let patch, let mask) = change, let before, case .row = before {
      var removed: [FieldNames] = []
      var put: [(FieldNames, Value)] = []
      for place in mask {
        if let value = lookUp(place[...], in: patch) {
          put.append((place, value))
        } else {
          removed.append(place)
        }
      }
      let edited = try before.edited(removing: removed, putting: put, transforms)
      if let edited { return edited }
    }
    if case .put(let row) = change, transforms.isEmpty { return .encoded(row) }
    return try apply(to: before?.all).map { .decoded($0) }
  }

  /// The document's fields after this write; nil when there is no document then.
  ///
  /// This does not check preconditions. Throws `.invalidArgument` when the document would have a
  /// name in two spellings.
  /// - Complexity: O(fields of the document + elements of the arrays touched).
  func apply(to before: [String: Value]?) throws(DatabaseError) -> [String: Value]? {
    var fields: [String: Value]
    switch change {
    case .delete:
      return nil
    case .keep:
      return before
    case .replace(let replacement):
      fields = replacement
    case .put(let encoded):
      fields = encoded.row.fields
    case .patch(let patch, let mask):
      fields = before ?? [:]
      // A removed field may have had another spelling of a new name.
      for place in mask where lookUp(place[...], in: patch) == nil {
        remove(place[...], from: &fields)
      }
      for place in mask {
        guard let value = lookUp(place[...], in: patch) else { continue }
        try assign(value, at: place[...], in: &fields)
      }
    }
    for transform in transforms {
      let place = transform.path[...]
      // A set replaces the document, so its transforms find what the set left: nothing stored.
      let result: Value
      do throws(DatabaseError) {
        result = try transform.operation.result(for: lookUp(place, in: fields))
      } catch {
        throw error.within(field: WriteCompiler.describe(transform.path))
      }
      try assign(result, at: place, in: &fields)
    }
    return fields
  }
}

extension FieldValue.Operation {
  /// The field's value after the transform, when it has `stored` now. Deletes are not transforms,
  /// and values that cannot be encoded never get here.
  ///
  /// Throws `.outOfRange` when a sum has more digits than a decimal.
  func result(for stored: Value?) throws(DatabaseError) -> Value {
    switch self {
    case .serverTimestamp: .timestamp(.pending)
    case .increment(let amount): try sum(stored, amount)
    case .minimum(let limit): extreme(stored, limit) { $0 <= 0 }
    case .maximum(let limit): extreme(stored, limit) { $0 >= 0 }
    case .arrayUnion(let elements): union(stored, elements)
    case .arrayRemove(let elements): difference(stored, elements)
    case .delete, .invalid: .null
    }
  }
}

/// Integers saturate. One double makes the sum a double; without doubles, one decimal makes it an
/// exact decimal.
private func sum(_ stored: Value?, _ amount: Value) throws(DatabaseError) -> Value {
  switch (stored, amount) {
  case (.integer(let left), .integer(let right)):
    let (result, overflow) = left.addingReportingOverflow(right)
    return .integer(overflow ? (right > 0 ? .max : .min) : result)
  case (.integer(let left), .double(let right)): return .double(Double(left) + right)
  case (.double(let left), .integer(let right)): return .double(left + Double(right))
  case (.double(let left), .double(let right)): return .double(left + right)
  case (.decimal(let left), .double(let right)): return .double(left.double + right)
  case (.double(let left), .decimal(let right)): return .double(left + right.double)
  case (.decimal(let left), .decimal(let right)): return try sum(left, right)
  case (.decimal(let left), .integer(let right)): return try sum(left, DecimalValue(right))
  case (.integer(let left), .decimal(let right)): return try sum(DecimalValue(left), right)
  default: return amount
  }
}

private func sum(_ left: DecimalValue, _ right: DecimalValue) throws(DatabaseError) -> Value {
  guard let sum = DecimalValue.sum(left, right) else {
    throw DatabaseError(
      .outOfRange,
      "\(left) and \(right) have a sum of more than \(DecimalValue.maximumDigits) digits; round"
        + " one of them")
  }
  return .decimal(sum)
}

/// The stored number or the operand, as `keepsStored` chooses by their order. Of equal numbers the
/// stored one stays, and NaN takes precedence over every number.
private func extreme(
  _ stored: Value?, _ operand: Value, keepsStored: (Int) -> Bool
) -> Value {
  guard let stored, ValueOrder.rank(stored) == ValueOrder.rank(operand) else { return operand }
  if isNaN(stored) { return stored }
  if isNaN(operand) { return operand }
  return keepsStored(ValueOrder.compare(stored, operand)) ? stored : operand
}

private func isNaN(_ value: Value) -> Bool {
  if case .double(let number) = value { number.isNaN } else { false }
}

private func union(_ stored: Value?, _ elements: [Value]) -> Value {
  var result: [Value] = []
  if case .array(let existing) = stored { result = existing }
  var seen = Set(result)
  for element in elements where seen.insert(element).inserted {
    result.append(element)
  }
  return .array(result)
}

private func difference(_ stored: Value?, _ elements: [Value]) -> Value {
  guard case .array(let existing) = stored else { return .array([]) }
  let removed = Set(elements)
  return .array(existing.filter { !removed.contains($0) })
}

// MARK: - Places in nested maps

/// The value at `place`; nil when a step is missing or goes through a value that is not a map.
func lookUp(_ place: ArraySlice<String>, in fields: [String: Value]) -> Value? {
  guard let first = place.first, let value = fields[exactly: first] else { return nil }
  let rest = place.dropFirst()
  if rest.isEmpty { return value }
  guard case .map(let nested) = value else { return nil }
  return lookUp(rest, in: nested)
}

/// Sets `value` at `place`, and replaces any other value on the way with a map. Throws
/// `.invalidArgument` when another spelling of one of the names exists.
func assign(
  _ value: Value, at place: ArraySlice<String>, in fields: inout [String: Value]
) throws(DatabaseError) {
  guard let first = place.first else { return }
  let rest = place.dropFirst()
  if rest.isEmpty {
    try fields.put(value, at: first)
    return
  }
  // Taken out first, so that the nested map is changed in place instead of copied.
  var nested: [String: Value] = [:]
  if case .map(let existing) = try fields.put(.null, at: first) { nested = existing }
  do throws(DatabaseError) {
    try assign(value, at: rest, in: &nested)
  } catch {
    throw error.within(field: first)
  }
  try fields.put(.map(nested), at: first)
}

/// Removes the value at `place`. Does nothing when a step on the way is not a map.
func remove(_ place: ArraySlice<String>, from fields: inout [String: Value]) {
  guard let first = place.first else { return }
  let rest = place.dropFirst()
  guard let index = fields.index(exactly: first) else { return }
  if rest.isEmpty {
    fields.remove(at: index)
  } else if case .map(var nested) = fields.values[index] {
    // Held once, so that it is changed in place.
    fields.values[index] = .null
    remove(rest, from: &nested)
    fields.values[index] = .map(nested)
  }
}
