// A vector is not an array: it sorts by its dimension first, has numbers only and is stored packed.

/// A vector of numbers, as an embedding is. Stored packed, compared by its dimensions first. There
/// is no search for the nearest ones.
public struct VectorValue: Sendable, Codable {
  /// The components; as many as the vector has dimensions.
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

  /// Feeds the same for vectors that are equal.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(components.count)
    for component in components {
      component.hashAsNumber(into: &hasher)
    }
  }
}

extension VectorValue: ExpressibleByArrayLiteral {
  /// A vector of the components listed.
  public init(arrayLiteral components: Double...) {
    self.init(components)
  }
}

extension VectorValue: CustomStringConvertible {
  /// All components.
  public var description: String { "vector(\(components))" }
}
