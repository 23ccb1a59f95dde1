// The faults of a simulated file system other than losing power: an operation that fails, and a
// sync that lies. Faults are values that a test lays over the file system.

/// The kind of a file system's operation.
package enum OperationKind: String, Sendable, Hashable, CaseIterable {
  case create
  case open
  case write
  case sync
  case syncDirectory
  case remove
  /// Reserving space.
  case reserve
  /// Reading bytes, a size or the names in a directory.
  case read

  /// Whether operations of this kind are numbered: a power cut can come before each of them.
  package var isNumbered: Bool { self != .read && self != .reserve }
}

/// The role of a file, from its name.
package enum FileClass: Sendable, Hashable, CaseIterable {
  case superblock
  case manifest
  case log
  case segment
  case values
  /// A pack, or the file of one content.
  case contents
  /// The file with the keys of groups.
  case keys
  /// The directory itself: its list of names.
  case directory
  case other

  package init(name: String) {
    if name == "SUPER" {
      self = .superblock
    } else if name.hasPrefix("MANIFEST-") {
      self = .manifest
    } else if name.hasPrefix("LOG-") {
      self = .log
    } else if name.hasSuffix(".seg") {
      self = .segment
    } else if name.hasSuffix(".val") {
      self = .values
    } else if name.hasSuffix(".pack") || name.hasSuffix(".content") {
      self = .contents
    } else if name == "KEYS" {
      self = .keys
    } else if name.hasPrefix("/") {
      self = .directory
    } else {
      self = .other
    }
  }
}

/// A promise that the file system breaks: the call succeeds and makes nothing durable. Each is a
/// sync that an engine might forget. A crash test that does not notice it is worth nothing.
package enum Sabotage: String, Sendable, Hashable, CaseIterable {
  case logSync
  case directorySync
  case segmentSync
  case manifestSync
  case valueSync
  case contentSync

  /// The ones that affect rows, which every database has.
  package static var ofRows: [Sabotage] { allCases.filter { $0 != .contentSync } }

  func ignores(_ kind: OperationKind, of file: FileClass) -> Bool {
    switch self {
    case .logSync: kind == .sync && file == .log
    case .directorySync: kind == .syncDirectory
    case .segmentSync: kind == .sync && file == .segment
    case .manifestSync: kind == .sync && file == .manifest
    case .valueSync: kind == .sync && file == .values
    case .contentSync: kind == .sync && file == .contents
    }
  }
}

/// An operation that fails.
package struct Fault: Sendable {
  package var kinds: Set<OperationKind>
  /// The affected files; nil for all.
  package var file: FileClass?
  /// The number of the first affected operation.
  package var first: Int
  /// The number of matching operations that succeed first.
  package var after: Int
  package var errno: Int32
  /// Whether all later matching operations fail as well.
  package var isSticky: Bool
  /// Whether a failed write has written the first half of its bytes.
  package var isShort: Bool

  package init(
    failing kinds: Set<OperationKind>, of file: FileClass? = nil, from first: Int = 0,
    after: Int = 0, errno: Int32, isSticky: Bool = false, isShort: Bool = false
  ) {
    self.kinds = kinds
    self.file = file
    self.first = first
    self.after = after
    self.errno = errno
    self.isSticky = isSticky
    self.isShort = isShort
  }

  /// Whether this operation fails. Counts it.
  mutating func strikes(
    _ kind: OperationKind, of class: FileClass, number: Int
  ) -> Bool {
    guard number >= first, kinds.contains(kind), file == nil || file == `class` else {
      return false
    }
    after -= 1
    return isSticky ? after < 0 : after == -1
  }
}
