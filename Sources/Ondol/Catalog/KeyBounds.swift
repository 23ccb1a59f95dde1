// The keys of the values that one condition admits, after a prefix. Here conditions on values
// become comparisons of a component's bytes. The planner uses it for index rows and for documents.

internal import OndolEngine

/// The keys, after a prefix, of the values that one condition admits, perhaps with some more.
struct KeyBounds {
  private(set) var range: KeyRange
  /// Whether every key in the range has a value that meets the condition.
  private(set) var isExact = true

  private let prefix: [UInt8]
  private let descending: Bool

  /// - Parameter isID: whether the component is the document's id, which is never cut.
  init(
    of condition: FieldFilter.Condition, behind prefix: [UInt8], descending: Bool, isID: Bool
  ) {
    self.prefix = prefix
    self.descending = descending
    range = KeyRange(prefix: prefix)
    switch condition {
    case .equal(let operand): set(from: (operand, true), to: (operand, true), isID)
    case .less(let operand): set(from: nil, to: (operand, false), isID)
    case .lessOrEqual(let operand): set(from: nil, to: (operand, true), isID)
    case .greater(let operand): set(from: (operand, false), to: nil, isID)
    case .greaterOrEqual(let operand): set(from: (operand, true), to: nil, isID)
    case .isIn(let operands):
      if let first = operands.first, let last = operands.last {
        set(from: (first, true), to: (last, true), isID)
      }
      isExact = operands.count == 1 && isExact
    case .hasPrefix(let prefix): set(textPrefix: prefix.text)
    case .notEqual, .notIn:
      // Null comes before all other values.
      setPresent(behind: KeyCoding.Tag.null)
      isExact = condition == .notEqual(.null)
    case .matchesText:
      let tags = KeyCoding.tags(ofTypeOf: .string(""))
      set(typeFrom: tags.lowerBound, to: tags.upperBound)
      isExact = false
    case .arrayContains, .arrayContainsAny:
      set(typeFrom: KeyCoding.Tag.array, to: KeyCoding.Tag.array)
      isExact = false
    }
  }

  /// The keys of all documents that have the field.
  init(presentBehind prefix: [UInt8], descending: Bool) {
    self.prefix = prefix
    self.descending = descending
    range = KeyRange(prefix: prefix)
    setPresent(behind: IndexDefinition.missing)
  }

  private typealias End = (value: Value, isIncluded: Bool)

  /// Between two values; if one is missing, the limit of the other's type is the end.
  private mutating func set(from low: End?, to high: End?, _ isID: Bool) {
    guard let operand = low?.value ?? high?.value else { return }
    let tags = KeyCoding.tags(ofTypeOf: operand)
    set(typeFrom: tags.lowerBound, to: tags.upperBound)
    if let low { set(low, isLow: true, isID) }
    if let high { set(high, isLow: false, isID) }
  }

  private mutating func set(typeFrom first: UInt8, to last: UInt8) {
    let mask: UInt8 = descending ? 0xff : 0
    range.lower = prefix + [(descending ? last : first) ^ mask]
    range.upper = prefix + [((descending ? first : last) ^ mask) + 1]
  }

  private mutating func set(_ end: End, isLow: Bool, _ isID: Bool) {
    var writer = KeyWriter(prefix)
    var isCut = false
    if isID, let id = end.value.string {
      writer.append(id: id, descending: descending)
    } else {
      isCut = writer.append(end.value, descending: descending)
    }
    // Values that agree in a cut component's bytes can be on either side of the end.
    if isCut { isExact = false }
    let isIncluded = end.isIncluded || isCut
    let key = writer.bytes
    // The complement reverses the ends.
    if isLow != descending {
      range.lower = isIncluded ? key : key + [KeyCoding.afterAll]
    } else {
      range.upper = isIncluded ? key + [KeyCoding.afterAll] : key
    }
  }

  private mutating func set(textPrefix text: String) {
    var writer = KeyWriter(prefix)
    writer.append(textPrefix: text, descending: descending)
    range.lower = writer.bytes
    range.upper = KeyCoding.successor(ofPrefix: writer.bytes) ?? range.upper
    isExact = writer.bytes.count - prefix.count < KeyCoding.maximumComponentLength
  }

  /// After all values with the tag, in the ascending order.
  private mutating func setPresent(behind tag: UInt8) {
    if descending { range.upper = prefix + [~tag] } else { range.lower = prefix + [tag + 1] }
  }
}
