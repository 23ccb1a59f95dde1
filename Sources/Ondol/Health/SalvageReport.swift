// What was saved of a damaged database and what was not, in a form that people read and programs
// store.

internal import OndolEngine

/// The outcome for a damaged database's documents.
public struct SalvageReport: Sendable, Hashable, Codable {
  /// The outcome for the documents of all collections with one pattern: `items`, or `items/notes`
  /// for those called `notes` below each of the items.
  public struct Collection: Sendable, Hashable, Codable {
    /// The ids of the collections, separated by `/`.
    public var name: String
    /// Documents in the new database.
    public var saved = 0
    /// Documents that were found and could not be read. The number of documents in unreadable parts
    /// is unknown: these parts are among the losses.
    public var lost = 0
    /// The names of its rebuilt indexes.
    public var indexes: [String] = []
  }

  /// Something that could not be saved.
  public struct Loss: Sendable, Hashable, Codable {
    /// The damaged file, if it concerns one.
    public var file: String?
    /// The position in it, in bytes.
    public var offset: UInt64?
    /// What is wrong.
    public var reason: String
    /// The path of the last document before the missing part, when known.
    public var after: String?
    /// The path of the first document after the missing part, when known; if it concerns one
    /// document, that document's path.
    public var before: String?
  }

  /// By name.
  public var collections: [Collection] = []
  /// Rows of the tree that were saved: its leaves, and the rows of its other nodes.
  public var treeRows = 0
  /// Storage paths in the new database, with their metadata.
  public var storagePaths = 0
  /// Storage paths that were found and could not be read.
  public var lostStoragePaths = 0
  /// What could not be saved, at most a thousand entries.
  public var losses: [Loss] = []
  /// The number of losses, including those without an entry.
  public var lossCount = 0
  /// The number of the last commit in the new database. New commits continue after it.
  public var lastVersion: UInt64 = 0

  /// Whether, as far as is known, nothing is missing.
  public var isComplete: Bool { lossCount == 0 }
}

/// How far a salvage has come.
public struct SalvageProgress: Sendable, Hashable {
  /// Documents saved so far.
  public var documents = 0
}

extension SalvageReport.Loss: CustomStringConvertible {
  /// One line: the location and the reason.
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
