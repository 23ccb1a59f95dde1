// The document of each operation. The distributions are YCSB's, so that figures can be compared
// with others': zipfian by the method of Gray et al., its favourites spread over all documents by a
// hash; latest as zipfian counted back from the newest.

internal import Foundation

/// The distributions of documents.
package enum KeyDistribution: String, Sendable, Codable, CaseIterable {
  case uniform
  /// Few documents often, as YCSB's "zipfian": the first of a million gets one operation in
  /// fifteen.
  case zipfian
  /// The newest documents most.
  case latest
}

/// Draws numbers of documents.
package struct KeyChooser: Sendable {
  private let distribution: KeyDistribution
  private let zipfian: Zipfian

  /// - Parameter documents: the initial number of documents, which also determines zipfian's slope.
  package init(_ distribution: KeyDistribution, documents: Int) {
    self.distribution = distribution
    zipfian = Zipfian(items: documents)
  }

  /// Returns a number below `count`, which is positive.
  package func choose(below count: Int, _ random: inout SeededRandom) -> Int {
    switch distribution {
    case .uniform: random.below(count)
    case .zipfian:
      Int(truncatingIfNeeded: Self.scatter(zipfian.next(&random)) % UInt64(count))
    case .latest: max(0, count - 1 - Int(zipfian.next(&random)))
    }
  }

  /// Fowler, Noll and Vo's hash of eight bytes, which spreads neighbours.
  package static func scatter(_ number: UInt64) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for shift in stride(from: UInt64(0), to: 64, by: 8) {
      hash = (hash ^ (number >> shift & 0xFF)) &* 0x100_0000_01B3
    }
    return hash
  }
}

/// Numbers of which the first are drawn most: number n with a weight of 1 / (n + 1)^0.99.
package struct Zipfian: Sendable {
  private static let theta = 0.99

  private let items: Double
  private let zeta: Double
  private let alpha: Double
  private let eta: Double

  package init(items: Int) {
    self.items = Double(items)
    zeta = Self.zeta(items)
    alpha = 1 / (1 - Self.theta)
    let two = Self.zeta(min(2, items))
    let rest = 1 - two / zeta
    eta = rest == 0 ? 0 : (1 - pow(2 / self.items, 1 - Self.theta)) / rest
  }

  package func next(_ random: inout SeededRandom) -> UInt64 {
    let unit = Double(random.next() >> 11) * 0x1p-53
    let place = unit * zeta
    if place < 1 { return 0 }
    if place < 1 + pow(0.5, Self.theta) { return 1 }
    return UInt64(min(items - 1, max(0, items * pow(eta * unit - eta + 1, alpha))))
  }

  private static func zeta(_ items: Int) -> Double {
    var sum = 0.0
    for item in 1...max(1, items) { sum += 1 / pow(Double(item), theta) }
    return sum
  }
}
