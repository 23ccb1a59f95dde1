// The findings of a check of a database, in a form that people read and programs store.

package import OndolEngine

/// How thorough a check of a database is.
public enum VerificationDepth: String, Sendable, Hashable, Codable, CaseIterable {
  /// The files exist and are the right ones: superblock, manifest, logs, and the header, the index
  /// and the footer of every other file. Takes seconds, whatever the size.
  case structure
  /// Also every byte of every segment: checksums, the order of rows, sums, pointers to large
  /// values. Takes as long as reading the files.
  case blocks
  /// Also the contents of rows: every document can be decoded, every index contains exactly the
  /// rows of its documents, the catalog is consistent, the bytes of every blob match its digest,
  /// and everything that documents refer to exists. Takes several times as long as `blocks`.
  case full
}

/// How far a check has come.
public struct VerificationProgress: Sendable, Hashable {
  /// Bytes of files checked so far.
  public var completedBytes: UInt64 = 0
  /// All bytes of files to check.
  public var totalBytes: UInt64 = 0
  /// Documents checked so far, with their rows in indexes.
  public var documents = 0
}

/// A problem in a database.
public struct Finding: Sendable, Hashable, Codable {
  /// How bad it is.
  public enum Severity: String, Sendable, Hashable, Codable {
    /// Something is lost, wrong, or cannot be read.
    case error
    /// Nothing is lost: something else replaces it, or the next open repairs it.
    case warning
  }

  /// What it concerns.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// The file that opening reads first.
    case superblock
    /// The list of valid files.
    case manifest
    /// A log of commits.
    case log
    /// A segment as a whole: missing, of another size, with another header or footer.
    case segment
    /// A block of rows that cannot be read.
    case block
    /// Rows or blocks out of order, or a row that the filter excludes.
    case order
    /// Sums that do not match.
    case count
    /// A value file as a whole.
    case valueFile
    /// A large value that cannot be read.
    case value
    /// A row whose pointer does not lead to a large value.
    case pointer
    /// The catalog: collections, names of fields and indexes.
    case catalog
    /// A row that is only in the catalog's mirror, its second copy, is missing there, or differs.
    case mirror
    /// A document that cannot be decoded, or whose key is not a document's.
    case document
    /// A row of an index that is missing, superfluous, or does not match its document.
    case index
    /// A row of the tree that is unreadable or does not fit the others. The `id` is the node's
    /// path.
    case tree
    /// The bytes of a blob.
    case content
    /// A row about the holder of a content or a storage path, or a missing one.
    case holder
  }

  /// How bad it is.
  public var severity: Severity
  /// What it concerns.
  public var kind: Kind
  /// The name of the file in the database's directory, if it concerns one.
  public var file: String?
  /// The position in the file, in bytes.
  public var offset: UInt64?
  /// The collection's path, if it concerns one.
  public var collection: String?
  /// The document's id.
  public var id: String?
  /// The storage path, if it concerns one.
  public var storagePath: String?
  /// What is wrong, for a person.
  public var message: String
  /// What helps, for a person.
  public var hint: String?

  /// A finding with its location.
  ///
  /// - Parameters:
  ///   - severity: how bad it is.
  ///   - kind: what it concerns.
  ///   - message: what is wrong, for a person.
  ///   - file: the name of a file in the database's directory.
  ///   - offset: the position in the file, in bytes.
  ///   - collection: a collection's path.
  ///   - id: a document's id.
  ///   - storagePath: a storage path.
  ///   - hint: what helps, for a person.
  public init(
    _ severity: Severity, _ kind: Kind, _ message: String, file: String? = nil,
    offset: UInt64? = nil, collection: String? = nil, id: String? = nil,
    storagePath: String? = nil, hint: String? = nil
  ) {
    self.severity = severity
    self.kind = kind
    self.message = message
    self.file = file
    self.offset = offset
    self.collection = collection
    self.id = id
    self.storagePath = storagePath
    self.hint = hint
  }
}

extension Finding: CustomStringConvertible {
  /// The severity, the location and the message, in one line.
  public var description: String {
    let document = [collection, id].compactMap(\.self).joined(separator: "/")
    let place = [
      file.map { file in offset.map { "\(file) at byte \($0)" } ?? file },
      document.isEmpty ? nil : document, storagePath.map { "the storage path \($0)" },
    ].compactMap(\.self).joined(separator: ", ")
    return "\(severity.rawValue): \(place.isEmpty ? kind.rawValue : place): \(message)"
  }
}

extension Finding {
  /// Converts the engine's finding.
  init(_ finding: StorageFinding) {
    self.init(
      finding.isHarmless ? .warning : .error, Kind(finding.kind), finding.message,
      file: finding.file, offset: finding.offset, hint: Self.hint(finding))
  }

  /// For tools that inspect single files.
  package init(stored finding: StorageFinding) { self.init(finding) }

  private static func hint(_ finding: StorageFinding) -> String {
    switch (finding.isHarmless, finding.kind) {
    case (true, .log), (true, .manifest):
      "the database was not closed; opening it for writing recovers it"
    case (true, .content): "nothing need be lost: a check with the key tells"
    case (true, _): "opening the database for writing renews it"
    case (false, _): Self.damageHint
    }
  }

  /// What helps against damage.
  static let damageHint = "restore a backup or salvage what is left"
  /// What helps against a wrong index.
  static let indexHint = "drop the index and create it again"
}

extension Finding.Kind {
  fileprivate init(_ kind: StorageFinding.Kind) {
    switch kind {
    case .superblock: self = .superblock
    case .manifest: self = .manifest
    case .log: self = .log
    case .segment: self = .segment
    case .block: self = .block
    case .order: self = .order
    case .count: self = .count
    case .valueFile: self = .valueFile
    case .value: self = .value
    case .pointer: self = .pointer
    case .content: self = .content
    }
  }
}

/// Findings, each once, up to a limit: a disk full of damage must not fill the memory.
struct FindingList: Sendable {
  private(set) var findings: [Finding] = []
  private var known: Set<Finding> = []
  private var left = 0

  /// The most findings that are kept.
  static let limit = 1_000

  mutating func append(_ finding: Finding) {
    guard findings.count < Self.limit else {
      left += 1
      return
    }
    if known.insert(finding).inserted { findings.append(finding) }
  }

  mutating func append(_ more: some Sequence<Finding>) {
    for finding in more { append(finding) }
  }

  var hasErrors: Bool { findings.contains { $0.severity == .error } }

  /// All of them, and the number of those that were not kept.
  var all: [Finding] {
    guard left > 0, let last = findings.last else { return findings }
    return findings + [
      Finding(.error, last.kind, "\(left) more findings were left out", hint: nil)
    ]
  }
}
