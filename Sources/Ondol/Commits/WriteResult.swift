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

/// What came of a write: which commit, when, and, where it was asked for, the document before and
/// after. Firestore's clients answer nothing, so that a second read must be made that may see
/// another write.
public struct WriteResult: Sendable, Hashable {
  /// The version of the document. A write that changed nothing leaves it as it was; a delete has
  /// the version of its own commit.
  public let version: Version
  /// The moment of the commit that made `version`, in whole microseconds: what server timestamps in
  /// it became. Later than that of every commit before.
  public let commitTime: Timestamp
  /// The document just before the write, when asked for with `.before`.
  public let before: DocumentSnapshot?
  /// The document as this very commit left it, when asked for with `.after`.
  public let after: DocumentSnapshot?
  /// The document's fields before and after.
  let change: FieldChange

  /// The fields that are not as they were: added, removed or changed. A field inside a map is named
  /// by its path; arrays are compared as a whole. Empty when the write changed nothing.
  ///
  /// - Complexity: O(size of the document), at each call.
  public var changedFields: [FieldPath] { change.paths.map { FieldPath($0) } }
}

/// Two states of a document's fields. Decoded when somebody asks.
struct FieldChange: Sendable, Hashable {
  private let written: (before: WrittenFields?, after: WrittenFields?)
  /// The commit's, wherever a field is to have it.
  private let time: Timestamp

  init(before: WrittenFields?, after: WrittenFields?, time: Timestamp) {
    written = (before, after)
    self.time = time
  }

  private var before: [String: Value]? { written.before?.all }
  private var after: [String: Value]? {
    written.after?.all.mapValues { $0.resolvingPending(with: time) }
  }

  /// Where the two differ, in the order of the names.
  var paths: [FieldNames] {
    var paths: [FieldNames] = []
    Self.compare(before ?? [:], after ?? [:], below: [], &paths)
    return paths
  }

  static func == (left: FieldChange, right: FieldChange) -> Bool {
    left.time == right.time && left.before == right.before && left.after == right.after
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(time)
  }

  private static func compare(
    _ before: [String: Value], _ after: [String: Value], below place: FieldNames,
    _ paths: inout [FieldNames]
  ) {
    let names = Set(before.keys.map { ExactText($0) }).union(after.keys.map { ExactText($0) })
    for name in names.map(\.text).sorted(by: { ValueOrder.compare($0, $1) < 0 }) {
      switch (before[exactly: name], after[exactly: name]) {
      case (.map(let before), .map(let after)) where !before.isEmpty && !after.isEmpty:
        compare(before, after, below: place + [name], &paths)
      case (let before?, let after?) where before.isIdentical(to: after): break
      default: paths.append(place + [name])
      }
    }
  }
}
