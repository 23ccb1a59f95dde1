// The common part of exact sums: one long number in places that have room for carries. The places
// are normalised after many numbers. Doubles have places of 32 bits, decimals of nine digits.

internal import OndolEngine

/// A sum as one long number.
protocol LongSum: Sendable {
  /// The lowest first; empty until there is a number other than 0.
  var places: [Int64] { get set }
  /// Numbers added since the places were last normalised.
  var unsettled: Int { get set }

  /// Carries, so that all places except the last are at least 0 and small.
  mutating func settle()
}

extension LongSum {
  /// Adds the places of another sum of the kind.
  mutating func add(placesOf other: Self) {
    guard !other.places.isEmpty else { return }
    guard !places.isEmpty else { return (places, unsettled) = (other.places, other.unsettled) }
    settle()
    var other = other
    other.settle()
    for index in places.indices { places[index] += other.places[index] }
    settle()
  }

  /// Appends the places.
  mutating func write(placesTo record: inout RecordWriter) {
    settle()
    record.append(count: places.count)
    for place in places { record.append(word: UInt64(bitPattern: place)) }
  }

  /// Reads the places into a sum without any.
  mutating func read(
    places count: Int, from record: inout RecordReader
  ) throws(MalformedBytes) {
    let stored = try record.count()
    guard stored == 0 || stored == count else {
      throw MalformedBytes(at: record.offset, "a sum of \(stored) places instead of \(count)")
    }
    for _ in 0..<stored { places.append(Int64(bitPattern: try record.word())) }
  }

  /// The places of the sum without its sign, all of them normalised, and the sign.
  var magnitude: (places: [Int64], isNegative: Bool) {
    var sum = self
    sum.settle()
    guard let last = sum.places.last, last < 0 else { return (sum.places, false) }
    for index in sum.places.indices { sum.places[index].negate() }
    sum.settle()
    return (sum.places, true)
  }
}
