// `lookup`: documents joined to each row, by a reference that the row has, or by a value that
// equals a field of another collection's documents. The latter keeps that collection's documents by
// this value, read once.

internal import OndolEngine

/// Joins documents to rows.
final class LookupOperator: RowSink {
  private let name: String
  private let key: StageExpressions
  private let collection: (path: CollectionPath, field: PipelineField)?
  private let context: PipelineContext
  private let next: any RowSink
  /// The other collection's documents by their value, once a row has asked for them.
  private var documents: [Value: [Value]]?
  private var referred: [DocumentPath: Value] = [:]

  init(
    _ lookup: PipelineLookup, _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    name = lookup.name
    self.context = context
    self.next = next
    switch lookup.match {
    case .reference(let expression):
      key = try StageExpressions([expression], of: "lookup", context)
      collection = nil
    case .equal(let path, let field, let expression):
      if let problem = field.problem { throw problem }
      key = try StageExpressions([expression], of: "lookup", context)
      collection = (path, field)
    }
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    key.load(row)
    let value = try key.value(0)
    var fields = row.fields
    if let collection {
      if documents == nil { documents = try read(collection.path, collection.field) }
      let found = value.flatMap { documents?[$0] } ?? []
      fields.set(.array(found), at: name)
    } else {
      let path = value?.reference
      let found = try path.map { (path) throws(DatabaseError) in try document(at: path) }
      fields.set(found ?? .null, at: name)
    }
    return try next.take(PipelineRow(row, fields: fields))
  }

  func finish() throws(DatabaseError) { try next.finish() }

  /// The fields of a document, or null; read once.
  private func document(at path: DocumentPath) throws(DatabaseError) -> Value {
    if let known = referred[path] { return known }
    try context.willRead(.document(path))
    let contents = try DocumentReader(rows: context.rows).contents(of: path)
    let value = contents.map { Value.map($0.fields) } ?? .null
    try context.keep(value.memoryBytes + 2 * PipelineContext.overhead, in: "lookup")
    referred[path] = value
    return value
  }

  private func read(
    _ path: CollectionPath, _ field: PipelineField
  ) throws(DatabaseError) -> [Value: [Value]] {
    let index = DocumentIndex(field, context)
    let plan = try PipelinePlan([.collection(path)])
    try PipelineExecution(plan, context, depth: 1).run(into: index)
    return index.documents
  }

  /// Keeps documents by the value of a field. Those without it are joined to no row.
  private final class DocumentIndex: RowSink {
    private let field: PipelineField
    private let context: PipelineContext
    private(set) var documents: [Value: [Value]] = [:]

    init(_ field: PipelineField, _ context: PipelineContext) {
      self.field = field
      self.context = context
    }

    func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
      guard let value = row.value(of: field) else { return true }
      let document = Value.map(row.fields)
      try context.keep(document.memoryBytes + PipelineContext.overhead, in: "lookup")
      documents[value, default: []].append(document)
      return true
    }

    func finish() {}
  }
}
