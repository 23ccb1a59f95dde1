// Instructions in place of values, which the commit itself carries out. The commit reads and writes
// in one step, so no other write comes in between.

/// An instruction to a write, in place of a field's value.
///
/// ```swift
/// try await items.document("lamp").updateData([
///   "count": FieldValue.increment(-1),
///   "pictures": FieldValue.arrayUnion(["lamp-2.png"]),
///   "changed": FieldValue.serverTimestamp(),
/// ])
/// ```
///
/// The commit carries it out, so no other write comes in between, and no earlier read is needed. It
/// may be the value of a field, including fields inside maps. In arrays and queries it is not
/// allowed: such a call throws `.invalidArgument`. The names and rules are Firestore's.
public struct FieldValue: Sendable {
  package enum Operation: Sendable {
    case delete
    case serverTimestamp
    /// The operand of these three is a number.
    case increment(Value)
    case minimum(Value)
    case maximum(Value)
    case arrayUnion([Value])
    case arrayRemove([Value])
    /// An operand could not be encoded; thrown when the instruction is used.
    case invalid(DatabaseError)
  }

  let operation: Operation

  /// Removes the field; does nothing when there is none. Only as the value of a key of an update,
  /// or anywhere in a merge.
  public static func delete() -> FieldValue { FieldValue(operation: .delete) }

  /// Stores the time of the commit: the same for all fields of one commit, and later than that of
  /// every earlier commit.
  ///
  /// The clock is this device's, or `Options.clock`. Unlike in Firestore, the time is known with
  /// the commit: no listener sees null or an estimate first.
  public static func serverTimestamp() -> FieldValue { FieldValue(operation: .serverTimestamp) }

  /// Adds to a number; a missing field, or one that is not a number, becomes `amount`.
  ///
  /// Two integers give an integer that saturates at the limits of `Int64`. With a double the sum is
  /// a double; without doubles, a decimal makes it an exact decimal. The write throws `.outOfRange`
  /// when that has more than 38 digits.
  ///
  /// - Parameter amount: the number to add; negative to subtract.
  public static func increment(_ amount: Int) -> FieldValue { increment(Int64(amount)) }

  /// Adds to a number; see `increment(_:)` for an `Int`.
  @_disfavoredOverload
  public static func increment(_ amount: Int64) -> FieldValue {
    FieldValue(operation: .increment(.integer(amount)))
  }

  /// Adds to a number, as a double.
  public static func increment(_ amount: Double) -> FieldValue {
    FieldValue(operation: .increment(.double(amount)))
  }

  /// Stores `value` when the field is larger, missing or not a number. Keeps the stored value when
  /// equal.
  public static func minimum(_ value: Int) -> FieldValue { minimum(Int64(value)) }

  /// Stores `value` when the field is larger, missing or not a number.
  @_disfavoredOverload
  public static func minimum(_ value: Int64) -> FieldValue {
    FieldValue(operation: .minimum(.integer(value)))
  }

  /// Stores `value` when the field is larger, missing or not a number.
  public static func minimum(_ value: Double) -> FieldValue {
    FieldValue(operation: .minimum(.double(value)))
  }

  /// Stores `value` when the field is smaller, missing or not a number. Keeps the stored value when
  /// equal.
  public static func maximum(_ value: Int) -> FieldValue { maximum(Int64(value)) }

  /// Stores `value` when the field is smaller, missing or not a number.
  @_disfavoredOverload
  public static func maximum(_ value: Int64) -> FieldValue {
    FieldValue(operation: .maximum(.integer(value)))
  }

  /// Stores `value` when the field is smaller, missing or not a number.
  public static func maximum(_ value: Double) -> FieldValue {
    FieldValue(operation: .maximum(.double(value)))
  }

  /// Appends the elements that the array lacks, in their order; a field that is not an array
  /// becomes one. 1 and 1.0 are the same element, and so are NaN and NaN.
  ///
  /// - Parameter elements: values without instructions; nil means null.
  /// - Complexity: O(n + m) for n existing elements and m added ones.
  public static func arrayUnion(_ elements: [(any FieldContent)?]) -> FieldValue {
    FieldValue(elements) { .arrayUnion($0) }
  }

  /// Removes every element that equals one of these; a field that is not an array becomes an empty
  /// one. 1 and 1.0 are the same element.
  ///
  /// - Parameter elements: values without instructions; nil means null.
  public static func arrayRemove(_ elements: [(any FieldContent)?]) -> FieldValue {
    FieldValue(elements) { .arrayRemove($0) }
  }

  /// A vector, which is a value and not an instruction; it is here because Firestore has it here.
  ///
  /// - Parameter components: any number of components.
  public static func vector(_ components: [Double]) -> VectorValue { VectorValue(components) }

  init(operation: Operation) {
    self.operation = operation
  }

  private init(
    _ elements: [(any FieldContent)?], _ operation: ([Value]) -> Operation
  ) {
    do throws(DatabaseError) {
      let encoded = try elements.encodeField().value
      self.operation = operation(encoded?.array ?? [])
    } catch {
      self.operation = .invalid(error)
    }
  }
}

extension FieldValue: FieldConvertible {
  /// The instruction. Throws when one of its operands cannot be a field.
  public func encodeField() throws(DatabaseError) -> FieldInput {
    if case .invalid(let error) = operation { throw error }
    return FieldInput(FieldInput.Form.operation(operation))
  }
}

extension FieldValue.Operation {
  /// The app's name for it.
  var name: String {
    switch self {
    case .delete: "delete"
    case .serverTimestamp: "serverTimestamp"
    case .increment: "increment"
    case .minimum: "minimum"
    case .maximum: "maximum"
    case .arrayUnion: "arrayUnion"
    case .arrayRemove: "arrayRemove"
    case .invalid: "increment, minimum, maximum, arrayUnion or arrayRemove"
    }
  }

  /// The error for an instruction where only a value is allowed.
  var misplaced: DatabaseError {
    DatabaseError(
      .invalidArgument,
      "FieldValue.\(name)() cannot stand here; it must be the value of a field, not inside an"
        + " array or in a query")
  }
}
