// What a check of a database finds, in a form that people read and programs keep.

package import OndolEngine

/// How thorough a check of a database is.
public enum VerificationDepth: String, Sendable, Hashable, Codable, CaseIterable {
  /// The files are there and are the right ones: superblock, manifest, logs, and the header, the
  /// index and the footer of every other file. Seconds, whatever the size.
  case structure
  /// Also every byte of every file of rows: checksums, the order of rows, sums, pointers to large
  /// values. As long as reading the files takes.
  case blocks
  /// Also what the rows mean: every document can be decoded, every index holds exactly the rows
  /// that its documents give, the catalog is consistent, the bytes of every blob are those that its
  /// digest names, and what documents refer to is there. Some times as long as `blocks`.
  case full
}

/// How far a check is.
public struct VerificationProgress: Sendable, Hashable {
  /// Bytes of files read through so far.
  public var completedBytes: UInt64 = 0
  /// All bytes of files there are to read through.
  public var totalBytes: UInt64 = 0
  /// Documents checked so far, with their rows in indexes.
  public var documents = 0
}

/// Something that is wrong with a database.
public struct Finding: Sendable, Hashable, Codable {
  /// How bad it is.
  public enum Severity: String, Sendable, Hashable, Codable {
    /// Something is lost, wrong, or cannot be read.
    case error
    /// Nothing is lost: something else stands in for it, or the next opening mends it.
    case warning
  }

  /// What it is about.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// The file where opening begins.
    case superblock
    /// The list of files that count.
    case manifest
    /// A log of commits.
    case log
    /// A file of rows as a whole: missing, of another size, with another header or footer.
    case segment
    /// A block of rows that cannot be read.
    case block
    /// Rows or blocks out of order, or a row that the filter denies.
    case order
    /// Sums that differ from what was counted.
    case count
    /// A file of large values as a whole.
    case valueFile
    /// A large value that cannot be read.
    case value
    /// A row that points to no large value.
    case pointer
    /// What the database knows of its collections, names of fields and indexes.
    case catalog
    /// A row that the catalog's mirror, its second copy, has alone, lacks, or has otherwise.
    case mirror
    /// A document that cannot be decoded, or whose key is not that of a document.
    case document
    /// A row of an index that is missing, too many, or other than its document says.
    case index
    /// A row of the tree that cannot be read or does not fit the others. The `id` is the node's
    /// path.
    case tree
    /// The bytes of a blob.
    case content
    /// A row that says who holds a content or keeps a storage path, or one that is missing.
    case holder
  }

  /// How bad it is.
  public var severity: Severity
  /// What it is about.
  public var kind: Kind
  /// The name of the file in the database's directory, where it is about one.
  public var file: String?
  /// The place in the file, in bytes.
  public var offset: UInt64?
  /// The collection's path, where it is about one.
  public var collection: String?
  /// The document's id.
  public var id: String?
  /// The storage path, where it is about one.
  public var storagePath: String?
  /// What is wrong, for a person.
  public var message: String
  /// What helps, for a person.
  public var hint: String?

  /// A finding with its place.
  ///
  /// - Parameters:
  ///   - severity: how bad it is.
  ///   - kind: what it is about.
  ///   - message: what is wrong, for a person.
  ///   - file: the name of a file in the database's directory.
  ///   - offset: the place in the file, in bytes.
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
  /// The severity, the place and the message, in one line.
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
  /// What the engine found, as the product says it.
  init(_ finding: StorageFinding) {
    self.init(
      finding.isHarmless ? .warning : .error, Kind(finding.kind), finding.message,
      file: finding.file, offset: finding.offset, hint: Self.hint(finding))
  }

  /// For tools that look at single files.
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

  /// Findings kept.
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

  /// All of them, and how many there were beside.
  var all: [Finding] {
    guard left > 0, let last = findings.last else { return findings }
    return findings + [
      Finding(.error, last.kind, "\(left) more findings were left out", hint: nil)
    ]
  }
}
