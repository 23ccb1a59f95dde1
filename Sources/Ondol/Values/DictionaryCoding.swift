// Dictionaries in Codable types. Their keys are data and not names of properties, so no strategy
// changes them. Swift's own coding makes a keyed container of dictionaries whose keys are texts or
// `Int`s. Of all others, such as `[UUID: …]`, it makes a list of key, value, key, value, in which
// no field can be found and which may not contain arrays. Here they become maps whenever their keys
// encode as texts or integers.

/// A dictionary that can be encoded.
protocol EncodableDictionary {
  /// Whether Swift's own coding makes a keyed container of it.
  static var isKeyed: Bool { get }

  /// Its fields; nil when Swift's own coding is right, or the only way.
  ///
  /// - Parameter path: the location of the dictionary.
  func fields(
    _ strategies: DocumentEncoder, at path: CodingPath
  ) throws -> [(name: String, content: EncodedNode.Content)]?
}

extension Dictionary: SpeciallyEncoded {}

extension Dictionary: EncodableDictionary where Key: Encodable, Value: Encodable {
  static var isKeyed: Bool { Key.self is any CodingKeyRepresentable.Type }

  func fields(
    _ strategies: DocumentEncoder, at path: CodingPath
  ) throws -> [(name: String, content: EncodedNode.Content)]? {
    if Self.isKeyed { return nil }
    var values: [String: Value] = [:]
    for (key, value) in self {
      guard let name = try Self.name(of: key, strategies, path) else { return nil }
      // If it is not nil, two keys have become the same.
      if try values.put(value, at: name) != nil {
        throw DatabaseError(
          .invalidArgument, "two keys are the text \"\(name)\" once they are encoded",
          field: dotted(path.keys))
      }
    }
    return try values.map { name, value in
      (name, try Ondol.encode(value, at: path.appending(PlainKey(name)), strategies))
    }
  }

  /// The field name of the key; nil when it encodes as something other than a text or an integer.
  private static func name(
    of key: Key, _ strategies: DocumentEncoder, _ path: CodingPath
  ) throws -> String? {
    let input: FieldInput
    switch try Ondol.encode(key, at: path, strategies) {
    case .input(let direct): input = direct
    case .node(let node): input = try node.input()
    }
    return switch input.value {
    case .string(let text): text
    case .integer(let number): "\(number)"
    default: nil
    }
  }
}

/// A dictionary that can be decoded.
protocol DecodableDictionary {
  /// The dictionary, from a map; nil when Swift's own coding is right.
  static func decoded(by decoder: FieldDecoder) throws -> Self?
}

extension Dictionary: DecodableDictionary where Key: Decodable, Value: Decodable {
  static func decoded(by decoder: FieldDecoder) throws -> [Key: Value]? {
    guard !(Key.self is any CodingKeyRepresentable.Type), let map = decoder.source.map else {
      return nil
    }
    var result: [Key: Value] = [:]
    for name in map.names {
      guard let source = map[name] else { continue }
      let place = decoder.path.appending(PlainKey(name))
      let value = try FieldDecoder(source: source, path: place, context: decoder.context)
        .decode(Value.self)
      let key = try key(named: name, place, decoder.context)
      if result.updateValue(value, forKey: key) != nil {
        throw DecodingError.dataCorrupted(
          .init(codingPath: place.keys, debugDescription: "'\(name)' is a key that is there twice"))
      }
    }
    return result
  }

  private static func key(
    named name: String, _ path: CodingPath, _ context: DecodingContext
  ) throws -> Key {
    func decode(_ value: Ondol.Value) throws -> Key {
      try FieldDecoder(source: .value(value), path: path, context: context).decode(Key.self)
    }
    do {
      return try decode(.string(name))
    } catch {
      guard let number = Int64(name) else { throw error }
      return try decode(.integer(number))
    }
  }
}
