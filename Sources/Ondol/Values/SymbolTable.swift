// Documents of a collection repeat the same few names, so they store numbers and the collection
// stores the names once. A name keeps its number for ever, and new names get the next one. The code
// that encodes a document stores the added names in the same commit.

internal import OndolEngine

/// The names of fields in a collection, by number and the other way round.
struct SymbolTable: Sendable {
  /// Maps with a name beyond this number store their names themselves. Such maps are used as
  /// dictionaries, and a table of all their keys would only be another copy of them.
  static let maximumCount = 60_000

  /// The names in the order of their numbers, from 0.
  private(set) var names: [String] = []

  /// A hash table of the numbers, each plus one, and 0 in a free place. Every decoded field looks
  /// one up, so it is smaller and faster than a dictionary. It has a power of two of places, at
  /// most half of them used. A name is at its hash or in the next free place after it.
  private var places: [UInt32] = []

  /// The most names that may be added.
  private let limit: Int

  /// What the documents with these names have that not all versions know.
  var forms: ValueForms = []

  private var spellings = Spellings()

  /// Whether two of the names are spellings of one, so that a map with both cannot be read.
  var hasTwoSpellings: Bool { spellings.hasTwoOfOne }

  /// Different in every process, so that an attacker cannot choose names that collide.
  private static let seed = UInt64(truncatingIfNeeded: Hasher().finalize())

  /// A table without names, to which `limit` can be added. With a limit of 0, all maps store their
  /// names themselves.
  init(limit: Int = maximumCount) {
    self.limit = limit
  }

  /// A table with `names`, which must differ from each other, in the order of their numbers.
  init(names: [String]) throws(MalformedBytes) {
    limit = Self.maximumCount
    for name in names {
      try define(name)
    }
  }

  var count: Int { names.count }
  /// How many more names fit.
  var room: Int { limit - names.count }

  /// Adds a name that was read from a file.
  mutating func define(_ name: String) throws(MalformedBytes) {
    guard names.count < Self.maximumCount else {
      throw MalformedBytes(at: 0, "more than \(Self.maximumCount) names of fields")
    }
    guard symbol(name) == nil else {
      throw MalformedBytes(at: 0, "the name of a field twice: \(name)")
    }
    append(name)
  }

  /// The name with the number `symbol`.
  func name(_ symbol: UInt32) -> String? {
    symbol < UInt32(names.count) ? names[Int(symbol)] : nil
  }

  /// The number of `name`; nil when no document has used it.
  func symbol(_ name: String) -> UInt32? {
    guard !places.isEmpty else { return nil }
    let found = places[place(of: name)]
    return found == 0 ? nil : found - 1
  }

  /// Whether `symbol` is the number of `name`, if that can be decided quickly: for ASCII names of
  /// the same length, Swift's comparison and that of the bytes agree.
  func isCertainly(_ name: String, _ symbol: UInt32) -> Bool {
    guard symbol < UInt32(names.count), spellings.areASCII else { return false }
    let known = names[Int(symbol)]
    return isOneName(known, name) && known.utf8.count == name.utf8.count
  }

  /// The number of `name`, a new one if necessary; nil when the table is full.
  ///
  /// Throws `.invalidArgument` when the name is not valid for a field.
  mutating func symbol(adding name: String) throws(DatabaseError) -> UInt32? {
    if let symbol = symbol(name) { return symbol }
    if let problem = ResourceName.problem(withField: name) {
      throw DatabaseError(
        .invalidArgument, "\"\(name)\" cannot name a field: \(problem)",
        field: FieldPath.quoted(name))
    }
    guard names.count < limit else { return nil }
    append(name)
    return UInt32(names.count - 1)
  }

  /// Gives a new name the next number.
  private mutating func append(_ name: String) {
    spellings.note(name, behind: names)
    names.append(name)
    if 2 * names.count > places.count {
      places = Array(repeating: 0, count: max(16, 2 * places.count))
      for (number, name) in names.enumerated() { places[place(of: name)] = UInt32(number + 1) }
    } else {
      places[place(of: name)] = UInt32(names.count)
    }
  }

  /// The place of `name`, or where it would be.
  private func place(of name: String) -> Int {
    name.withUTF8Bytes { bytes in
      let mask = places.count - 1
      var place = Int(truncatingIfNeeded: KeyHash.hash(bytes, seed: Self.seed)) & mask
      while places[place] != 0, bytes.compare(names[Int(places[place] - 1)]) != 0 {
        place = (place + 1) & mask
      }
      return place
    }
  }
}

/// The names by whose numbers rows were made. A class, so that whether they are those of a
/// collection is checked once for all of the rows.
final class RowNames: Sendable {
  let symbols: SymbolTable

  init(_ symbols: SymbolTable) {
    self.symbols = symbols
  }
}

/// A field path prepared for one collection: the names with their numbers.
struct ResolvedPath: Sendable {
  struct Step: Sendable {
    var name: String
    /// Nil when the collection's table lacks the name. It can still be in a map that has its own
    /// names.
    var symbol: UInt32?
  }

  let steps: [Step]
  /// The field's number when it is at the top of documents and has one, otherwise -1.
  let topSymbol: Int

  init(_ names: FieldNames, in symbols: SymbolTable) {
    steps = names.map { Step(name: $0, symbol: symbols.symbol($0)) }
    topSymbol = steps.count == 1 ? steps[0].symbol.map(Int.init) ?? -1 : -1
  }
}
