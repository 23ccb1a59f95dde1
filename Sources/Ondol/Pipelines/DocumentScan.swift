// Documents on their way from a scan to the first stages, as borrowed bytes. What the first stages
// need of a document is read from its bytes; the document itself is copied only for a stage that
// passes it on.

internal import OndolEngine

/// A stage that takes documents as their bytes.
protocol DocumentSink: AnyObject {
  /// Whether it needs documents' keys.
  var needsKeys: Bool { get }

  /// Called before the first document, with the parts that documents belong to.
  func begin(_ parts: [QueryPart])

  /// Takes a document; the key may be empty unless it is needed. Returns false when it wants no
  /// more.
  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool

  func finish() throws(DatabaseError)
}

/// Reads fields of the documents of one part of a query.
final class FieldsOfPart {
  private let fields: [PipelineField]
  /// For each field its path; an empty one for what is no field of documents.
  let paths: [ResolvedPath]
  let symbols: SymbolTable
  private let naming: DocumentNaming

  init(_ fields: [PipelineField], _ part: QueryPart) {
    self.fields = fields
    let symbols = part.matcher.symbols
    self.symbols = symbols
    naming = part.naming
    paths = fields.map { field in
      if case .names(let names) = field.form { return ResolvedPath(names, in: symbols) }
      return ResolvedPath([], in: symbols)
    }
  }

  func path(of key: RawSpan) throws(DatabaseError) -> DocumentPath { try naming.path(of: key) }

  /// Puts the fields of a document into the slots of a frame.
  func load(
    _ view: borrowing DocumentView, _ key: RawSpan, into frame: EvaluationFrame
  ) throws(DatabaseError) {
    frame.slots.removeAll(keepingCapacity: true)
    for place in fields.indices {
      switch fields[place].form {
      case .name: frame.slots.append(.reference(try path(of: key)))
      case .createTime: frame.slots.append(.timestamp(view.createTime))
      case .updateTime: frame.slots.append(.timestamp(view.updateTime))
      case .names:
        do throws(MalformedBytes) {
          frame.slots.append(try view.field(paths[place])?.value(symbols))
        } catch {
          throw DatabaseError(error, documentAt: try path(of: key))
        }
      }
    }
  }
}

/// `where` over documents' bytes.
final class DocumentFilter: DocumentSink {
  private let condition: StageExpressions
  private var readers: [FieldsOfPart] = []
  private let next: any DocumentSink

  init(
    _ condition: PipelineExpression, _ context: PipelineContext, _ next: any DocumentSink
  ) throws(DatabaseError) {
    self.condition = try StageExpressions([condition], of: "where", context)
    self.next = next
  }

  var needsKeys: Bool {
    next.needsKeys || condition.fields.contains { $0.form == .name }
  }

  func begin(_ parts: [QueryPart]) {
    readers = parts.map { FieldsOfPart(condition.fields, $0) }
    next.begin(parts)
  }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    try readers[part].load(view, key, into: condition.frame)
    return condition.isTrue ? try next.take(view, key, part: part) : true
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// `select` over documents' bytes: only the selected fields are decoded.
final class DocumentProjection: DocumentSink {
  private let columns: StageExpressions
  private let made: ColumnMaker
  private var readers: [FieldsOfPart] = []
  private let next: any RowSink

  init(
    _ columns: [AliasedExpression], _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    self.columns = try StageExpressions(columns.map(\.expression), of: "select", context)
    made = ColumnMaker(columns.map(\.name))
    self.next = next
  }

  var needsKeys: Bool { true }

  func begin(_ parts: [QueryPart]) {
    readers = parts.map { FieldsOfPart(columns.fields, $0) }
  }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    try readers[part].load(view, key, into: columns.frame)
    let form = made.form(try columns.loadedValues())
    let path = try readers[part].path(of: key)
    return try next.take(PipelineRow(path, DocumentStamps(view), form))
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// Decodes the fields that later stages look at, as columns.
final class DocumentColumns: DocumentSink {
  private let fields: [PipelineField]
  private let layout: RowLayout
  /// Whether later stages look at documents' names and times.
  private let hasIdentity: Bool
  private var readers: [FieldsOfPart] = []
  private let next: any RowSink

  /// Nil when a name has several spellings.
  init?(_ needed: NeededFields, _ next: any RowSink) {
    guard let names = needed.names?.keys.sorted(), let layout = RowLayout(names) else { return nil }
    fields = names.map { PipelineField(FieldPath([$0])) }
    self.layout = layout
    hasIdentity = needed.identity
    self.next = next
  }

  var needsKeys: Bool { hasIdentity }

  func begin(_ parts: [QueryPart]) { readers = parts.map { FieldsOfPart(fields, $0) } }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    let reader = readers[part]
    var values: [Value?] = []
    values.reserveCapacity(fields.count)
    do throws(MalformedBytes) {
      for path in reader.paths { values.append(try view.field(path)?.value(reader.symbols)) }
    } catch {
      throw DatabaseError(error, documentAt: try reader.path(of: key))
    }
    guard hasIdentity else { return try next.take(PipelineRow(layout, values)) }
    return try next.take(
      PipelineRow(
        try reader.path(of: key), DocumentStamps(view), .columns(layout, values)))
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// Copies documents for stages that take rows.
final class DocumentCopying: DocumentSink {
  private var readers: [FieldsOfPart] = []
  private let next: any RowSink

  init(_ next: any RowSink) {
    self.next = next
  }

  var needsKeys: Bool { true }

  func begin(_ parts: [QueryPart]) { readers = parts.map { FieldsOfPart([], $0) } }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    let path = try readers[part].path(of: key)
    let contents: DocumentSnapshot.Contents
    do throws(MalformedBytes) {
      contents = try .init(row: view.row, symbols: readers[part].symbols)
    } catch {
      throw DatabaseError(error, documentAt: path)
    }
    return try next.take(PipelineRow(path, contents))
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// Counts the documents that a stage passes on, and adds the place of the next stage to its errors.
final class DocumentCounter: DocumentSink {
  private let plan: PipelinePlan
  private let context: PipelineContext
  private let place: Int
  private let next: any DocumentSink

  init(
    _ plan: PipelinePlan, _ context: PipelineContext, _ place: Int, _ next: any DocumentSink
  ) {
    self.plan = plan
    self.context = context
    self.place = place
    self.next = next
  }

  var needsKeys: Bool { next.needsKeys }

  func begin(_ parts: [QueryPart]) { next.begin(parts) }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    context.count(place)
    do throws(DatabaseError) {
      return try next.take(view, key, part: part)
    } catch {
      throw plan.placed(error, at: place)
    }
  }

  func finish() throws(DatabaseError) {
    do throws(DatabaseError) {
      try next.finish()
    } catch {
      throw plan.placed(error, at: place)
    }
  }
}
