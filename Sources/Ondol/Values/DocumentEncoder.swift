// Encodes a Codable value into the fields of a document. The encoder makes a node for each
// container, because Codable may hand out a nested container and fill it later. Finished values go
// straight into the fields. Types that a document stores natively (dates, bytes, points) never see
// their own `encode(to:)`.
//
// Rules: a nil optional is left out, a `nil` inside an array or written with `encodeNil` is null,
// an unsigned number above Int64's maximum is a decimal, and the outermost value must be keyed.

/// Turns `Encodable` values into the fields of a document.
///
/// `Date` becomes a timestamp, the nearest microsecond, unless `dateStrategy` says otherwise;
/// `Data` becomes bytes and `URL` a string. A property that is nil is left out, unless it is an
/// ``ExplicitNull``. Firestore's encoder does the same.
///
/// A dictionary becomes a map when its keys are texts or integers or encode as such, as `UUID` and
/// enums with raw values do. With any other keys it is a list of key, value, key, value. A
/// `Decimal` is stored exactly, and so is a `UInt64` above `Int64.max`.
public struct DocumentEncoder: Sendable {
  /// How the names of properties become the names of fields.
  public var keyStrategy: KeyStrategy
  /// How dates are stored.
  public var dateStrategy: DateStrategy
  /// The `userInfo` of the encoder that types receive.
  public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

  /// Makes an encoder.
  ///
  /// - Parameters:
  ///   - keyStrategy: how the names of properties become the names of fields.
  ///   - dateStrategy: how dates are stored. Read them with the same strategy.
  public init(
    keyStrategy: KeyStrategy = .unchanged, dateStrategy: DateStrategy = .timestamp
  ) {
    self.keyStrategy = keyStrategy
    self.dateStrategy = dateStrategy
  }

  /// The fields of `value`. Instructions, such as a ``ServerTimestamp`` that is nil, have no value
  /// and are refused here; writes accept them.
  ///
  /// - Parameter value: encodes as a map.
  /// - Throws: `.invalidArgument`, naming the field, when `value` is not keyed, contains a decimal
  ///   of 39 digits, or its own `encode(to:)` throws.
  /// - Complexity: O(size of `value`).
  public func encode<Content: Encodable>(
    _ value: Content
  ) throws(DatabaseError) -> [String: Value] {
    var fields: [String: Value] = [:]
    for (name, input) in try inputs(of: value) {
      do throws(DatabaseError) {
        try fields.put(input.plainValue(), at: name)
      } catch {
        throw error.within(field: name)
      }
    }
    return fields
  }

  /// The fields of `value`, including instructions.
  func inputs<Content: Encodable>(
    of value: Content
  ) throws(DatabaseError) -> [String: FieldInput] {
    switch try input(of: value).form {
    case .value(.map(let fields)): return fields.mapValues { FieldInput($0) }
    case .map(let fields): return fields
    case .value, .operation: return [:]
    }
  }

  /// The document as an input, which is a map.
  func input<Content: Encodable>(of value: Content) throws(DatabaseError) -> FieldInput {
    let input = try anyInput(of: value)
    switch input.form {
    case .value(.map), .map: return input
    case .value, .operation:
      throw DatabaseError(
        .invalidArgument,
        "a document is a map of fields, but \(Content.self) encodes as a single value or a list")
    }
  }

  /// The encoded form of a value, which may be a single value or a list.
  func anyInput<Content: Encodable>(of value: Content) throws(DatabaseError) -> FieldInput {
    if let plain = Self.plainValue(of: value) { return FieldInput(plain) }
    let root = EncodedNode()
    do {
      if case .input(let input) = try Ondol.encode(value, into: root, at: .root, self) {
        root.becomeLeaf(input)
      }
    } catch let error as DatabaseError {
      throw error
    } catch let error as EncodingError {
      throw DatabaseError(.invalidArgument, describe(error, type: Content.self))
    } catch {
      throw DatabaseError(.invalidArgument, "\(Content.self) cannot be encoded: \(error)")
    }
    return try root.input()
  }

  /// The form of most operands, without a container for one value.
  private static func plainValue<Content>(of content: Content) -> Value? {
    if Content.self == String.self { return (content as? String).map { .string($0) } }
    if Content.self == Int.self { return (content as? Int).map { .integer(Int64($0)) } }
    if Content.self == Double.self { return (content as? Double).map { .double($0) } }
    if Content.self == Bool.self { return (content as? Bool).map { .boolean($0) } }
    return nil
  }

  private func describe(_ error: EncodingError, type: any Any.Type) -> String {
    guard case .invalidValue(_, let context) = error else { return "\(type): \(error)" }
    let place = dotted(context.codingPath)
    return "\(type)\(place.isEmpty ? "" : ", field '\(place)'"): \(context.debugDescription)"
  }
}

/// One container that is being encoded, or the single value in its place. A class, because
/// containers are written to after they have been handed out.
final class EncodedNode {
  enum Form {
    case nothing
    case leaf
    case map
    case list
  }

  enum Content {
    case input(FieldInput)
    case node(EncodedNode)

    fileprivate var settledValue: Value? {
      switch self {
      case .input(let input): input.value
      case .node(let node): node.settledValue
      }
    }
  }

  private var form = Form.nothing
  private var leaf = FieldInput(.null)
  private var fields: [String: Value] = [:]
  private var elements: [Value] = []
  /// The fields and elements that are instructions, or containers that may still be filled. Until
  /// such an element is known, there is a null in its place.
  private var unsettled: [(name: String, index: Int, content: Content)] = []
  /// Why this place cannot be encoded, if Codable left no way to throw.
  private var failure: String?

  var count: Int { elements.count }

  /// The node as an input. A place that was never written is an empty map, as in JSONEncoder.
  func input() throws(DatabaseError) -> FieldInput {
    if let failure { throw DatabaseError(.invalidArgument, failure) }
    switch form {
    case .nothing: return .map([:])
    case .leaf: return leaf
    case .map: return try map()
    case .list: return try list()
    }
  }

  /// The value, when all of it is written and contains no instruction. This is usual once a type
  /// has encoded itself.
  private var settledValue: Value? {
    guard unsettled.isEmpty, failure == nil else { return nil }
    return switch form {
    case .nothing: nil
    case .leaf: leaf.value
    case .map: .map(fields)
    case .list: .array(elements)
    }
  }

  private func map() throws(DatabaseError) -> FieldInput {
    guard !unsettled.isEmpty else { return FieldInput(.map(fields)) }
    var inputs = fields.mapValues { FieldInput($0) }
    for (name, _, content) in unsettled {
      do throws(DatabaseError) {
        try inputs.put(try Self.input(content), at: name)
      } catch {
        throw error.within(field: name)
      }
    }
    return .map(inputs)
  }

  private func list() throws(DatabaseError) -> FieldInput {
    for (_, index, content) in unsettled {
      do throws(DatabaseError) {
        elements[index] = try Self.input(content).plainValue()
      } catch {
        throw error.within(index: index)
      }
    }
    return FieldInput(.array(elements))
  }

  private static func input(_ content: Content) throws(DatabaseError) -> FieldInput {
    switch content {
    case .input(let input): input
    case .node(let node): try node.input()
    }
  }

  // MARK: - Writing

  func becomeLeaf(_ input: FieldInput) {
    form = .leaf
    leaf = input
  }

  func becomeMap(_ path: CodingPath) {
    // Room for the fields of most documents at once.
    if form == .nothing { fields.reserveCapacity(12) }
    become(.map, path)
  }

  func becomeList(_ path: CodingPath) {
    become(.list, path)
  }

  private func become(_ wanted: Form, _ path: CodingPath) {
    guard form == .nothing || form == wanted else {
      failure = "'\(dotted(path.keys))' was encoded twice, in two different forms"
      return
    }
    form = wanted
  }

  /// Sets a field. The later of two with the same name counts.
  func set(_ name: String, _ value: Value) {
    if !unsettled.isEmpty { forget(name) }
    do throws(DatabaseError) {
      try fields.put(value, at: name)
    } catch {
      failure = error.message
    }
  }

  func set(_ name: String, _ content: Content) {
    if let value = content.settledValue { return set(name, value) }
    fields.remove(exactly: name)
    forget(name)
    unsettled.append((name, 0, content))
  }

  /// Adds fields that do not exist yet.
  func add(_ others: [String: Value]) {
    for (name, value) in others
    where fields[exactly: name] == nil && !unsettled.contains(where: { isSame($0.name, name) }) {
      set(name, value)
    }
  }

  private func forget(_ name: String) {
    unsettled.removeAll { isSame($0.name, name) }
  }

  func append(_ value: Value) {
    elements.append(value)
  }

  func append(_ content: Content) {
    if let value = content.settledValue { return append(value) }
    unsettled.append(("", elements.count, content))
    elements.append(.null)
  }
}

struct NodeEncoder: Encoder {
  let node: EncodedNode
  let path: CodingPath
  let strategies: DocumentEncoder

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { strategies.userInfo }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    node.becomeMap(path)
    return KeyedEncodingContainer(KeyedNodes<Key>(node: node, path: path, strategies: strategies))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    node.becomeList(path)
    return UnkeyedNodes(node: node, path: path, strategies: strategies)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer {
    SingleNode(node: node, path: path, strategies: strategies)
  }
}

/// The encoded form of `value`: an input if that is known at once, otherwise the node that it has
/// written itself into, which is `node` if there is one already.
func encode<Content: Encodable>(
  _ value: Content, into node: @autoclosure () -> EncodedNode = EncodedNode(),
  at path: @autoclosure () -> CodingPath, _ strategies: DocumentEncoder
) throws -> EncodedNode.Content {
  var strategies = strategies
  // Checked once for all, because each such check takes as long as encoding a number.
  if Content.self is any SpeciallyEncoded.Type {
    do {
      if let input = try directInput(of: value, strategies) { return .input(input) }
    } catch {
      var error = error
      error.field = dotted(path().keys)
      throw error
    }
    if let dictionary = value as? any EncodableDictionary {
      strategies.keyStrategy = .unchanged
      if let fields = try dictionary.fields(strategies, at: path()) {
        let node = node()
        node.becomeMap(path())
        for (name, content) in fields { node.set(name, content) }
        return .node(node)
      }
    }
  }
  let node = node()
  try value.encode(to: NodeEncoder(node: node, path: path(), strategies: strategies))
  return .node(node)
}

private struct KeyedNodes<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let node: EncodedNode
  let path: CodingPath
  let strategies: DocumentEncoder

  var codingPath: [any CodingKey] { path.keys }

  mutating func encodeNil(forKey key: Key) throws { put(.null, key) }

  // The types of most properties, encoded without checking the type at run time.
  mutating func encode(_ value: String, forKey key: Key) throws { put(.string(value), key) }
  mutating func encode(_ value: Bool, forKey key: Key) throws { put(.boolean(value), key) }
  mutating func encode(_ value: Int, forKey key: Key) throws { put(.integer(Int64(value)), key) }
  mutating func encode(_ value: Int64, forKey key: Key) throws { put(.integer(value), key) }
  mutating func encode(_ value: Double, forKey key: Key) throws { put(.double(value), key) }

  private func put(_ value: Value, _ key: Key) {
    node.set(name(key), value)
  }

  mutating func encode<Content: Encodable>(_ value: Content, forKey key: Key) throws {
    if Content.self == [String].self, let texts = value as? [String] {
      return put(.array(texts.map { .string($0) }), key)
    }
    if Content.self is any OmittedFromDocuments.Type {
      if let others = value as? OtherFields { node.add(others.wrappedValue) }
      return
    }
    node.set(name(key), try Ondol.encode(value, at: path.appending(key), strategies))
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    childEncoder(key).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    childEncoder(key).unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder { childEncoder(PlainKey("super")) }
  mutating func superEncoder(forKey key: Key) -> any Encoder { childEncoder(key) }

  private func childEncoder(_ key: some CodingKey) -> NodeEncoder {
    let child = EncodedNode()
    node.set(name(key), .node(child))
    return NodeEncoder(node: child, path: path.appending(key), strategies: strategies)
  }

  private func name(_ key: some CodingKey) -> String { strategies.keyStrategy.name(for: key) }
}

private struct UnkeyedNodes: UnkeyedEncodingContainer {
  let node: EncodedNode
  let path: CodingPath
  let strategies: DocumentEncoder

  var codingPath: [any CodingKey] { path.keys }
  var count: Int { node.count }

  mutating func encodeNil() throws { node.append(.null) }
  mutating func encode(_ value: String) throws { node.append(.string(value)) }
  mutating func encode(_ value: Int) throws { node.append(.integer(Int64(value))) }
  mutating func encode(_ value: Double) throws { node.append(.double(value)) }

  mutating func encode<Content: Encodable>(_ value: Content) throws {
    node.append(try Ondol.encode(value, at: path.appending(PlainKey(count)), strategies))
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) -> KeyedEncodingContainer<Nested> {
    childEncoder().container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    childEncoder().unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder { childEncoder() }

  private func childEncoder() -> NodeEncoder {
    let path = path.appending(PlainKey(count))
    let child = EncodedNode()
    node.append(.node(child))
    return NodeEncoder(node: child, path: path, strategies: strategies)
  }
}

private struct SingleNode: SingleValueEncodingContainer {
  let node: EncodedNode
  let path: CodingPath
  let strategies: DocumentEncoder

  var codingPath: [any CodingKey] { path.keys }

  mutating func encodeNil() throws {
    node.becomeLeaf(FieldInput(.null))
  }

  mutating func encode<Content: Encodable>(_ value: Content) throws {
    if case .input(let input) = try Ondol.encode(value, into: node, at: path, strategies) {
      node.becomeLeaf(input)
    }
  }
}
