// From a Codable value to the fields of a document. The encoder builds a tree of nodes rather than
// values, because Codable may hand out a nested container and fill it later; the tree becomes field
// inputs at the end. Types that a document stores natively (dates, bytes, points) never see their
// own `encode(to:)`.
//
// Rules: a nil optional is left out, a `nil` inside an array or written with `encodeNil` is null,
// an unsigned number over Int64's end is refused, and the outermost value must be keyed.

/// Turns `Encodable` values into the fields of a document.
///
/// `Date` becomes a timestamp (microseconds, rounded down), `Data` bytes, `URL` a string. `nil` is
/// omitted.
public struct DocumentEncoder: Sendable {
  /// How the names of properties become the names of fields.
  public var keyStrategy: KeyStrategy
  /// How dates are stored.
  public var dateStrategy: DateStrategy

  /// Makes an encoder.
  public init(
    keyStrategy: KeyStrategy = .unchanged, dateStrategy: DateStrategy = .timestamp
  ) {
    self.keyStrategy = keyStrategy
    self.dateStrategy = dateStrategy
  }

  /// The fields of `value`.
  ///
  /// - Throws: `.invalidArgument` naming the field, when `value` is not keyed, holds a number over
  ///   64 bits, or its own `encode(to:)` throws.
  /// - Complexity: O(size of `value`).
  public func encode<Content: Encodable>(
    _ value: Content
  ) throws(DatabaseError) -> [String: Value] {
    var fields: [String: Value] = [:]
    for (name, input) in try inputs(of: value) {
      do throws(DatabaseError) {
        fields[name] = try input.plainValue()
      } catch {
        throw error.within(field: name)
      }
    }
    return fields
  }

  /// The fields of `value`, instructions included.
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
    let root = EncodedNode()
    do {
      try Ondol.encode(value, into: root, at: CodingPath.root, self)
    } catch let error as DatabaseError {
      throw error
    } catch let error as EncodingError {
      throw DatabaseError(.invalidArgument, describe(error, type: Content.self))
    } catch {
      throw DatabaseError(.invalidArgument, "\(Content.self) cannot be encoded: \(error)")
    }
    let input = try root.input()
    switch input.form {
    case .value(.map), .map: return input
    case .value, .operation:
      throw DatabaseError(
        .invalidArgument,
        "a document is a map of fields, but \(Content.self) encodes as a single value or a list")
    }
  }

  private func describe(_ error: EncodingError, type: any Any.Type) -> String {
    guard case .invalidValue(_, let context) = error else { return "\(type): \(error)" }
    let place = dotted(context.codingPath)
    return "\(type)\(place.isEmpty ? "" : ", field '\(place)'"): \(context.debugDescription)"
  }
}

/// One place in the tree that is being encoded. A class, because containers write into it after it
/// has been handed out.
final class EncodedNode {
  enum Content {
    case nothing
    case leaf(FieldInput)
    /// Of two nodes with one name the later counts.
    case map([(name: String, node: EncodedNode)])
    case list([EncodedNode])
  }

  var content = Content.nothing
  /// Why this place cannot be encoded, where Codable left no way to throw.
  var failure: String?

  /// The node as an input. A place nobody wrote to is an empty map, as in JSONEncoder.
  func input() throws(DatabaseError) -> FieldInput {
    if let failure { throw DatabaseError(.invalidArgument, failure) }
    switch content {
    case .nothing: return .map([:])
    case .leaf(let input): return input
    case .map(let children):
      if let fields = plainFields(of: children) { return FieldInput(.map(fields)) }
      var fields: [String: FieldInput] = [:]
      fields.reserveCapacity(children.count)
      for (name, child) in children {
        do throws(DatabaseError) {
          fields[name] = try child.input()
        } catch {
          throw error.within(field: name)
        }
      }
      return .map(fields)
    case .list(let children):
      var elements: [Value] = []
      elements.reserveCapacity(children.count)
      for (index, child) in children.enumerated() {
        do throws(DatabaseError) {
          elements.append(try child.input().plainValue())
        } catch {
          throw error.within(index: index)
        }
      }
      return FieldInput(.array(elements))
    }
  }

  /// The fields, when all of them are values that are known already, as most are.
  private func plainFields(
    of children: [(name: String, node: EncodedNode)]
  ) -> [String: Value]? {
    var fields = [String: Value](minimumCapacity: children.count)
    for (name, child) in children {
      switch child.content {
      case .leaf(let input):
        guard child.failure == nil, let value = input.value else { return nil }
        fields[name] = value
      case .map(let grandchildren):
        guard child.failure == nil, let nested = child.plainFields(of: grandchildren) else {
          return nil
        }
        fields[name] = .map(nested)
      case .nothing, .list: return nil
      }
    }
    return fields
  }

  func child(_ key: String) -> EncodedNode {
    let made = EncodedNode()
    guard case .map(var children) = content else { return made }
    content = .nothing  // so that the list is changed in place, not copied
    children.append((key, made))
    content = .map(children)
    return made
  }

  func appendChild() -> EncodedNode {
    let made = EncodedNode()
    guard case .list(var children) = content else { return made }
    content = .nothing
    children.append(made)
    content = .list(children)
    return made
  }

  var listCount: Int {
    if case .list(let children) = content { children.count } else { 0 }
  }

  func becomeMap(_ path: CodingPath) {
    switch content {
    case .nothing: content = .map([])
    case .map: break
    case .leaf, .list: failure = "'\(dotted(path.keys))' was encoded twice, in two different forms"
    }
  }

  func becomeList(_ path: CodingPath) {
    switch content {
    case .nothing: content = .list([])
    case .list: break
    case .leaf, .map: failure = "'\(dotted(path.keys))' was encoded twice, in two different forms"
    }
  }
}

struct NodeEncoder: Encoder {
  let node: EncodedNode
  let path: CodingPath
  let strategies: DocumentEncoder

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

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

/// Writes `value` into `node`.
private func encode<Content: Encodable>(
  _ value: Content, into node: EncodedNode, at path: @autoclosure () -> CodingPath,
  _ strategies: DocumentEncoder
) throws {
  do {
    if let direct = try directInput(of: value, strategies) {
      node.content = .leaf(direct)
      return
    }
  } catch {
    var error = error
    error.field = dotted(path().keys)
    throw error
  }
  var strategies = strategies
  if value is any StringKeyedDictionary { strategies.keyStrategy = .unchanged }
  try value.encode(to: NodeEncoder(node: node, path: path(), strategies: strategies))
}

private struct KeyedNodes<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let node: EncodedNode
  let path: CodingPath
  let strategies: DocumentEncoder

  var codingPath: [any CodingKey] { path.keys }

  mutating func encodeNil(forKey key: Key) throws {
    node.child(name(key)).content = .leaf(FieldInput(.null))
  }

  // What most properties are, without asking the type at run time what it is.
  mutating func encode(_ value: String, forKey key: Key) throws { put(.string(value), key) }
  mutating func encode(_ value: Bool, forKey key: Key) throws { put(.boolean(value), key) }
  mutating func encode(_ value: Int, forKey key: Key) throws { put(.integer(Int64(value)), key) }
  mutating func encode(_ value: Int64, forKey key: Key) throws { put(.integer(value), key) }
  mutating func encode(_ value: Double, forKey key: Key) throws { put(.double(value), key) }

  private func put(_ value: Value, _ key: Key) {
    node.child(name(key)).content = .leaf(FieldInput(value))
  }

  mutating func encode<Content: Encodable>(_ value: Content, forKey key: Key) throws {
    if Content.self == [String].self, let texts = value as? [String] {
      return put(.array(texts.map { .string($0) }), key)
    }
    if value is any OmittedFromDocuments { return }
    try Ondol.encode(value, into: node.child(name(key)), at: path.appending(key), strategies)
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
    NodeEncoder(node: node.child(name(key)), path: path.appending(key), strategies: strategies)
  }

  private func name(_ key: some CodingKey) -> String { strategies.keyStrategy.name(for: key) }
}

private struct UnkeyedNodes: UnkeyedEncodingContainer {
  let node: EncodedNode
  let path: CodingPath
  let strategies: DocumentEncoder

  var codingPath: [any CodingKey] { path.keys }
  var count: Int { node.listCount }

  mutating func encodeNil() throws {
    node.appendChild().content = .leaf(FieldInput(.null))
  }

  mutating func encode<Content: Encodable>(_ value: Content) throws {
    let key = PlainKey(count)
    try Ondol.encode(value, into: node.appendChild(), at: path.appending(key), strategies)
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
    let key = PlainKey(count)
    return NodeEncoder(
      node: node.appendChild(), path: path.appending(key), strategies: strategies)
  }
}

private struct SingleNode: SingleValueEncodingContainer {
  let node: EncodedNode
  let path: CodingPath
  let strategies: DocumentEncoder

  var codingPath: [any CodingKey] { path.keys }

  mutating func encodeNil() throws {
    node.content = .leaf(FieldInput(.null))
  }

  mutating func encode<Content: Encodable>(_ value: Content) throws {
    try Ondol.encode(value, into: node, at: path, strategies)
  }
}
