// What an app may write into a field, and how it becomes a `Value`. Dictionary literals are
// inferred as `[String: (any FieldContent)?]`, so the containers conform without conditions and a
// wrong leaf throws with its location. `FieldConvertible` is the part of it that can cross actors.

/// A value that can be written into a field: Swift's own values, ``Value``, dates, bytes,
/// references, ``FieldValue``, and optionals, arrays and dictionaries of these.
///
/// A variable of type `[String: Any]` does not qualify, because it could contain anything. Declare
/// it as `[String: any FieldConvertible]`.
public protocol FieldContent {
  /// The value to store, or the instruction for the field.
  ///
  /// - Throws: `.invalidArgument` when there is no value for it.
  func encodeField() throws(DatabaseError) -> FieldInput
}

/// A value that can be written into a field from any actor. Conform your own types to this.
public protocol FieldConvertible: FieldContent, Sendable {}

/// A type that can be read from a field.
public protocol FieldReadable {
  /// Returns nil when the value has another type or does not fit.
  init?(fieldValue: Value)
}

/// What is written into a field: a value, a map that contains instructions, or an instruction.
public struct FieldInput: Sendable {
  enum Form: Sendable {
    case value(Value)
    /// A map in which at least one field is, or contains, an instruction.
    case map([String: FieldInput])
    indirect case operation(FieldValue.Operation)
  }

  let form: Form

  init(_ form: Form) {
    self.form = form
  }

  /// Stores `value`.
  public init(_ value: Value) {
    form = .value(value)
  }

  /// The value if it contains no instruction; otherwise nil.
  var value: Value? { if case .value(let value) = form { value } else { nil } }

  /// The value, in a place where no instruction is allowed.
  ///
  /// Throws `.invalidArgument`, naming the instruction, when there is one.
  func plainValue() throws(DatabaseError) -> Value {
    switch form {
    case .value(let value): return value
    case .operation(let operation): throw operation.misplaced
    case .map(let fields):
      for (name, input) in ValueOrder.sorted(fields) where input.value == nil {
        do throws(DatabaseError) {
          _ = try input.plainValue()
        } catch {
          throw error.within(field: name)
        }
      }
      return .map(fields.compactMapValues(\.value))
    }
  }
}

extension FieldInput {
  /// Encodes the contents of an app's dictionary, and names the field in errors.
  static func fields(
    _ content: [String: (any FieldContent)?]
  ) throws(DatabaseError) -> [String: FieldInput] {
    var fields: [String: FieldInput] = [:]
    fields.reserveCapacity(content.count)
    for (name, element) in content {
      do throws(DatabaseError) {
        try fields.put(element?.encodeField() ?? FieldInput(.null), at: name)
      } catch {
        throw error.within(field: name)
      }
    }
    return fields
  }

  /// A map of `fields`: a plain value when it contains no instruction.
  static func map(_ fields: [String: FieldInput]) -> FieldInput {
    let values = fields.compactMapValues(\.value)
    return values.count == fields.count ? FieldInput(.map(values)) : FieldInput(Form.map(fields))
  }
}
