// What was saved of a damaged database and what was not, in a form that people read and programs
// keep.

internal import OndolEngine

/// What became of a damaged database's documents.
public struct SalvageReport: Sendable, Hashable, Codable {
  /// What became of the documents of all collections with one pattern: `items`, or `items/notes`
  /// for those called `notes` below each of the items.
  public struct Collection: Sendable, Hashable, Codable {
    /// The ids of the collections, separated by `/`.
    public var name: String
    /// Documents in the new database.
    public var saved = 0
    /// Documents that were found and could not be read. How many were in what could not be read at
    /// all, nobody knows: that is among the losses.
    public var lost = 0
    /// The names of its indexes that were built anew.
    public var indexes: [String] = []
  }

  /// Something that could not be saved.
  public struct Loss: Sendable, Hashable, Codable {
    /// The file that is damaged, when it is about one.
    public var file: String?
    /// The place in it, in bytes.
    public var offset: UInt64?
    /// What is wrong.
    public var reason: String
    /// The path of the last document in front of what is missing, when known.
    public var after: String?
    /// The path of the first document behind it, when known; that of the document itself when it is
    /// about one.
    public var before: String?
  }

  /// By name.
  public var collections: [Collection] = []
  /// Rows of the tree that were saved: its leaves, and what is said about its other nodes.
  public var treeRows = 0
  /// Storage paths in the new database, with their metadata.
  public var storagePaths = 0
  /// Storage paths that were found and could not be read.
  public var lostStoragePaths = 0
  /// What could not be saved, a thousand entries at most.
  public var losses: [Loss] = []
  /// How much could not be saved, however much that is.
  public var lossCount = 0
  /// The number of the last commit that is in the new database. Its commits go on behind it.
  public var lastVersion: UInt64 = 0

  /// Whether nothing is missing as far as anybody can tell.
  public var isComplete: Bool { lossCount == 0 }
}

/// How far a salvage is.
public struct SalvageProgress: Sendable, Hashable {
  /// Documents saved so far.
  public var documents = 0
}

extension SalvageReport.Loss: CustomStringConvertible {
  /// One line: where, and what.
  public var description: String {
    let place = file.map { name in offset.map { "\(name) at byte \($0): " } ?? "\(name): " } ?? ""
    switch (after, before) {
    case (let after?, let before?) where after == before: return "\(place)\(reason) (\(after))"
    case (let after?, let before?): return "\(place)\(reason) (between \(after) and \(before))"
    case (let after?, nil): return "\(place)\(reason) (behind \(after))"
    case (nil, let before?): return "\(place)\(reason) (up to \(before))"
    case (nil, nil): return place + reason
    }
  }
}
