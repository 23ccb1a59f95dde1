// The record of a commit's changed documents in the log, beside its rows, when changes are kept:
// each document before and after. The record is self-contained. It has the names of all fields and
// does not depend on the catalog, because the collection may have been dropped when the record is
// read. Stage 2 of the write path writes it at its end, and the change feed reads it.
//
//   01, names of fields (list of texts), count of documents, documents
//   02, root collection (text): it was dropped
//   03, two lists of collection ids: the collections of the first pattern are those of the second
//   04, as 01, and between count and documents for each its place among all that the commit changed
//   05, what documents have that not all versions know (ValueForms), then as 01
//   06, the same, then as 04
//
// A commit has one record, and one more for each collection with a key of its own. That record is
// sealed with this key and becomes unreadable with it. The remaining documents are in the order of
// the places.
//
// A document is its path (list of texts), a byte of flags (1 it existed, 2 it exists), and for each
// of the two states a row, preceded by its length, whose symbols are the names by number.

internal import OndolEngine

/// The bytes of a commit's annotation.
enum ChangeRecord {
  enum Content {
    /// In the order of their places.
    case documents([(place: Int, document: DatabaseChange.Document)])
    case dropped(root: String)
    case renamed(CollectionRenaming)
  }

  private enum Form {
    static let documents: UInt8 = 1
    static let dropped: UInt8 = 2
    static let renamed: UInt8 = 3
    static let placedDocuments: UInt8 = 4
    static let formedDocuments: UInt8 = 5
    static let formedPlacedDocuments: UInt8 = 6
  }

  fileprivate enum Flag {
    static let before: UInt8 = 1
    static let after: UInt8 = 2
  }

  static func dropped(root: String) -> [UInt8] {
    var bytes = [Form.dropped]
    bytes.append(texts: [root])
    return bytes
  }

  static func renamed(_ renaming: CollectionRenaming) -> [UInt8] {
    var bytes = [Form.renamed]
    bytes.append(texts: renaming.pattern.collectionIDs)
    bytes.append(texts: renaming.target.collectionIDs)
    return bytes
  }

  /// - Parameter places: the documents' places in the whole commit, when it has other documents.
  fileprivate static func head(_ symbols: SymbolTable, count: Int, places: [Int]?) -> [UInt8] {
    var bytes: [UInt8] = []
    if symbols.forms.isEmpty {
      bytes.append(places == nil ? Form.documents : Form.placedDocuments)
    } else {
      bytes.append(places == nil ? Form.formedDocuments : Form.formedPlacedDocuments)
      bytes += symbols.forms.bytes
    }
    bytes.append(texts: symbols.names)
    bytes.appendVarint(count)
    for place in places ?? [] { bytes.appendVarint(place) }
    return bytes
  }

  /// Reads a record.
  static func read(_ bytes: [UInt8], in database: Database) throws(MalformedBytes) -> Content {
    var reader = ByteReader(bytes.bytes)
    let form = try reader.byte()
    switch form {
    case Form.documents: return .documents(try documents(&reader, havePlaces: false, in: database))
    case Form.placedDocuments:
      return .documents(try documents(&reader, havePlaces: true, in: database))
    case Form.formedDocuments, Form.formedPlacedDocuments:
      _ = try ValueForms(from: &reader)
      let havePlaces = form == Form.formedPlacedDocuments
      return .documents(try documents(&reader, havePlaces: havePlaces, in: database))
    case Form.dropped:
      let names = try reader.texts()
      guard names.count == 1, reader.isAtEnd else {
        throw MalformedBytes(at: 1, "not one collection")
      }
      return .dropped(root: names[0])
    case Form.renamed:
      let (pattern, target) = (try reader.texts(), try reader.texts())
      guard reader.isAtEnd, !pattern.isEmpty,
        let renaming = try? CollectionRenaming(
          CollectionPattern(pattern), CollectionPattern(target))
      else { throw MalformedBytes(at: 1, "no other name of a collection") }
      return .renamed(renaming)
    default:
      throw .newer(at: 0, "changes in the unknown form \(form)")
    }
  }

  private static func documents(
    _ reader: inout ByteReader, havePlaces: Bool, in database: Database
  ) throws(MalformedBytes) -> [(place: Int, document: DatabaseChange.Document)] {
    let symbols = try SymbolTable(names: try reader.texts())
    let count = try reader.count(atMost: reader.remaining)
    var places = Array(0..<count)
    if havePlaces {
      for index in places.indices {
        let start = reader.offset
        places[index] = try reader.count(atMost: Int(Int32.max))
        guard index == 0 || places[index - 1] < places[index] else {
          throw MalformedBytes(at: start, "documents out of order")
        }
      }
    }
    var documents: [(place: Int, document: DatabaseChange.Document)] = []
    for place in places {
      documents.append((place, try document(&reader, symbols, in: database)))
    }
    guard reader.isAtEnd else { throw MalformedBytes(at: reader.offset, "more than documents") }
    return documents
  }

  private static func document(
    _ reader: inout ByteReader, _ symbols: SymbolTable, in database: Database
  ) throws(MalformedBytes) -> DatabaseChange.Document {
    let start = reader.offset
    let segments = try reader.texts()
    guard let path = try? DocumentPath(stored: segments) else {
      throw MalformedBytes(at: start, "no document's path")
    }
    let flags = try reader.byte()
    guard flags & ~(Flag.before | Flag.after) == 0 else {
      throw MalformedBytes(at: start, "unknown flags")
    }
    let reference = DocumentReference(database: database, place: .success(path))
    var contents: [DocumentSnapshot.Contents?] = []
    for flag in [Flag.before, Flag.after] {
      guard flags & flag != 0 else {
        contents.append(nil)
        continue
      }
      let row = try reader.lengthPrefixed().array
      contents.append(try DocumentSnapshot.Contents(row: row, symbols: symbols))
    }
    return DatabaseChange.Document(
      before: DocumentSnapshot(reference: reference, contents: contents[0]),
      after: DocumentSnapshot(reference: reference, contents: contents[1]))
  }
}

extension Batch {
  /// Adds the records of the commit's changes. The record of a group with a key of its own is
  /// sealed with that key.
  ///
  /// - Parameter group: the group that a document's collection is in.
  mutating func annotate(
    changesOf documents: [WrittenDocument], in group: (WrittenDocument) -> UInt32?
  ) throws(DatabaseError) {
    var records: [(group: UInt32?, writer: ChangeRecordWriter)] = []
    var place = 0
    for document in documents where document.isChanged {
      let group = group(document)
      let record = records.firstIndex { $0.group == group } ?? records.count
      if record == records.count { records.append((group, ChangeRecordWriter())) }
      do throws(DatabaseError) {
        try records[record].writer.add(document, at: place)
      } catch {
        throw error.at(path: "\(document.path)")
      }
      place += 1
    }
    // A commit that changes no document records that.
    if records.isEmpty { records.append((nil, ChangeRecordWriter())) }
    for record in records {
      let (bytes, stamps) = record.writer.finish(havePlaces: records.count > 1)
      annotate(bytes.bytes, stamps: stamps, of: record.group)
    }
  }
}

/// Writes the documents of a record.
private struct ChangeRecordWriter {
  private var encoder = ValueEncoder(SymbolTable())
  private var documents: [UInt8] = []
  private var stamps: [(offset: Int, form: StampForm)] = []
  private var places: [Int] = []

  /// - Parameter place: the document's place among all changes of the commit.
  mutating func add(_ document: WrittenDocument, at place: Int) throws(DatabaseError) {
    // For listeners, an expired document still exists until it is removed.
    let before = (document.shown ?? document.stored)?.all
    let after = document.after?.all
    places.append(place)
    documents.append(texts: document.path.segments)
    documents.append(
      (before == nil ? 0 : ChangeRecord.Flag.before) | (after == nil ? 0 : ChangeRecord.Flag.after))
    if let before, let stamps = document.storedStamps {
      try encoder.encode(before, createTime: stamps.createTime)
      var row = encoder.bytes
      row.overwriteLittleEndian(stamps.version.rawValue, at: 0)
      row.overwriteLittleEndian(stamps.updateTime.microsecondsSince1970, at: 8)
      documents.appendVarint(row.count)
      documents += row
    }
    if let after {
      try encoder.encode(after, createTime: document.before?.stamps.createTime)
      documents.appendVarint(encoder.bytes.count)
      stamps += encoder.stamps.map { (documents.count + $0.offset, $0.form) }
      documents += encoder.bytes
    }
  }

  func finish(havePlaces: Bool) -> (bytes: [UInt8], stamps: [(offset: Int, form: StampForm)]) {
    let head = ChangeRecord.head(
      encoder.symbols, count: places.count, places: havePlaces ? places : nil)
    return (head + documents, stamps.map { (head.count + $0.offset, $0.form) })
  }
}
