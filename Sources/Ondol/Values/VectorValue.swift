// A vector is not an array: it sorts by its dimension first, contains only numbers and is stored
// packed.

/// A vector of numbers, such as an embedding. Stored packed, compared by its dimensions first.
/// There is no search for the nearest vectors.
public struct VectorValue: Sendable, Codable {
  /// The components, one for each dimension.
  public let components: [Double]

  /// A vector of `components`, any number of them.
  public init(_ components: [Double]) {
    self.components = components
  }
}

extension VectorValue: Hashable {
  /// Whether the dimensions and all components are equal; NaN equals NaN and −0.0 equals 0.
  public static func == (left: VectorValue, right: VectorValue) -> Bool {
    left.components.elementsEqual(right.components) { ValueOrder.compare($0, $1) == 0 }
  }

  /// Hashes equal vectors alike.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(components.count)
    for component in components {
      component.hashAsNumber(into: &hasher)
    }
  }
}

extension VectorValue: ExpressibleByArrayLiteral {
  /// A vector of the listed components.
  public init(arrayLiteral components: Double...) {
    self.init(components)
  }
}

extension VectorValue: CustomStringConvertible {
  /// All components.
  public var description: String { "vector(\(components))" }
}
