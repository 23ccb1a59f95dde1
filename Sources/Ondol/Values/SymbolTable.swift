// Documents of a collection repeat the same few names, so they store numbers and the collection
// stores the names once. A name keeps its number for ever; new names get the next one, and whoever
// encodes a document persists what was added in the same commit.

internal import OndolEngine

/// The names of fields in a collection, by number and the other way round.
struct SymbolTable: Sendable {
  /// Maps with a name beyond these store their names themselves: such maps are used as
  /// dictionaries, and a table of all their keys would only be another copy of them.
  static let maximumCount = 60_000

  /// The names in the order of their numbers, from 0.
  private(set) var names: [String] = []
  private var numbers: [ExactText: UInt32] = [:]

  /// How many names may be added.
  private let limit: Int

  /// A table without names, to which `limit` can be added; with a limit of 0 all maps store their
  /// names themselves.
  init(limit: Int = maximumCount) {
    self.limit = limit
  }

  /// A table with `names`, which must differ from each other, in the order of their numbers.
  init(names: [String]) throws(MalformedBytes) {
    limit = Self.maximumCount
    numbers.reserveCapacity(names.count)
    for name in names {
      try define(name)
    }
  }

  var count: Int { names.count }

  /// Adds a name that was read from a file.
  mutating func define(_ name: String) throws(MalformedBytes) {
    guard names.count < Self.maximumCount else {
      throw MalformedBytes(at: 0, "more than \(Self.maximumCount) names of fields")
    }
    guard numbers.updateValue(UInt32(names.count), forKey: ExactText(name)) == nil else {
      throw MalformedBytes(at: 0, "the name of a field twice: \(name)")
    }
    names.append(name)
  }

  /// The name with the number `symbol`.
  func name(_ symbol: UInt32) -> String? {
    symbol < UInt32(names.count) ? names[Int(symbol)] : nil
  }

  /// The number of `name`, or nil when no document has used it.
  func symbol(_ name: String) -> UInt32? {
    numbers[ExactText(name)]
  }

  /// The number of `name`, a new one if need be; nil when the table is full.
  ///
  /// Throws `.invalidArgument` when no field can have the name.
  mutating func symbol(adding name: String) throws(DatabaseError) -> UInt32? {
    let text = ExactText(name)
    if let symbol = numbers[text] { return symbol }
    if let problem = ResourceName.problem(withField: name) {
      throw DatabaseError(
        .invalidArgument, "\"\(name)\" cannot name a field: \(problem)",
        field: FieldPath.quoted(name))
    }
    guard names.count < limit else { return nil }
    let symbol = UInt32(names.count)
    numbers[text] = symbol
    names.append(name)
    return symbol
  }
}

/// A text that equals another only when the bytes do.
struct ExactText: Hashable, Sendable {
  let text: String

  init(_ text: String) {
    self.text = text
  }

  static func == (left: ExactText, right: ExactText) -> Bool {
    left.text.utf8Bytes.compare(right.text.utf8Bytes) == 0
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(text.utf8Bytes)
  }
}

/// A field path made ready for one collection: the names with their numbers.
struct ResolvedPath: Sendable {
  struct Step: Sendable {
    var name: String
    /// Nil when the collection's table lacks the name; it can still be in a map that has its own
    /// names.
    var symbol: UInt32?
  }

  private(set) var steps: [Step]

  /// Throws `.invalidArgument` when the path is wrong or means the document's id.
  init(_ path: FieldPath, in symbols: SymbolTable) throws(DatabaseError) {
    steps = try path.names().map { Step(name: $0, symbol: symbols.symbol($0)) }
  }
}
