// The statistics that scores depend on, apart from the document: the number of documents, and their
// average length. BM25 over one field, BM25F over several: the occurrences in each field are
// normalized by its length and weighted, and added before they saturate.

internal import OndolEngine

/// The numbers of documents and tokens of a scope.
struct SearchStatistics: Sendable, Equatable {
  var documents = 0
  /// By field.
  var tokens: [Int] = []

  mutating func add(_ other: SearchStatistics) {
    documents += other.documents
    add(lengths: other.tokens)
  }

  /// Adds a document.
  mutating func add(documentOf lengths: [Int]) {
    documents += 1
    add(lengths: lengths)
  }

  private mutating func add(lengths: [Int]) {
    while tokens.count < lengths.count { tokens.append(0) }
    for (field, length) in lengths.enumerated() { tokens[field] += length }
  }

  func averageLength(of field: Int) -> Double {
    guard documents > 0, field < tokens.count, tokens[field] > 0 else { return 1 }
    return Double(tokens[field]) / Double(documents)
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendVarint(documents)
    for count in tokens { bytes.appendVarint(count) }
    return bytes
  }

  init() {}

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    documents = try reader.count(atMost: Int(UInt32.max))
    while !reader.isAtEnd { tokens.append(try reader.count(atMost: Int.max / 2)) }
    guard tokens.count <= FreshRow.mostFields else {
      throw MalformedBytes(at: 0, "statistics of too many fields")
    }
  }
}

/// How scores are computed.
struct Scoring: Sendable {
  /// How soon further occurrences stop counting.
  static let saturation = 1.2
  /// How much a document's length counts.
  static let lengthShare = 0.75

  let statistics: SearchStatistics
  /// By field of the index; 0 for a field that is not searched.
  let weights: [Double]

  /// The contribution of occurrences in a field.
  @inline(__always)
  func frequency(_ occurrences: UInt32, length: UInt32, weight: Double, average: Double) -> Double {
    let share = Self.lengthShare
    return weight * Double(occurrences) / (1 - share + share * Double(length) / average)
  }

  /// The weight of a term that this many documents have.
  func inverseFrequency(_ documents: Int) -> Double {
    let all = Double(max(statistics.documents, documents))
    return logarithm(1 + (all - Double(documents) + 0.5) / (Double(documents) + 0.5))
  }

  @inline(__always)
  static func score(_ frequency: Double, _ inverse: Double) -> Double {
    inverse * frequency * (saturation + 1) / (frequency + saturation)
  }

  /// The natural logarithm, computed from the exponent and a series, so that it is the same on
  /// every system.
  private func logarithm(_ value: Double) -> Double {
    guard value > 0 else { return 0 }
    var fraction = value.significand
    var exponent = Double(value.exponent)
    if fraction > 1.4142135623730951 {
      fraction /= 2
      exponent += 1
    }
    let ratio = (fraction - 1) / (fraction + 1)
    let square = ratio * ratio
    var (term, sum) = (ratio, ratio)
    for divisor in stride(from: 3.0, through: 25, by: 2) {
      term *= square
      sum += term / divisor
    }
    return exponent * 0.6931471805599453 + 2 * sum
  }
}
