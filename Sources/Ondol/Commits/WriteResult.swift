// What a write can return.

/// Which states of the document a write returns.
public struct Returning: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: Int

  /// Makes a set from its bits.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// No state, which costs nothing.
  public static let nothing: Returning = []
  /// The document just before the write.
  public static let before = Returning(rawValue: 1)
  /// The document as the write left it.
  public static let after = Returning(rawValue: 2)
}

/// The result of a write: the commit, its time, and on request the document before and after.
/// Firestore's clients return nothing, so an app must read again and may see another write's
/// result.
public struct WriteResult: Sendable, Hashable {
  /// The version of the document. A write that changed nothing leaves it as it was; a delete has
  /// the version of its own commit.
  public let version: Version
  /// The time of the commit that made `version`, in whole microseconds. Server timestamps in it
  /// have this value. It is later than that of every earlier commit.
  public let commitTime: Timestamp
  /// The document just before the write, when requested with `.before`.
  public let before: DocumentSnapshot?
  /// The document as exactly this commit left it, when requested with `.after`.
  public let after: DocumentSnapshot?
  /// The document's fields before and after.
  let change: FieldChange

  /// The fields that changed: added, removed or with another value. A path names a field inside a
  /// map; arrays are compared as a whole. Empty when the write changed nothing.
  ///
  /// - Complexity: O(size of the document), at each call.
  public var changedFields: [FieldPath] { change.paths.map { FieldPath($0) } }
}

/// Two states of a document's fields. Decoded on request.
struct FieldChange: Sendable, Hashable {
  private let written: (before: WrittenFields?, after: WrittenFields?)
  /// The commit's time, for fields that request it.
  private let time: Timestamp

  init(before: WrittenFields?, after: WrittenFields?, time: Timestamp) {
    written = (before, after)
    self.time = time
  }

  private var before: [String: Value]? { written.before?.all }
  private var after: [String: Value]? {
    written.after?.all.mapValues { $0.resolvingPending(with: time) }
  }

  /// The differences between the two, in the order of the names.
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
