// Passwords that are too common, from a list that the app has. Lists have up to ten million
// entries. The library keeps eight bytes of a hash for each: at most 80 MB, sorted, with a binary
// search. Two texts share the same eight bytes once in a trillion queries.

internal import Crypto
internal import Foundation

/// Passwords that the library refuses because attackers try them first.
///
/// ```swift
/// var options = Accounts.Options()
/// options.commonPasswords = try CommonPasswords(contentsOf: "common-passwords.txt")
/// ```
///
/// Lists from breaches are text files with a password on each line. Case and full-width letters do
/// not matter: the comparison uses Unicode's NFKC with case folded.
public struct CommonPasswords: Sendable {
  private static let mostCount = 10_000_000
  /// The longest password.
  private static let mostLineBytes = 1_024
  private static let pieceLength = 1 << 16
  private static let lineFeed = UInt8(ascii: "\n")
  private static let carriageReturn = UInt8(ascii: "\r")

  /// Sorted in ascending order, without duplicates.
  private let hashes: [UInt64]

  /// The number of passwords.
  public var count: Int { hashes.count }

  /// Reads the passwords in a UTF-8 file, one on each line. Skips empty lines and those over 1,024
  /// bytes.
  ///
  /// - Parameter path: the file's path.
  /// - Throws: `.internalError` when the file cannot be read, or has more than 10 million lines.
  /// - Complexity: O(n log n) in the lines, and eight bytes of memory for each. Blocks on the file,
  ///   so do not call it on the main actor.
  public init(contentsOf path: String) throws(AuthError) {
    var hashes: [UInt64] = []
    var line: [UInt8] = []
    do {
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? file.close() }
      while let piece = try file.read(upToCount: Self.pieceLength), !piece.isEmpty {
        for byte in piece {
          if byte == Self.lineFeed {
            try Self.add(&line, to: &hashes)
          } else if line.count <= Self.mostLineBytes {
            line.append(byte)
          }
        }
      }
      try Self.add(&line, to: &hashes)
    } catch let error as AuthError {
      throw error
    } catch {
      throw AuthError(.internalError, "the list of passwords at \(path) could not be read")
    }
    self.init(hashes: hashes)
  }

  /// Uses the given passwords.
  ///
  /// - Parameter passwords: the passwords in any order. Empty ones are skipped.
  /// - Complexity: O(n log n).
  public init(_ passwords: some Sequence<String>) {
    self.init(hashes: passwords.filter { !$0.isEmpty }.map(Self.hash))
  }

  private init(hashes: [UInt64]) {
    var distinct: [UInt64] = []
    distinct.reserveCapacity(hashes.count)
    for hash in hashes.sorted() where hash != distinct.last { distinct.append(hash) }
    self.hashes = distinct
  }

  /// Returns whether a password is in the list.
  ///
  /// - Parameter password: as it was typed.
  /// - Complexity: O(log n).
  public func contains(_ password: String) -> Bool {
    let hash = Self.hash(password)
    var low = 0
    var high = hashes.count
    while low < high {
      let middle = low + (high - low) / 2
      if hashes[middle] < hash { low = middle + 1 } else { high = middle }
    }
    return low < hashes.count && hashes[low] == hash
  }

  /// Adds a line and begins the next one.
  private static func add(_ line: inout [UInt8], to hashes: inout [UInt64]) throws(AuthError) {
    defer { line.removeAll(keepingCapacity: true) }
    if line.last == carriageReturn { line.removeLast() }
    guard !line.isEmpty, line.count <= mostLineBytes else { return }
    guard hashes.count < mostCount else {
      throw AuthError(.internalError, "a list of passwords has \(mostCount) lines at most")
    }
    hashes.append(hash(String(decoding: line, as: UTF8.self)))
  }

  private static func hash(_ password: String) -> UInt64 {
    SHA256.hash(data: Data(CaseFolding.fold(password).utf8)).prefix(8)
      .reduce(0) { $0 << 8 | UInt64($1) }
  }
}
