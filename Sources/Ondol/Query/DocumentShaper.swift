// Stage 5 of the read path: from a document's row to the app's snapshot. A whole document is copied
// unchanged and decoded when its fields are read.

internal import OndolEngine

/// Decodes the documents of one part of a query. A class, like `QueryPart`.
final class DocumentShaper: Sendable {
  private let database: Database
  private let naming: DocumentNaming
  private let symbols: SymbolTable
  /// The requested fields; nil for all.
  private let selection: SelectionReader?

  init(
    _ database: Database, _ naming: DocumentNaming, _ symbols: SymbolTable,
    _ selection: FieldSelection? = nil
  ) {
    self.database = database
    self.naming = naming
    self.symbols = symbols
    self.selection = selection.map { SelectionReader($0, symbols) }
  }

  convenience init(_ database: Database, _ part: QueryPart, _ selection: FieldSelection?) {
    self.init(database, part.naming, part.matcher.symbols, selection)
  }

  /// The row of the document with the key, read in place.
  @_lifetime(copy row)
  static func view(
    _ row: RawSpan, _ key: RawSpan, _ naming: DocumentNaming
  ) throws(DatabaseError) -> DocumentView {
    do throws(MalformedBytes) {
      return try DocumentView(row)
    } catch {
      throw DatabaseError(error, documentAt: try naming.path(of: key))
    }
  }

  /// The row of the document with the key, read in place.
  @_lifetime(copy row)
  func view(_ row: RawSpan, _ key: RawSpan) throws(DatabaseError) -> DocumentView {
    try Self.view(row, key, naming)
  }

  /// The document, as a whole or with the requested fields.
  func snapshot(
    _ view: borrowing DocumentView, _ row: RawSpan, _ key: RawSpan
  ) throws(DatabaseError) -> DocumentSnapshot {
    let path = try naming.path(of: key)
    let contents: DocumentSnapshot.Contents
    do throws(MalformedBytes) {
      if let selection {
        contents = .init(
          stamps: selection.isEmpty ? .unread : DocumentStamps(view),
          fields: try selection.fields(of: view))
      } else {
        contents = try .init(row: row, view, symbols)
      }
    } catch {
      throw DatabaseError(error, documentAt: path)
    }
    let reference = DocumentReference(database: database, place: .success(path))
    return DocumentSnapshot(reference: reference, contents: contents)
  }

  /// The document with only its location.
  func name(_ key: RawSpan) throws(DatabaseError) -> DocumentSnapshot {
    let reference = DocumentReference(
      database: database, place: .success(try naming.path(of: key)))
    return DocumentSnapshot(reference: reference, contents: .init(stamps: .unread, fields: [:]))
  }
}

/// Reads some fields of documents and nothing else.
struct SelectionReader: Sendable {
  private let selection: FieldSelection
  private let paths: [ResolvedPath]
  private let symbols: SymbolTable

  init(_ selection: FieldSelection, _ symbols: SymbolTable) {
    self.selection = selection
    self.symbols = symbols
    paths = selection.fields.map { ResolvedPath($0, in: symbols) }
  }

  /// Whether no field is read.
  var isEmpty: Bool { selection.isEmpty }

  /// The document's values in the fields.
  func fields(of view: borrowing DocumentView) throws(MalformedBytes) -> [String: Value] {
    var values: [Value?] = []
    for path in paths { values.append(try view.field(path)?.value(symbols)) }
    return selection.of { (_, place) in values[place] }
  }
}
