// `lookup`: documents joined to each row, by a reference that the row has, or by a value that
// equals a field of another collection's documents. The latter keeps that collection's documents by
// this value, read once. When they do not fit the memory, both sides are sorted by the value,
// joined as they come, and the rows sorted back. For references see JoinedDocuments.

internal import OndolEngine

/// Joins documents to rows.
final class LookupOperator: RowSink {
  private var joined: ColumnSetter
  private let key: StageExpressions
  private let collection: (path: CollectionPath, field: PipelineField)?
  private let context: PipelineContext
  private let next: any RowSink
  /// The other collection's documents, once a row has asked for them.
  private var others: DocumentIndex?
  /// The rows, when the other documents did not fit the memory.
  private var rows: SortedRows<PipelineRow>
  /// Under which place the context has the documents that references lead to.
  private let place: Int

  /// - Parameter extent: what later stages look at of the joined document.
  init(
    _ lookup: PipelineLookup, _ extent: NeededFields.Extent, _ context: PipelineContext,
    _ next: any RowSink
  ) throws(DatabaseError) {
    place = context.newLookup(extent)
    joined = ColumnSetter(lookup.name)
    self.context = context
    self.next = next
    rows = SortedRows(RowOrder(descending: [false]), limit: .max, in: "lookup", context)
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
    if let collection {
      if others == nil { others = try read(collection.path, collection.field) }
      guard let index = others else { return true }
      guard index.sorted == nil else {
        try rows.add(row, keys: [value])
        return true
      }
      return try next.take(
        joined.set(.array(value.flatMap { index.documents[$0] } ?? []), in: row))
    }
    guard let path = value?.reference else { return try next.take(joined.set(.null, in: row)) }
    let found = try context.document(at: Array(path.description.utf8), place) { path }
    return try next.take(joined.set(found, in: row))
  }

  func finish() throws(DatabaseError) {
    if let sorted = others?.sorted { try passJoined(to: sorted) }
    try next.finish()
  }

  /// Joins rows and documents, both sorted by the value, and passes the rows on as they came.
  private func passJoined(to documents: SortedRows<PipelineRow>) throws(DatabaseError) {
    var documents = documents
    var left = try rows.finish(mayKeep: false)
    var right = try documents.finish(mayKeep: false)
    var results = SortedRows<PipelineRow>(
      RowOrder(descending: []), limit: .max, in: "lookup", context)
    let order = RowOrder(descending: [false])
    var candidate = try right.next()
    var found: (keys: [Value?], list: [Value], bytes: Int) = ([nil], [], 0)
    while let row = try left.next() {
      if order.compare(found.keys, row.keys) != 0 {
        context.release(found.bytes)
        found = (row.keys, [], 0)
        while let document = candidate {
          let comparison = order.compare(document.keys, row.keys)
          if comparison > 0 { break }
          if comparison == 0 {
            let value = Value.map(document.payload.fields)
            let bytes = value.memoryBytes + PipelineContext.overhead
            try results.makeRoom(for: bytes)
            try context.keep(bytes, in: "lookup")
            found.bytes += bytes
            found.list.append(value)
          }
          candidate = try right.next()
        }
      }
      try results.add(
        SortedRow(
          keys: [], place: row.place,
          payload: joined.set(.array(found.list), in: row.payload)))
    }
    context.release(found.bytes)
    var sorted = try results.finish()
    while let row = try sorted.next() { guard try next.take(row.payload) else { break } }
  }

  private func read(
    _ path: CollectionPath, _ field: PipelineField
  ) throws(DatabaseError) -> DocumentIndex {
    let index = DocumentIndex(field, context)
    let plan = try PipelinePlan([.collection(path)])
    try PipelineExecution(plan, context, depth: 1).run(into: index)
    return index
  }

  /// Keeps documents by the value of a field. Those without it are joined to no row.
  private final class DocumentIndex: RowSink {
    private let field: PipelineField
    private let context: PipelineContext
    private(set) var documents: [Value: [Value]] = [:]
    private var kept = 0
    /// The documents sorted by the value, once they have become too many.
    private(set) var sorted: SortedRows<PipelineRow>?

    init(_ field: PipelineField, _ context: PipelineContext) {
      self.field = field
      self.context = context
    }

    func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
      guard let value = row.value(of: field) else { return true }
      if sorted != nil {
        try sorted?.add(row, keys: [value])
        return true
      }
      let document = Value.map(row.fields)
      let bytes = document.memoryBytes + PipelineContext.overhead
      let hasRoom = context.hasRoom(for: bytes)
      context.keep(bytes)
      kept += bytes
      documents[value, default: []].append(document)
      if !hasRoom, kept >= context.worthSpilling { try sort() }
      return true
    }

    /// Writes the documents to the scratch file, sorted.
    private func sort() throws(DatabaseError) {
      var sorter = SortedRows<PipelineRow>(
        RowOrder(descending: [false]), limit: .max, in: "lookup", context)
      // Of one value they are in the order in which they came.
      let values = documents.keys.sorted { ValueOrder.compare($0, $1) < 0 }
      let rows = values.lazy.flatMap { [documents] value in
        (documents[value] ?? []).lazy.map { (value, PipelineRow($0.map ?? [:])) }
      }
      var count = 0
      try sorter.add(
        run: rows.map { value, row in
          defer { count += 1 }
          return SortedRow(keys: [value], place: count, payload: row)
        })
      documents = [:]
      context.release(kept)
      kept = 0
      sorted = sorter
    }

    func finish() {}
  }
}
