// A problem that an examination of the files has found. Unlike an error, it stops nothing: the
// examination continues after it.

/// A problem with a file.
package struct StorageFinding: Sendable, Hashable {
  /// The part with the problem.
  package enum Kind: Sendable {
    case superblock
    case manifest
    case log
    /// A segment file as a whole: its header, its sections, its footer.
    case segment
    case block
    /// The order of rows, or of a segment's blocks.
    case order
    /// Sums that differ from the counted values.
    case count
    case valueFile
    /// A large value in its file.
    case value
    /// A row whose pointer leads to no value.
    case pointer
    /// Bytes of contents.
    case content
  }

  package var kind: Kind
  /// Whether another copy replaces the faulty part, so that nothing is lost.
  package var isHarmless: Bool
  package var file: String
  /// The offset in the file, if there is one.
  package var offset: UInt64?
  package var message: String

  init(
    _ kind: Kind, in file: String, at offset: UInt64? = nil, _ message: String,
    isHarmless: Bool = false
  ) {
    self.kind = kind
    self.isHarmless = isHarmless
    self.file = file
    self.offset = offset
    self.message = message
  }

  /// The result of an error from reading `file`.
  init(_ error: EngineError, _ kind: Kind, in file: String) {
    switch error {
    case .corrupt(let place, let offset, let reason):
      self.init(kind, in: place, at: offset, reason)
    case .io(_, _, _, let errno) where SystemFailure(errno: errno) == .missing:
      self.init(kind, in: file, "the file is missing")
    case .superseded(let file):
      self.init(kind, in: file, "the file is missing")
    case .io(let operation, _, let offset, let errno):
      self.init(kind, in: file, at: offset, "\(operation) failed: \(systemMessage(errno))")
    default:
      self.init(kind, in: file, "\(error)")
    }
  }
}
