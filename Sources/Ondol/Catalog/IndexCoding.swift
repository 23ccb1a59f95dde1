// The definition of an index as bytes in its row of the catalog, including a partial index's
// condition. Operands of the condition are written as in keys, which is as exact as comparing them.
// An operand that would be cut is refused when the index is created.

internal import OndolEngine

private enum Flag {
  static let elements: UInt8 = 1
  static let unique: UInt8 = 2
  static let group: UInt8 = 4
  static let partial: UInt8 = 8
  static let link: UInt8 = 16
  static let lifetime: UInt8 = 32
  /// More flags are in a second byte.
  static let more: UInt8 = 64
  static let nullsDistinct: UInt8 = 128
}

/// Flags of the second byte.
private enum Further {
  /// The place of the field of elements follows; without it, that is the first and only field.
  static let elementsPlace: UInt8 = 1
  static let opposedIDs: UInt8 = 2
  /// It is a word index; the tokenizer and the fields' weights follow.
  static let words: UInt8 = 4
  /// The condition compares with values that the first versions cannot read; nothing follows. It
  /// may also be set when no such value is read: a decimal that is an integer or a double reads as
  /// that.
  static let newerOperands: UInt8 = 8
  /// All flags that this version knows.
  static let known: UInt8 = 15
}

private enum Node {
  static let all: UInt8 = 1
  static let any: UInt8 = 2
  /// Conditions on a field are this number and the following ones.
  static let firstCondition: UInt8 = 0x10
}

/// The most collection ids in a pattern, names in a field's path, fields in an index, parts of a
/// condition.
private let listLimit = 1_000

/// The most operands of a condition.
private let operandLimit = 100_000

extension [UInt8] {
  /// Appends the definition of an index.
  mutating func append(_ kind: IndexKind) {
    appendVarint(kind.fields.count)
    for field in kind.fields {
      append((field.descending ? 1 : 0) | (field.comparison == nil ? 0 : 2))
      if let comparison = field.comparison { append(comparison.code) }
      append(texts: field.names)
    }
    let elements = kind.fields.count > 1 ? kind.fields.firstIndex(where: \.isOfElements) : nil
    var further: UInt8 = 0
    if elements != nil { further |= Further.elementsPlace }
    if kind.opposesIDs { further |= Further.opposedIDs }
    if kind.isOfWords { further |= Further.words }
    if kind.condition?.hasNewerOperands == true { further |= Further.newerOperands }
    var flags: UInt8 = 0
    if kind.isOfElements { flags |= Flag.elements }
    if kind.isUnique { flags |= Flag.unique }
    if kind.isOfGroup { flags |= Flag.group }
    if kind.condition != nil { flags |= Flag.partial }
    if kind.isLink { flags |= Flag.link }
    if kind.isOfEnds { flags |= Flag.lifetime }
    if further != 0 { flags |= Flag.more }
    if kind.nullsDistinct { flags |= Flag.nullsDistinct }
    append(flags)
    if further != 0 { append(further) }
    if let elements { appendVarint(elements) }
    if let search = kind.search { append(search) }
    if let condition = kind.condition { append(condition) }
    if let folder = kind.linkedFolder { append(texts: [folder]) }
  }

  private mutating func append(_ tree: FilterTree) {
    switch tree {
    case .all(let trees), .any(let trees):
      if case .all = tree { append(Node.all) } else { append(Node.any) }
      appendVarint(trees.count)
      for tree in trees { append(tree) }
    case .field(let filter):
      append(Node.firstCondition + filter.condition.code)
      append(texts: filter.field.names)
      appendVarint(filter.condition.operands.count)
      for operand in filter.condition.operands {
        var writer = KeyWriter()
        writer.append(operand)
        appendVarint(writer.bytes.count)
        append(contentsOf: writer.bytes)
      }
    }
  }

  /// Appends a list of texts, each preceded by its length.
  mutating func append(texts: [String]) {
    appendVarint(texts.count)
    for text in texts {
      appendVarint(text.utf8.count)
      append(contentsOf: text.utf8)
    }
  }
}

extension ByteReader {
  /// Reads the definition of an index.
  @_lifetime(self: copy self)
  mutating func indexKind() throws(MalformedBytes) -> IndexKind {
    var kind = IndexKind([])
    for _ in 0..<(try count(atMost: listLimit)) {
      let direction = try byte()
      guard direction <= 3 else {
        throw .newer(at: offset, "a field of an index in the unknown direction \(direction)")
      }
      let comparison = direction & 2 == 0 ? nil : try comparison()
      kind.fields.append(
        IndexField(try texts(), descending: direction & 1 == 1, comparing: comparison))
    }
    let flags = try byte()
    guard !kind.fields.isEmpty else { throw MalformedBytes(at: offset, "an index of no field") }
    let further = flags & Flag.more == 0 ? 0 : try byte()
    guard further <= Further.known else {
      throw .newer(at: offset, "an index of the unknown kind \(flags), \(further)")
    }
    if flags & Flag.elements != 0 {
      let place = further & Further.elementsPlace == 0 ? 0 : try count(atMost: listLimit)
      guard kind.fields.indices.contains(place), !kind.fields[place].descending,
        kind.fields[place].comparison == nil
      else {
        throw MalformedBytes(at: offset, "an index of the elements of no field")
      }
      kind.fields[place].isOfElements = true
    } else if further & Further.elementsPlace != 0 {
      throw MalformedBytes(at: offset, "an index with a place of elements, and of none")
    }
    kind.opposesIDs = further & Further.opposedIDs != 0
    if further & Further.words != 0 {
      kind.search = try searchKind(of: kind.fields)
      guard further == Further.words, flags == Flag.more || flags == Flag.more | Flag.group else {
        throw .newer(at: offset, "an index of words that is another, too")
      }
    }
    kind.isUnique = flags & Flag.unique != 0
    kind.isOfGroup = flags & Flag.group != 0
    kind.nullsDistinct = flags & Flag.nullsDistinct != 0
    guard kind.isUnique || !kind.nullsDistinct else {
      throw MalformedBytes(at: offset, "nulls that are distinct in an index that is not unique")
    }
    if flags & Flag.partial != 0 { kind.condition = try filterTree(depth: 0) }
    if flags & Flag.link != 0 {
      let folder = try texts()
      guard flags == Flag.link, folder.count == 1 else {
        throw MalformedBytes(at: offset, "a link that is an index, too")
      }
      kind.linkedFolder = folder[0]
    }
    if flags & Flag.lifetime != 0 {
      guard flags == Flag.lifetime, kind.fields.count == 1, !kind.fields[0].descending else {
        throw MalformedBytes(at: offset, "an index of documents' ends that is another, too")
      }
      kind.isOfEnds = true
    }
    return kind
  }

  @_lifetime(self: copy self)
  private mutating func comparison() throws(MalformedBytes) -> TextComparison {
    let code = try byte()
    guard let comparison = TextComparison(code: code) else {
      throw .newer(at: offset, "a field of an index with the unknown comparison \(code)")
    }
    return comparison
  }

  @_lifetime(self: copy self)
  private mutating func filterTree(depth: Int) throws(MalformedBytes) -> FilterTree {
    guard depth < KeyCoding.maximumDepth else {
      throw MalformedBytes(at: offset, "too many conditions within conditions")
    }
    let node = try byte()
    if node == Node.all || node == Node.any {
      var trees: [FilterTree] = []
      for _ in 0..<(try count(atMost: listLimit)) {
        trees.append(try filterTree(depth: depth + 1))
      }
      return node == Node.all ? .all(trees) : .any(trees)
    }
    let names = try texts()
    var operands: [Value] = []
    for _ in 0..<(try count(atMost: operandLimit)) { operands.append(try operand()) }
    guard FieldFilter.Condition.knows(code: node) else {
      throw .newer(at: offset, "the unknown condition \(node)")
    }
    guard !names.isEmpty,
      let condition = FieldFilter.Condition(code: node - Node.firstCondition, operands)
    else { throw MalformedBytes(at: offset, "the condition \(node) of nothing") }
    return .field(FieldFilter(field: .field(names), condition: condition))
  }

  @_lifetime(self: copy self)
  private mutating func operand() throws(MalformedBytes) -> Value {
    let bytes = try lengthPrefixed()
    var reader = KeyReader(bytes)
    guard case .value(let value) = try reader.component(), reader.isAtEnd else {
      throw MalformedBytes(at: offset, "an operand that was cut")
    }
    return value
  }

  /// Reads a list of texts.
  @_lifetime(self: copy self)
  mutating func texts() throws(MalformedBytes) -> [String] {
    var texts: [String] = []
    for _ in 0..<(try count(atMost: listLimit)) {
      let start = offset
      guard let text = String(utf8: try lengthPrefixed()) else {
        throw MalformedBytes(at: start, "a text that is not UTF-8")
      }
      texts.append(text)
    }
    return texts
  }
}

extension FilterTree {
  /// Whether it compares with a value that earlier versions cannot read.
  fileprivate var hasNewerOperands: Bool {
    fieldFilters.contains { filter in
      filter.condition.operands.contains { !ValueForms(inKeyOf: $0).isEmpty }
    }
  }
}

extension QueryField {
  /// The names that lead to the field; none for the document's id.
  var names: FieldNames {
    switch self {
    case .documentID: []
    case .field(let names), .compared(let names, _): names
    }
  }
}

extension FieldFilter.Condition {
  /// A number for each kind, part of the file format.
  fileprivate var code: UInt8 {
    switch self {
    case .equal: 0
    case .notEqual: 1
    case .less: 2
    case .lessOrEqual: 3
    case .greater: 4
    case .greaterOrEqual: 5
    case .isIn: 6
    case .notIn: 7
    case .arrayContains: 8
    case .arrayContainsAny: 9
    case .hasPrefix: 10
    case .matchesText: 11
    }
  }

  /// The values that the field is compared with.
  var operands: [Value] {
    switch self {
    case .equal(let operand), .notEqual(let operand), .less(let operand),
      .lessOrEqual(let operand), .greater(let operand), .greaterOrEqual(let operand),
      .arrayContains(let operand):
      [operand]
    case .isIn(let operands), .notIn(let operands), .arrayContainsAny(let operands): operands
    case .hasPrefix(let prefix): [.string(prefix.text)]
    case .matchesText(let pattern):
      [
        .string(pattern.text.text), .integer(Int64(pattern.place.rawValue)),
        .boolean(pattern.ignoresCase),
      ]
    }
  }

  /// Whether there is a condition with this number after `Node.firstCondition`.
  fileprivate static func knows(code node: UInt8) -> Bool {
    node >= Node.firstCondition && node <= Node.firstCondition + 11
  }

  fileprivate init?(code: UInt8, _ operands: [Value]) {
    switch (code, operands.first) {
    case (6, _): self = .isIn(operands)
    case (7, _): self = .notIn(operands)
    case (9, _): self = .arrayContainsAny(operands)
    case (0, let operand?): self = .equal(operand)
    case (1, let operand?): self = .notEqual(operand)
    case (2, let operand?): self = .less(operand)
    case (3, let operand?): self = .lessOrEqual(operand)
    case (4, let operand?): self = .greater(operand)
    case (5, let operand?): self = .greaterOrEqual(operand)
    case (8, let operand?): self = .arrayContains(operand)
    case (10, .string(let prefix)?): self = .hasPrefix(ExactText(prefix))
    case (11, .string(let text)?):
      guard operands.count == 3, case .integer(let number) = operands[1],
        let place = UInt8(exactly: number).flatMap(TextPattern.Place.init(rawValue:)),
        case .boolean(let ignoresCase) = operands[2]
      else { return nil }
      self = .matchesText(TextPattern(text, place, ignoringCase: ignoresCase))
    default: return nil
    }
  }
}
