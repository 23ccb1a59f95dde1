// `aggregate` and `distinct`: the last rows that most reports see. It takes rows of other stages,
// and documents straight from a scan: then groups and numbers are read from the documents' bytes,
// and nothing is decoded that is only counted or compared.

internal import OndolEngine

/// Groups rows by expressions and computes aggregates of each group.
final class AggregateOperator: RowSink, DocumentSink {
  private let stage: StaticString
  private let context: PipelineContext
  private let groupCount: Int
  private let columnCount: Int
  /// The groups' expressions, then the columns'.
  private let expressions: StageExpressions
  private var groups: PipelineGroups
  private let columns: [AggregateColumn]
  private let made: ColumnMaker
  /// Bytes that the groups keep.
  private var kept = 0
  /// Groups that were written to the scratch file, and how many they were.
  private var spilled: SortedRows<GroupState>?
  private var spilledCount = 0
  private let next: any RowSink
  /// How the expressions are read from documents' bytes; nil when one must be computed.
  private let sources: DocumentSources?
  private var readers: [FieldsOfPart] = []
  private var bytes: [UInt8] = []
  /// Bytes of new groups of the document that is being added.
  private var pendingBytes = 0

  convenience init(
    _ aggregates: [AliasedAggregate], groups: [AliasedExpression],
    of elements: UnnestedElements? = nil, _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    guard !aggregates.isEmpty else {
      throw DatabaseError(
        .invalidArgument,
        "the stage aggregate requires at least one accumulator; distinct gives groups alone")
    }
    try self.init("aggregate", aggregates, groups, elements, context, next)
  }

  /// Groups without aggregates.
  convenience init(
    distinct groups: [AliasedExpression], of elements: UnnestedElements? = nil,
    _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    try self.init("distinct", [], groups, elements, context, next)
  }

  private init(
    _ stage: StaticString, _ aggregates: [AliasedAggregate], _ groups: [AliasedExpression],
    _ elements: UnnestedElements?, _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    var columns: [AggregateColumn] = []
    for aggregate in aggregates { columns.append(try AggregateColumn(aggregate.aggregate)) }
    let operands = aggregates.map { $0.aggregate.argument ?? PipelineExpression(.null) }
    expressions = try StageExpressions(
      groups.map(\.expression) + operands, of: stage, context)
    self.stage = stage
    self.context = context
    self.next = next
    groupCount = groups.count
    columnCount = aggregates.count
    made = ColumnMaker(groups.map(\.name) + aggregates.map(\.name))
    self.columns = columns
    self.groups = PipelineGroups(columns)
    sources = DocumentSources(expressions, groupCount: groups.count, columns, elements)
    // Without groups there is one result even of no rows.
    if groups.isEmpty { _ = self.groups.place(of: []) }
  }

  /// Whether documents are read without making values of more than the groups.
  var readsBytes: Bool { sources != nil }

  // MARK: - Rows

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    expressions.load(row)
    try addLoaded()
    return true
  }

  /// Adds the row that is loaded.
  private func addLoaded() throws(DatabaseError) {
    var key: [Value?] = []
    key.reserveCapacity(groupCount)
    for index in 0..<groupCount { key.append(try expressions.value(index)) }
    let (place, kept) = groups.place(of: key)
    var bytes = kept
    for index in 0..<columnCount {
      // Aggregates pass over values that cannot be computed.
      bytes += groups.add(try? expressions.value(groupCount + index), column: index, to: place)
    }
    if bytes > 0 { try keep(bytes) }
  }

  // MARK: - Documents

  var needsKeys: Bool { expressions.fields.contains { $0.form == .name } }

  func begin(_ parts: [QueryPart]) {
    readers = parts.map { part in
      FieldsOfPart(expressions.fields + (sources?.elements.map { [$0.array] } ?? []), part)
    }
  }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    let reader = readers[part]
    guard let sources else {
      try reader.load(view, key, into: expressions.frame)
      try addLoaded()
      return true
    }
    do throws(MalformedBytes) {
      if let elements = sources.elements {
        try addElements(of: view, reader, sources, elements)
      } else {
        try add(view, nil, reader, sources)
      }
    } catch {
      throw DatabaseError(error, documentAt: try reader.path(of: key))
    }
    if pendingBytes > 0 {
      let bytes = pendingBytes
      pendingBytes = 0
      try keep(bytes)
    }
    return true
  }

  /// Adds a row for each element of an array; what is no array is one row.
  private func addElements(
    of view: borrowing DocumentView, _ reader: FieldsOfPart, _ sources: DocumentSources,
    _ elements: UnnestedElements
  ) throws(MalformedBytes) {
    let array = try view.field(reader.paths[expressions.fields.count])
    guard let array, let layout = try array.arrayLayout() else {
      if let place = elements.place { context.count(place) }
      return try add(view, array, reader, sources)
    }
    for index in 0..<layout.count {
      if let place = elements.place { context.count(place) }
      try add(view, array.element(index, of: layout), reader, sources)
    }
  }

  private func add(
    _ view: borrowing DocumentView, _ element: ValueView?, _ reader: FieldsOfPart,
    _ sources: DocumentSources
  ) throws(MalformedBytes) {
    let place = try place(of: view, element, reader, sources)
    for index in sources.columns.indices {
      switch sources.columns[index] {
      case .nothing: groups.count(column: index, in: place)
      case .element: try groups.add(element, column: index, to: place, reader.symbols)
      case .field(let slot):
        try groups.add(
          view.field(reader.paths[slot]), column: index, to: place, reader.symbols)
      }
    }
  }

  /// The place of the document's group.
  private func place(
    of view: borrowing DocumentView, _ element: ValueView?, _ reader: FieldsOfPart,
    _ sources: DocumentSources
  ) throws(MalformedBytes) -> Int {
    guard !sources.groups.isEmpty else { return 0 }
    bytes.removeAll(keepingCapacity: true)
    var isShown = true
    for source in sources.groups {
      var isOwnShown = true
      switch source {
      case .nothing: break
      case .element:
        if let element {
          isOwnShown = try element.append(groupKeyTo: &bytes, reader.symbols)
        } else {
          bytes.append(groupCode: 0)
        }
      case .field(let slot):
        if let field = try view.field(reader.paths[slot]) {
          isOwnShown = try field.append(groupKeyTo: &bytes, reader.symbols)
        } else {
          // A document that lacks the field is in the group of null.
          bytes.append(groupCode: 0)
        }
      }
      if !isOwnShown { isShown = false }
    }
    if let known = groups.keys.place(of: bytes.bytes) { return known }
    return try add(isShown ? nil : values(of: view, element, reader, sources))
  }

  @inline(never)
  private func add(_ values: [Value]?) throws(MalformedBytes) -> Int {
    let bytes = bytes
    if values == nil { try GroupKey.check(bytes.bytes) }
    let (place, kept) = groups.add(bytes, values)
    pendingBytes += kept
    return place
  }

  /// The values of the document's group.
  private func values(
    of view: borrowing DocumentView, _ element: ValueView?, _ reader: FieldsOfPart,
    _ sources: DocumentSources
  ) throws(MalformedBytes) -> [Value] {
    var values: [Value] = []
    for source in sources.groups {
      switch source {
      case .nothing: values.append(.null)
      case .element: values.append(try element?.value(reader.symbols) ?? .null)
      case .field(let slot):
        values.append(try view.field(reader.paths[slot])?.value(reader.symbols) ?? .null)
      }
    }
    return values
  }

  // MARK: - Groups of others

  /// The groups so far and the bytes that they keep, which are not passed on.
  func takeGroups() -> (groups: PipelineGroups, bytes: Int) {
    defer { (groups, kept) = (PipelineGroups(columns), 0) }
    context.release(kept)
    return (groups, kept)
  }

  /// Continues with groups that others have found.
  func adopt(_ others: PipelineGroups, bytes: Int) {
    groups = others
    context.keep(bytes)
    kept = bytes
  }

  // MARK: - Groups beyond the memory

  /// Notes that the groups keep more bytes. Writes all of them to the scratch file when there is no
  /// room.
  private func keep(_ bytes: Int) throws(DatabaseError) {
    let hasRoom = context.hasRoom(for: bytes)
    context.keep(bytes)
    kept += bytes
    if !hasRoom, kept >= context.worthSpilling { try spill() }
  }

  /// Writes what was added to each group, and begins again without any.
  private func spill() throws(DatabaseError) {
    var old = PipelineGroups(columns)
    swap(&old, &groups)
    var sorter =
      spilled ?? SortedRows(RowOrder(descending: [false]), limit: .max, in: stage, context)
    try sorter.add(
      run: old.sortedPlaces.lazy.map { [spilledCount] place in
        var record = RecordWriter()
        old.write(place, to: &record)
        return SortedRow(
          keys: [.bytes(old.keys[place].array)], place: spilledCount + place,
          payload: GroupState(values: old.hiddenValues(of: place), bytes: record.take()))
      })
    spilled = sorter
    spilledCount += old.count
    context.release(kept)
    kept = 0
    if groupCount == 0 { _ = groups.place(of: []) }
  }

  /// Puts the written groups together again, and passes them on in the order in which they came.
  private func passSpilled(_ sorter: SortedRows<GroupState>) throws(DatabaseError) {
    var sorter = sorter
    var written = try sorter.finish()
    var results = SortedRows<PipelineRow>(
      RowOrder(descending: []), limit: .max, in: stage, context)
    var first: (key: [UInt8], place: Int)?
    while let row = try written.next() {
      let key = row.keys[0]?.bytes ?? []
      if let known = first, known.key != key {
        try results.add(takeResult(at: known.place))
        first = nil
      }
      var bytes = 0
      if first == nil {
        first = (key, row.place)
        bytes = groups.add(key, row.payload.values).bytes
      }
      var record = RecordReader(row.payload.bytes)
      do throws(MalformedBytes) {
        bytes += try groups.merge(&record, into: 0)
      } catch {
        throw DatabaseError(.dataLoss, error.reason)
      }
      kept += bytes
      try results.makeRoom(for: bytes)
      try context.keep(bytes, in: stage)
    }
    if let first { try results.add(takeResult(at: first.place)) }
    var sorted = try results.finish()
    while let row = try sorted.next() { guard try next.take(row.payload) else { break } }
  }

  /// The result of the only group, which is dropped.
  private func takeResult(at place: Int) throws(DatabaseError) -> SortedRow<PipelineRow> {
    let result = try result(of: 0)
    groups = PipelineGroups(columns)
    context.release(kept)
    kept = 0
    return SortedRow(keys: [], place: place, payload: result)
  }

  // MARK: - The end

  func finish() throws(DatabaseError) {
    if spilled != nil {
      if groups.count > 0 { try spill() }
      groups = PipelineGroups(columns)
      if let spilled { try passSpilled(spilled) }
    } else {
      for place in 0..<groups.count {
        try context.step()
        guard try next.take(result(of: place)) else { break }
      }
      groups = PipelineGroups(columns)
      context.release(kept)
    }
    try next.finish()
  }

  private func result(of place: Int) throws(DatabaseError) -> PipelineRow {
    var values: [Value?] = []
    values.reserveCapacity(groupCount + columnCount)
    for value in try groups.values(of: place) { values.append(value) }
    for column in groups.columns { values.append(column.result(of: place)) }
    return PipelineRow(nil, nil, made.form(values))
  }
}

/// What was added to one group, as `PipelineGroups` writes it.
private struct GroupState: Spillable {
  /// The group's values, when its key does not show them.
  let values: [Value]?
  let bytes: [UInt8]

  init(values: [Value]?, bytes: [UInt8]) {
    self.values = values
    self.bytes = bytes
  }

  var memoryBytes: Int {
    bytes.count + 48 + (values?.reduce(0) { $0 + $1.memoryBytes + Value.inlineBytes } ?? 0)
  }

  func write(to record: inout RecordWriter, _ spill: Spill) {
    record.append(values.map { .array($0) })
    record.append(octets: bytes)
  }

  init(_ record: inout RecordReader, _ spill: Spill) throws(MalformedBytes) {
    values = try record.value()?.array
    bytes = try record.octets()
  }
}

extension AggregateColumn {
  init(_ aggregate: PipelineAggregate) throws(DatabaseError) {
    guard let kind = Kind(rawValue: aggregate.name) else {
      throw DatabaseError(
        .invalidArgument, "the stage aggregate: there is no aggregate \"\(aggregate.name)\"")
    }
    guard aggregate.argument != nil || kind == .count else {
      throw DatabaseError(
        .invalidArgument, "the stage aggregate: \(aggregate.name) takes 1 argument, and has none")
    }
    self.init(kind, countsRows: aggregate.argument == nil)
  }
}

/// Rows that `unnest` makes of documents: the elements of an array under a name.
struct UnnestedElements: Sendable {
  let array: PipelineField
  let name: String
  /// Where the stage's rows are counted, if at all.
  let place: Int?

  /// Nil when the array is no field, or other columns than the element depend on the stage.
  init?(_ stage: PipelineStage, at place: Int?) {
    guard case .unnest(let array, nil) = stage, case .field(let field) = array.expression.form,
      field.problem == nil, case .names = field.form,
      !array.name.utf8.contains(UInt8(ascii: "."))
    else { return nil }
    self.array = field
    name = array.name
    self.place = place
  }
}

/// From where in a document an aggregate that only reads fields gets its groups and columns.
struct DocumentSources: Sendable {
  enum Source: Sendable, BitwiseCopyable {
    /// A count of rows reads nothing.
    case nothing
    /// The field of a slot.
    case field(Int)
    /// The element of the array.
    case element
  }

  let groups: [Source]
  let columns: [Source]
  let elements: UnnestedElements?

  /// Nil when an expression must be computed, or is not a field of documents.
  init?(
    _ expressions: StageExpressions, groupCount: Int, _ columns: [AggregateColumn],
    _ elements: UnnestedElements?
  ) {
    var sources: [Source] = []
    for (index, expression) in expressions.compiled.enumerated() {
      if index >= groupCount, columns[index - groupCount].countsRows {
        sources.append(.nothing)
        continue
      }
      guard let slot = expression.slot, case .names(let names) = expressions.fields[slot].form,
        index < groupCount || columns[index - groupCount].readsFields
      else { return nil }
      guard let elements, isSame(names[0], elements.name) else {
        // A name in another spelling might be the element's.
        guard elements == nil || names[0].utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        sources.append(.field(slot))
        continue
      }
      guard names.count == 1 else { return nil }
      sources.append(.element)
    }
    groups = Array(sources.prefix(groupCount))
    self.columns = Array(sources.dropFirst(groupCount))
    self.elements = elements
  }
}
