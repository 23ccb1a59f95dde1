// The expressions of pipelines, as the app writes them: plain values, without a database and
// without a check. ExpressionCompiler checks them when a pipeline is executed, so that an unknown
// function is an error of the call and not of the builder.

/// Anything that a pipeline can compute a value from: a field, a constant, or a function of them.
///
/// Swift's numbers, texts and booleans, `Timestamp`, `Value`, `DocumentReference` and lists of
/// these are constants, so `Field("price").multiply(1.1)` needs no wrapping.
public protocol PipelineOperand: Sendable {
  /// The expression.
  var pipelineExpression: PipelineExpression { get }
}

/// A field or a function: what the functions of pipelines are methods of. Constants are not, so
/// that Swift's own types keep their own methods.
public protocol PipelineComputed: PipelineOperand {}

/// A value that a pipeline computes from each of its rows.
///
/// ```swift
/// (Field("price").multiply(Field("count"))).as("total")
/// Field("title").toLower().startsWith("the ") && Field("tags").arrayContains("classic")
/// ```
///
/// The functions have the names and the meaning of Firestore's pipelines. A field that a row lacks
/// is *absent*, which differs from null. A function that gets a value of a wrong type is an error:
/// in `where` it makes the condition false, and elsewhere the call that executes the pipeline
/// throws `.invalidArgument`.
public struct PipelineExpression: Sendable, Hashable, PipelineComputed {
  indirect enum Form: Sendable, Hashable {
    case constant(Value)
    case field(PipelineField)
    case function(String, [PipelineExpression])
    /// A name that `arrayFilter` or `arrayTransform` gives to an element or its position.
    case variable(String)
    /// What cannot be asked; the call that executes the pipeline throws it.
    case invalid(DatabaseError)
  }

  let form: Form

  init(_ form: Form) {
    self.form = form
  }

  /// A constant.
  public init(_ value: Value) {
    form = .constant(value)
  }

  /// A function by its name in Firestore's protocol, as in `.function("char_length", Field("x"))`.
  /// The call that executes the pipeline throws `.invalidArgument` for an unknown name or a wrong
  /// number of arguments.
  ///
  /// - Parameters:
  ///   - name: the function's name, in lower case with underscores.
  ///   - arguments: what it is computed from.
  public static func function(
    _ name: String, _ arguments: any PipelineOperand...
  ) -> PipelineExpression {
    function(name, arguments: arguments)
  }

  /// A function of a list of arguments; see `function(_:_:)`, where a list is a single argument.
  public static func function(
    _ name: String, arguments: [any PipelineOperand]
  ) -> PipelineExpression {
    PipelineExpression(.function(name, arguments.map(\.pipelineExpression)))
  }

  /// The value that `arrayFilter` or `arrayTransform` gives the name to, within their expressions.
  public static func variable(_ name: String) -> PipelineExpression {
    PipelineExpression(.variable(name))
  }

  /// An array of the values; an absent one becomes null.
  public static func array(_ elements: any PipelineOperand...) -> PipelineExpression {
    function("array", arguments: elements)
  }

  /// A map of the values by name; an absent one is left out.
  public static func map(_ entries: [(String, any PipelineOperand)]) -> PipelineExpression {
    function("map", arguments: entries.flatMap { [$0.0, $0.1] as [any PipelineOperand] })
  }

  /// The moment of the execution, the same for all rows.
  public static func currentTimestamp() -> PipelineExpression { function("current_timestamp") }

  /// One value or another, as the condition is true or not. An error in the condition is an error.
  public static func conditional(
    _ condition: any PipelineOperand, _ whenTrue: any PipelineOperand,
    _ otherwise: any PipelineOperand
  ) -> PipelineExpression {
    function("conditional", condition, whenTrue, otherwise)
  }

  /// The expression itself.
  public var pipelineExpression: PipelineExpression { self }
}

/// A field of the rows, by its path. It may be selected and grouped by under its own name.
public struct Field: Sendable, Hashable, PipelineComputed, PipelineSelectable {
  let field: PipelineField

  /// A field, a path into maps, or `FieldPath.documentID()` for a reference to the document.
  /// `__create_time__` and `__update_time__` are the document's times.
  ///
  /// - Parameter path: the path. With an invalid one, the call that executes the pipeline throws
  ///   `.invalidArgument`.
  public init(_ path: FieldPath) {
    field = PipelineField(path)
  }

  /// The expression.
  public var pipelineExpression: PipelineExpression { PipelineExpression(.field(field)) }

  /// The field under its own name.
  public var pipelineSelection: AliasedExpression {
    AliasedExpression(name: field.description, expression: pipelineExpression)
  }
}

/// What a row is asked for by name.
package struct PipelineField: Sendable, Hashable, CustomStringConvertible {
  enum Form: Sendable, Hashable {
    case names(FieldNames)
    /// The document's reference.
    case name
    case createTime
    case updateTime
  }

  let form: Form
  package let description: String
  /// Why there can be no such field.
  var problem: DatabaseError?

  static let createTime = "__create_time__"
  static let updateTime = "__update_time__"

  package init(_ path: FieldPath) {
    description = "\(path)"
    var names: FieldNames = []
    var special: Form?
    switch description {
    case Self.createTime: special = .createTime
    case Self.updateTime: special = .updateTime
    default: special = path.isDocumentID ? .name : nil
    }
    if special == nil {
      do throws(DatabaseError) { names = try path.names() } catch { problem = error }
    }
    form = special ?? .names(names)
  }
}

/// An expression under a name: a column of `select`, `addFields` or a group.
public struct AliasedExpression: Sendable, Hashable, PipelineSelectable {
  /// The name.
  public let name: String
  /// What is computed.
  public let expression: PipelineExpression

  /// An expression under a name, which is taken literally.
  public init(name: String, expression: PipelineExpression) {
    self.name = name
    self.expression = expression
  }

  /// Itself.
  public var pipelineSelection: AliasedExpression { self }
}

/// A field, or an expression under a name.
public protocol PipelineSelectable: Sendable {
  /// The expression and its name.
  var pipelineSelection: AliasedExpression { get }
}

/// An expression that rows are sorted by, and the direction.
public struct PipelineOrdering: Sendable, Hashable {
  let expression: PipelineExpression
  let descending: Bool

  /// Sorts by the value of the expression. Rows without the value come before null; reversed when
  /// descending.
  public init(_ expression: PipelineExpression, descending: Bool = false) {
    self.expression = expression
    self.descending = descending
  }
}

extension PipelineComputed {
  /// The value under a name.
  public func `as`(_ name: String) -> AliasedExpression {
    AliasedExpression(name: name, expression: pipelineExpression)
  }

  /// The least value first.
  public func ascending() -> PipelineOrdering { PipelineOrdering(pipelineExpression) }

  /// The greatest value first.
  public func descending() -> PipelineOrdering {
    PipelineOrdering(pipelineExpression, descending: true)
  }
}

// MARK: - Constants

extension Value: PipelineOperand {
  /// The value as a constant.
  public var pipelineExpression: PipelineExpression { PipelineExpression(self) }
}

extension Int: PipelineOperand {
  /// The number as a constant.
  public var pipelineExpression: PipelineExpression { PipelineExpression(.integer(Int64(self))) }
}

extension Double: PipelineOperand {
  /// The number as a constant.
  public var pipelineExpression: PipelineExpression { PipelineExpression(.double(self)) }
}

extension Bool: PipelineOperand {
  /// The boolean as a constant.
  public var pipelineExpression: PipelineExpression { PipelineExpression(.boolean(self)) }
}

extension String: PipelineOperand {
  /// The text as a constant.
  public var pipelineExpression: PipelineExpression { PipelineExpression(.string(self)) }
}

extension Timestamp: PipelineOperand {
  /// The time as a constant.
  public var pipelineExpression: PipelineExpression { PipelineExpression(.timestamp(self)) }
}

extension VectorValue: PipelineOperand {
  /// The vector as a constant.
  public var pipelineExpression: PipelineExpression { PipelineExpression(.vector(self)) }
}

extension DocumentReference: PipelineOperand {
  /// The reference as a constant.
  public var pipelineExpression: PipelineExpression {
    switch place {
    case .success(let path): PipelineExpression(.reference(path))
    case .failure(let error): PipelineExpression(.invalid(error))
    }
  }
}

extension Array: PipelineOperand where Element: PipelineOperand {
  /// An array of the elements.
  public var pipelineExpression: PipelineExpression {
    PipelineExpression(.function("array", map(\.pipelineExpression)))
  }
}

// MARK: - Description

extension PipelineExpression: CustomStringConvertible {
  /// The expression in readable form, for logs and explanations.
  public var description: String {
    switch form {
    case .constant(let value): "\(value)"
    case .field(let field): field.description
    case .variable(let name): "$\(name)"
    case .function(let name, let arguments):
      "\(name)(\(arguments.map(\.description).joined(separator: ", ")))"
    case .invalid(let error): "an expression that cannot be asked: \(error)"
    }
  }
}
