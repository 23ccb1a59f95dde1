// Determines in which field of a document each property of a type is stored. It makes values of the
// type from examples, encodes them as documents are, and compares. The field that holds the
// property's value in every one of them is the property's field. This uses the type's own coding,
// so coding keys, strategies, wrappers and types that encode by hand need no rules here. For a type
// without possible examples, properties are found by their names: see UnmadeModel.

internal import OndolEngine

/// How a type is stored. Determined once for each type and coding.
final class ModelFields<Model: Codable & Sendable>: Sendable {
  /// The type, made from examples.
  private struct Sample: Sendable {
    var model: Model
    var fields: [String: Value]
    var documentID: String?
  }

  let encoder: DocumentEncoder
  let decoder: DocumentDecoder
  private let samples: Result<[Sample], UnmadeModel>
  private let known = Guarded(KnownPaths())

  private init(_ encoder: DocumentEncoder, _ decoder: DocumentDecoder, in database: Database) {
    self.encoder = encoder
    self.decoder = decoder
    samples = Result { () throws(UnmadeModel) in
      try Self.samples(encoder, decoder, in: database)
    }
  }

  // MARK: - Samples

  private static func samples(
    _ encoder: DocumentEncoder, _ decoder: DocumentDecoder, in database: Database
  ) throws(UnmadeModel) -> [Sample] {
    let first = try sample(digit: nil, [:], encoder, decoder, in: database)
    var samples = [first.sample]
    var digit = 0
    while first.numbers.count >> digit > 0 {
      let next = try sample(digit: digit, first.numbers, encoder, decoder, in: database)
      samples.append(next.sample)
      digit += 1
    }
    return samples
  }

  private static func sample(
    digit: Int?, _ numbers: [String: Int], _ encoder: DocumentEncoder,
    _ decoder: DocumentDecoder, in database: Database
  ) throws(UnmadeModel) -> (sample: Sample, numbers: [String: Int]) {
    let probe = Probe(digit: digit, numbers: numbers, in: database)
    do {
      let model = try Model(from: ProbeDecoder(probe, userInfo: decoder.userInfo))
      let sample = Sample(
        model: model, fields: try encoder.encode(model), documentID: probe.documentID)
      return (sample, probe.numbers)
    } catch let failure as ProbeFailure {
      throw UnmadeModel(field: failure.field, reason: failure.reason, keys: probe.keys)
    } catch {
      throw UnmadeModel(
        field: nil, reason: "it takes no examples: \(error); conform it to FieldExamples",
        keys: probe.keys)
    }
  }

  // MARK: - Fields

  /// The field that a property is stored in.
  ///
  /// - Throws: `.invalidArgument` when it is not stored, as computed properties are not;
  ///   `.failedPrecondition` when no values of the type are known and the property's name does not
  ///   determine the field.
  /// - Complexity: O(1), the first time O(size of the type).
  func path<Content: Encodable>(
    of property: ModelProperty<Model, Content>
  ) throws(DatabaseError) -> FieldPath {
    if let path = known.withLock({ $0.path(of: property.keyPaths) }) { return try path.get() }
    let path = Result { () throws(DatabaseError) in try find(property) }
    known.withLock { $0.put(path, of: property.keyPaths) }
    return try path.get()
  }

  private func find<Content: Encodable>(
    _ property: ModelProperty<Model, Content>
  ) throws(DatabaseError) -> FieldPath {
    let samples: [Sample]
    switch self.samples {
    case .success(let made): samples = made
    case .failure(let unmade):
      return try unmade.path(of: property, encoder.keyStrategy)
    }
    var contents: [Value] = []
    for sample in samples {
      contents.append(try encoder.anyInput(of: property.read(sample.model)).plainValue())
    }
    var names: [[String]] = []
    for (name, value) in samples[0].fields { Self.paths(of: [name], value, to: contents, &names) }
    names.removeAll { names in
      zip(samples, contents).contains { lookUp(names[...], in: $0.fields) != $1 }
    }
    // A map with one field changes when the field does, and does not equal the field.
    if names.count == 1 { return FieldPath(names[0]) }
    if names.isEmpty, zip(samples, contents).allSatisfy({ $0.documentID == $1.string }) {
      return .documentID()
    }
    throw DatabaseError(
      .invalidArgument,
      names.isEmpty
        ? "\(property) is not stored in a field of its own, so nothing can be asked about it"
        : "\(property) may be each of \(names.map { $0.joined(separator: ".") }.sorted()), which"
          + " hold the same in all examples of \(Model.self)")
  }

  /// Adds the paths at and below `path` that hold the values that `contents` begin with.
  private static func paths(
    of path: [String], _ value: Value, to contents: [Value], _ paths: inout [[String]]
  ) {
    if value == contents[0] { paths.append(path) }
    guard case .map(let fields) = value else { return }
    for (name, value) in fields { Self.paths(of: path + [name], value, to: contents, &paths) }
  }

  /// The stored form of a value that a property is compared with or set to.
  func input<Content: Encodable>(of content: Content) throws(DatabaseError) -> FieldInput {
    try encoder.anyInput(of: content)
  }
}

/// The fields of properties that were requested before.
private struct KnownPaths {
  typealias Path = Result<FieldPath, DatabaseError>

  private var paths: [[AnyKeyPath]: Path] = [:]
  /// The same by the identity of the key path object: each key path in a program's code is one
  /// object. Hashing the parts of a key path takes longer than looking up a document.
  private var objects: [ObjectIdentifier: (keyPath: AnyKeyPath, path: Path)] = [:]
  /// The most objects that are kept: programs also make key paths at run time.
  private static let objectLimit = 1_024

  mutating func path(of keyPaths: [AnyKeyPath]) -> Path? {
    guard keyPaths.count == 1 else { return paths[keyPaths] }
    if let known = objects[ObjectIdentifier(keyPaths[0])] { return known.path }
    guard let path = paths[keyPaths] else { return nil }
    note(path, of: keyPaths[0])
    return path
  }

  mutating func put(_ path: Path, of keyPaths: [AnyKeyPath]) {
    paths[keyPaths] = path
    if keyPaths.count == 1 { note(path, of: keyPaths[0]) }
  }

  private mutating func note(_ path: Path, of keyPath: AnyKeyPath) {
    guard objects.count < Self.objectLimit else { return }
    objects[ObjectIdentifier(keyPath)] = (keyPath, path)
  }
}

// MARK: - Known types

/// What is known of types, for the whole process.
private let knownModels = Guarded<[ModelKey: any Sendable]>([:])

private struct ModelKey: Sendable, Hashable {
  var type: ObjectIdentifier
  var keyStrategy: KeyStrategy
  var dateStrategy: DateStrategy
}

extension ModelFields {
  /// What is known of the type; determined now when it was not before.
  static func of(
    _ encoder: DocumentEncoder, _ decoder: DocumentDecoder, in database: Database
  ) -> ModelFields {
    let key = ModelKey(
      type: ObjectIdentifier(Model.self), keyStrategy: encoder.keyStrategy,
      dateStrategy: encoder.dateStrategy)
    // A cached entry keeps its coders, so only coders that are equal for everyone with the same key
    // qualify.
    let isPlain =
      decoder.defaults.isEmpty && decoder.userInfo.isEmpty && encoder.userInfo.isEmpty
      && decoder.keyStrategy == encoder.keyStrategy
      && decoder.dateStrategy == encoder.dateStrategy
    if isPlain, let known = knownModels.withLock({ $0[key] }) as? ModelFields { return known }
    let fields = ModelFields(encoder, decoder, in: database)
    if isPlain { knownModels.withLock { $0[key] = fields } }
    return fields
  }
}
