// The documents that references of rows lead to, each read once, for `lookup`. They are found by
// the bytes of their paths, which documents hold as references, so a path is only made for a
// document that is not known yet. When many documents of one collection are asked for, the
// collection is read as a whole: one walk costs less than as many lookups.

internal import OndolEngine

/// Documents by the bytes of their paths, with the fields that later stages look at.
struct JoinedDocuments: Sendable {
  let extent: NeededFields.Extent
  private var keys = KeyTable()
  private var documents: [Value] = []
  private(set) var bytes = 0
  /// For each collection, the lookups after which it is read as a whole; nil when it was read.
  private var walks: [CollectionPath: Int?] = [:]
  private var lookups: [CollectionPath: Int] = [:]

  /// Lookups in a collection before its size is asked for.
  private static let fewLookups = 256
  /// A walk over so many documents costs no more than one lookup.
  private static let documentsOfLookup = 8

  init(_ extent: NeededFields.Extent) {
    self.extent = extent
  }

  /// The same without documents.
  var emptied: JoinedDocuments { JoinedDocuments(extent) }

  /// The document, or null when there is none; nil when it is not known.
  @inline(__always)
  func known(_ path: RawSpan) -> Value? { keys.place(of: path).map { documents[$0] } }

  /// Adds a document that is not known; returns the bytes that are kept of it.
  mutating func add(_ path: [UInt8], _ document: Value) -> Int {
    _ = keys.add(path)
    documents.append(document)
    let more =
      document.memoryBytes + KeyTable.memoryBytes(path.count) + PipelineContext.overhead
    bytes += more
    return more
  }

  /// What is kept of a document with these fields.
  func part(of fields: [String: Value]) -> Value {
    guard case .inner(let names) = extent else { return .map(fields) }
    return .map(fields.filter { names.contains($0.key) })
  }

  /// What is kept of a stored document.
  func part(of contents: DocumentSnapshot.Contents) -> Value {
    guard case .inner(let names) = extent else { return .map(contents.fields) }
    var fields = [String: Value](minimumCapacity: names.count)
    for name in names { if let value = contents.value(at: [name]) { fields[name] = value } }
    return .map(fields)
  }

  /// Notes a lookup in a collection; returns whether now is the time to read all of it.
  ///
  /// - Parameter count: the approximate number of its documents.
  mutating func noteLookup(
    in collection: CollectionPath, _ count: () throws(DatabaseError) -> Int
  ) throws(DatabaseError) -> Bool {
    let done = lookups[collection, default: 0] + 1
    lookups[collection] = done
    guard done >= Self.fewLookups else { return false }
    if walks[collection] == nil {
      walks[collection] = .some(try count() / Self.documentsOfLookup)
    }
    guard case .some(.some(let enough)) = walks[collection], done >= enough else { return false }
    walks[collection] = .some(nil)
    return true
  }
}

extension PipelineContext {
  /// The document that a reference leads to, or null.
  ///
  /// - Parameters:
  ///   - bytes: the path's.
  ///   - place: the lookup's.
  ///   - path: makes the path.
  func document(
    at bytes: [UInt8], _ place: Int, _ path: () throws(DatabaseError) -> DocumentPath
  ) throws(DatabaseError) -> Value {
    if let known = referred[place].known(bytes.bytes) { return known }
    let path = try path()
    try willRead(.document(path))
    // A transaction must not depend on the other documents.
    if !notesReads, try isTimeToReadAll(of: path.collection, place) {
      try readAll(of: path.collection, place)
      if let known = referred[place].known(bytes.bytes) { return known }
    }
    let contents = try DocumentReader(rows: rows).contents(of: path)
    let document = contents.map { referred[place].part(of: $0) } ?? .null
    forgetWhenFull(place)
    keep(referred[place].add(bytes, document))
    return document
  }

  /// Documents are read again when too many others were read since.
  private func forgetWhenFull(_ place: Int) {
    guard !hasRoom(for: PipelineContext.overhead) else { return }
    release(referred[place].bytes)
    referred[place] = referred[place].emptied
  }

  private func isTimeToReadAll(
    of collection: CollectionPath, _ place: Int
  ) throws(DatabaseError) -> Bool {
    try referred[place].noteLookup(in: collection) { () throws(DatabaseError) in
      try documentCount(of: collection)
    }
  }

  private func documentCount(of collection: CollectionPath) throws(DatabaseError) -> Int {
    let executor = try Executor(QueryShape(source: .collection(collection)), in: database, rows)
    guard executor.parts.count == 1, case .scan(let range, _)? = executor.parts[0].plan.ways.first
    else { return .max }
    return try rows.estimatedCount(of: range)
  }

  private func readAll(of collection: CollectionPath, _ place: Int) throws(DatabaseError) {
    let plan = try PipelinePlan([.collection(collection)])
    try PipelineExecution(plan, self, depth: 1).run(into: JoinedCollector(self, place))
  }

  /// Adds a collection's documents as long as there is room.
  private final class JoinedCollector: RowSink {
    private let context: PipelineContext
    private let place: Int

    init(_ context: PipelineContext, _ place: Int) {
      self.context = context
      self.place = place
    }

    func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
      guard let path = row.path, case .document(let contents) = row.form else { return true }
      let bytes = Array(path.description.utf8)
      guard context.referred[place].known(bytes.bytes) == nil else { return true }
      let document = context.referred[place].part(of: contents)
      guard context.hasRoom(for: document.memoryBytes + 2 * PipelineContext.overhead) else {
        return false
      }
      context.keep(context.referred[place].add(bytes, document))
      return true
    }

    func finish() {}
  }
}

/// `lookup` by a reference over documents' bytes: the reference is not decoded, and of the document
/// only the fields that later stages look at.
final class DocumentLookup: DocumentSink {
  private let fields: [PipelineField]
  private let layout: RowLayout
  private let reference: PipelineField
  private let context: PipelineContext
  private let place: Int
  private let hasIdentity: Bool
  private var readers: [FieldsOfPart] = []
  private let next: any RowSink

  /// Nil when the stage does not follow a field, or all fields are needed.
  init?(
    _ lookup: PipelineLookup, _ needed: NeededFields, _ context: PipelineContext,
    _ next: any RowSink
  ) {
    guard case .reference(let expression) = lookup.match, case .field(let field) = expression.form,
      field.problem == nil, case .names = field.form, let names = needed.names,
      !lookup.name.utf8.contains(UInt8(ascii: ".")),
      let layout = RowLayout(names.keys.filter { $0 != lookup.name }.sorted() + [lookup.name])
    else { return nil }
    fields = layout.names.dropLast().map { PipelineField(FieldPath([$0])) }
    self.layout = layout
    reference = field
    self.context = context
    place = context.newLookup(needed.extent(of: lookup.name))
    hasIdentity = needed.identity
    self.next = next
  }

  var needsKeys: Bool { hasIdentity }

  func begin(_ parts: [QueryPart]) {
    readers = parts.map { FieldsOfPart(fields + [reference], $0) }
  }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    let reader = readers[part]
    var values: [Value?] = []
    values.reserveCapacity(fields.count + 1)
    var path: [UInt8]?
    do throws(MalformedBytes) {
      for index in fields.indices {
        values.append(try view.field(reader.paths[index])?.value(reader.symbols))
      }
      if let field = try view.field(reader.paths[fields.count]), let bytes = try field.reference {
        if let known = context.referred[place].known(bytes) {
          values.append(known)
        } else {
          path = bytes.array
        }
      } else {
        values.append(.null)
      }
    } catch {
      throw DatabaseError(error, documentAt: try reader.path(of: key))
    }
    if let path {
      values.append(
        try context.document(at: path, place) { () throws(DatabaseError) in
          guard let text = String(utf8: path.bytes), let path = try? DocumentPath(text),
            isSame(path.description, text)
          else {
            throw DatabaseError(
              MalformedBytes(at: 0, "a document has a reference that is no path"),
              documentAt: try reader.path(of: key))
          }
          return path
        })
    }
    guard hasIdentity else { return try next.take(PipelineRow(layout, values)) }
    return try next.take(
      PipelineRow(try reader.path(of: key), DocumentStamps(view), .columns(layout, values)))
  }

  func finish() throws(DatabaseError) { try next.finish() }
}
