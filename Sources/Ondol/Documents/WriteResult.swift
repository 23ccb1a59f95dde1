// What a write can be asked for, and what it answers.

/// Which states of the document a write gives back.
public struct Returning: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: Int

  /// Makes a set from its bits.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// Neither, which costs nothing.
  public static let nothing: Returning = []
  /// The document as it was just before the write.
  public static let before = Returning(rawValue: 1)
  /// The document as the write left it.
  public static let after = Returning(rawValue: 2)
}

/// What came of a write.
public struct WriteResult: Sendable, Hashable {
  /// The version of the document. A write that changed nothing leaves it as it was; a delete has
  /// the version of its own commit.
  public let version: Version
  /// The moment of the commit that made `version`.
  public let commitTime: Timestamp
  /// The document before the write, when asked for.
  public let before: DocumentSnapshot?
  /// The document after the write, when asked for.
  public let after: DocumentSnapshot?
}
