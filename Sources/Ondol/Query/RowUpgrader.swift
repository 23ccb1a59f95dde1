// Upgrades documents of an earlier schema as the walks of a query meet them.

internal import OndolEngine

/// Shows the rows of one part of a query in the current schema. A class, because several walks
/// share one and it reuses its memory for each document.
final class RowUpgrader {
  private let pending: PendingUpgrade
  private let naming: DocumentNaming
  private let matcher: Matcher
  private var encoder = ValueEncoder(SymbolTable(limit: 0))
  /// Documents that could not be upgraded.
  private(set) var unreadable: Set<DocumentPath> = []

  init(_ pending: PendingUpgrade, _ naming: DocumentNaming, _ matcher: Matcher) {
    self.pending = pending
    self.naming = naming
    self.matcher = matcher
  }

  /// Shows the row, upgraded if necessary; does not show it when it cannot be upgraded.
  func show(
    _ key: RawSpan, _ row: RawSpan, _ visit: (RawSpan, RawSpan) throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    guard let upgraded = try upgraded(key, row) else { return try visit(key, row) }
    if !upgraded.isEmpty { try visit(key, upgraded.bytes) }
  }

  /// Returns nil for a row that needs no upgrade, and an empty one when it cannot be upgraded.
  private func upgraded(
    _ key: RawSpan, _ row: RawSpan
  ) throws(DatabaseError) -> [UInt8]? {
    let view = try DocumentShaper.view(row, key, naming)
    let stamps = DocumentStamps(view)
    guard pending.concerns(stamps.version) else { return nil }
    let path = try naming.path(of: key)
    let fields: [String: Value]
    do throws(MalformedBytes) {
      fields = try view.fields(matcher.symbols)
    } catch {
      throw DatabaseError(error, documentAt: path)
    }
    do throws(DatabaseError) {
      return try pending.row(of: fields, stamps, path, &encoder)
    } catch {
      guard error.isUnreadable else { throw error }
      if try !matcher.isOver(view, key) { unreadable.insert(path) }
      return []
    }
  }
}

extension PendingUpgrade {
  /// Shows `upgrader` the documents in the range that are known to have failed their upgrade: no
  /// index leads to them, and each might be in the result.
  func meetLeftovers(
    behind prefix: [UInt8], in rows: Rows, _ upgrader: RowUpgrader
  ) throws(DatabaseError) {
    for key in leftovers ?? [] where key.starts(with: prefix) {
      _ = try rows.show(key) { (key, row) throws(DatabaseError) in
        try upgrader.show(key, row) { _, _ in }
      }
    }
  }
}
