// Rows that a stage cannot keep in memory. They are written in sorted runs to one scratch file of
// the execution, and come back merged. One form serves all stages: a sort by what it sorts by,
// groups by their values, joins by what they join on. So the memory of a merge is a few pieces of
// the file, however many rows there are, and the answer is the same as in memory.

internal import OndolEngine

/// What can be written to a scratch file and read back.
protocol Spillable: Sendable {
  /// The approximate memory in bytes.
  var memoryBytes: Int { get }

  func write(to record: inout RecordWriter, _ spill: Spill)

  init(_ record: inout RecordReader, _ spill: Spill) throws(MalformedBytes)
}

/// The scratch file of one execution.
final class Spill {
  /// Bytes that are written or read together.
  let pieceLength: Int
  private let file: ScratchFile
  /// The names in documents' rows, by the pattern of their collections: they are the same for the
  /// whole of an execution.
  private var symbols: [CollectionPattern: SymbolTable] = [:]
  private var last: (collection: CollectionPath, symbols: SymbolTable)?
  private var layouts: [RowLayout] = []

  init(_ file: ScratchFile, pieceLength: Int) {
    self.file = file
    self.pieceLength = pieceLength
  }

  func write(_ bytes: consuming [UInt8]) throws(DatabaseError) -> ScratchFile.Piece {
    do throws(EngineError) {
      return try file.append(bytes)
    } catch {
      throw DatabaseError(error)
    }
  }

  func read(_ piece: ScratchFile.Piece) throws(DatabaseError) -> [UInt8] {
    try rethrowing { () throws(EngineError) in try file.read(piece) }
  }

  /// Notes by which names the rows of a document's collection are read.
  func note(_ table: SymbolTable, of path: DocumentPath) {
    guard last.map({ !path.isDirectly(in: $0.collection) }) ?? true else { return }
    let collection = path.collection
    last = (collection, table)
    symbols[CollectionPattern(collection)] = table
  }

  /// The number under which rows with these columns are written.
  func number(of layout: RowLayout) -> Int {
    if let known = layouts.lastIndex(where: { $0 === layout }) { return known }
    layouts.append(layout)
    return layouts.count - 1
  }

  func layout(_ number: Int) -> RowLayout? {
    layouts.indices.contains(number) ? layouts[number] : nil
  }

  func symbols(of path: DocumentPath) -> SymbolTable? {
    if let last, path.isDirectly(in: last.collection) { return last.symbols }
    let collection = path.collection
    guard let table = symbols[CollectionPattern(collection)] else { return nil }
    last = (collection, table)
    return table
  }
}

/// A row with what it is sorted by, and its place among all rows, which decides ties.
struct SortedRow<Payload: Spillable>: Sendable {
  var keys: [Value?]
  var place: Int
  var payload: Payload

  var memoryBytes: Int {
    payload.memoryBytes
      + keys.reduce(PipelineContext.overhead) { $0 + ($1?.memoryBytes ?? 0) + 24 }
  }

  init(keys: [Value?], place: Int, payload: Payload) {
    self.keys = keys
    self.place = place
    self.payload = payload
  }

  fileprivate init(_ record: inout RecordReader, _ spill: Spill) throws(MalformedBytes) {
    place = try record.count()
    let count = try record.countOfThings()
    keys = []
    keys.reserveCapacity(count)
    for _ in 0..<count { keys.append(try record.value()) }
    payload = try Payload(&record, spill)
  }

  fileprivate func write(to record: inout RecordWriter, _ spill: Spill) {
    record.append(count: place)
    record.append(count: keys.count)
    for key in keys { record.append(key) }
    payload.write(to: &record, spill)
  }
}

extension RowOrder {
  func precedes<Payload>(
    _ left: SortedRow<Payload>, _ right: SortedRow<Payload>
  ) -> Bool {
    let compared = compare(left.keys, right.keys)
    return compared != 0 ? compared < 0 : left.place < right.place
  }
}

/// Sorted rows in a scratch file.
private struct SpilledRun<Payload: Spillable> {
  private(set) var pieces: [ScratchFile.Piece] = []
  private var record = RecordWriter()

  mutating func append(_ row: SortedRow<Payload>, _ spill: Spill) throws(DatabaseError) {
    row.write(to: &record, spill)
    if record.bytes.count >= spill.pieceLength { try finish(spill) }
  }

  /// Writes the rest.
  mutating func finish(_ spill: Spill) throws(DatabaseError) {
    guard !record.bytes.isEmpty else { return }
    pieces.append(try spill.write(record.take()))
  }
}

/// Reads a run from its beginning.
private struct RunReader<Payload: Spillable> {
  private let pieces: [ScratchFile.Piece]
  private var next = 0
  private var record = RecordReader([])

  init(_ run: SpilledRun<Payload>) {
    pieces = run.pieces
  }

  mutating func nextRow(_ spill: Spill) throws(DatabaseError) -> SortedRow<Payload>? {
    if record.isAtEnd {
      guard next < pieces.count else { return nil }
      record = RecordReader(try spill.read(pieces[next]))
      next += 1
    }
    do throws(MalformedBytes) {
      return try SortedRow(&record, spill)
    } catch {
      throw DatabaseError(.dataLoss, error.reason)
    }
  }
}

/// The rows of several runs in their order.
private struct RunMerge<Payload: Spillable> {
  private let order: RowOrder
  private let spill: Spill
  private var readers: [RunReader<Payload>] = []
  /// A heap: the least row is first, and none precedes the one at half its place.
  private var heads: [(row: SortedRow<Payload>, reader: Int)] = []

  init(
    _ runs: some Sequence<SpilledRun<Payload>>, _ order: RowOrder, _ spill: Spill
  ) throws(DatabaseError) {
    self.order = order
    self.spill = spill
    for run in runs {
      var reader = RunReader(run)
      guard let row = try reader.nextRow(spill) else { continue }
      heads.append((row, readers.count))
      readers.append(reader)
    }
    for place in heads.indices.reversed() { sink(from: place) }
  }

  mutating func next() throws(DatabaseError) -> SortedRow<Payload>? {
    guard let (row, reader) = heads.first else { return nil }
    if let following = try readers[reader].nextRow(spill) {
      heads[0] = (following, reader)
    } else {
      let last = heads.removeLast()
      if heads.isEmpty { return row }
      heads[0] = last
    }
    sink(from: 0)
    return row
  }

  private mutating func sink(from start: Int) {
    var place = start
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < heads.count {
        if order.precedes(heads[child].row, heads[least].row) { least = child }
      }
      if least == place { return }
      heads.swapAt(place, least)
      place = least
    }
  }
}

/// Collects rows and gives them back in order, whatever their number. Rows beyond the memory of the
/// execution go to its scratch file.
struct SortedRows<Payload: Spillable> {
  private let order: RowOrder
  private let stage: StaticString
  private let context: PipelineContext
  /// Rows that are wanted; the others may be dropped.
  private let limit: Int
  private var rows: [SortedRow<Payload>] = []
  /// Bytes of the rows in memory.
  private var kept = 0
  private var seen = 0
  /// Runs by level: of each level fewer than `mostRuns`. A run of one level has the rows of as many
  /// of the level below.
  private var runs: [[SpilledRun<Payload>]] = []

  /// Runs that are merged at once.
  private static var mostRuns: Int { 16 }

  init(_ order: RowOrder, limit: Int, in stage: StaticString, _ context: PipelineContext) {
    self.order = order
    self.limit = limit
    self.stage = stage
    self.context = context
  }

  /// Adds a row after all others.
  mutating func add(_ payload: Payload, keys: [Value?]) throws(DatabaseError) {
    try add(SortedRow(keys: keys, place: seen, payload: payload))
    seen += 1
  }

  /// Adds a row with a place of its own.
  mutating func add(_ row: SortedRow<Payload>) throws(DatabaseError) {
    let bytes = row.memoryBytes
    if !context.hasRoom(for: bytes), kept >= context.worthSpilling, !rows.isEmpty {
      try shrink()
      if !context.hasRoom(for: bytes) { try spill() }
    }
    context.keep(bytes)
    kept += bytes
    rows.append(row)
    let (most, overflow) = limit.multipliedReportingOverflow(by: 2)
    if !overflow, rows.count > max(most, 1_024) { try shrink() }
  }

  /// Sorts, and drops the rows that cannot be among the wanted ones any more.
  private mutating func shrink() throws(DatabaseError) {
    try sort()
    for row in rows.dropFirst(limit) { release(row.memoryBytes) }
    rows.removeSubrange(min(limit, rows.count)...)
  }

  private mutating func release(_ bytes: Int) {
    kept -= bytes
    context.release(bytes)
  }

  /// Writes the rows in memory to the scratch file when others need so many bytes.
  mutating func makeRoom(for bytes: Int) throws(DatabaseError) {
    guard !context.hasRoom(for: bytes), !rows.isEmpty else { return }
    try shrink()
    try spill()
  }

  private mutating func sort() throws(DatabaseError) {
    do {
      let (order, context) = (order, context)
      try rows.sort { left, right in
        try context.step()
        return order.precedes(left, right)
      }
    } catch let error as DatabaseError {
      throw error
    } catch {
      preconditionFailure("comparing rows throws only why it was ended: \(error)")
    }
  }

  /// Writes the rows in memory, which are sorted, as a run.
  private mutating func spill() throws(DatabaseError) {
    try add(run: rows)
    release(kept)
    rows.removeAll(keepingCapacity: true)
  }

  /// Adds rows that are in order already and are kept nowhere else.
  mutating func add(run sorted: some Sequence<SortedRow<Payload>>) throws(DatabaseError) {
    let spill = try context.spill(of: stage)
    var run = SpilledRun<Payload>()
    for row in sorted {
      try context.step()
      try run.append(row, spill)
      seen = max(seen, row.place + 1)
    }
    try run.finish(spill)
    try add(run, level: 0, spill)
  }

  private mutating func add(
    _ run: SpilledRun<Payload>, level: Int, _ spill: Spill
  ) throws(DatabaseError) {
    while runs.count <= level { runs.append([]) }
    runs[level].append(run)
    guard runs[level].count == Self.mostRuns else { return }
    let merged = try merged(runs[level], spill)
    runs[level] = []
    try add(merged, level: level + 1, spill)
  }

  private func merged(
    _ runs: [SpilledRun<Payload>], _ spill: Spill
  ) throws(DatabaseError) -> SpilledRun<Payload> {
    var merge = try RunMerge(runs, order, spill)
    var run = SpilledRun<Payload>()
    var left = limit
    while left > 0, let row = try merge.next() {
      try context.step()
      try run.append(row, spill)
      left -= 1
    }
    try run.finish(spill)
    return run
  }

  /// The wanted rows in order. Nothing can be added after that.
  ///
  /// - Parameter mayKeep: whether they may stay in memory until they are read.
  mutating func finish(mayKeep: Bool = true) throws(DatabaseError) -> SortedReading<Payload> {
    try shrink()
    guard !runs.isEmpty || !mayKeep && !rows.isEmpty else {
      rows.reverse()
      defer { rows = [] }
      return SortedReading(rows, context)
    }
    if !rows.isEmpty { try spill() }
    let spill = try context.spill(of: stage)
    var all = runs.flatMap(\.self)
    runs = []
    while all.count > Self.mostRuns {
      let first = Array(all.prefix(Self.mostRuns))
      all.removeFirst(Self.mostRuns)
      all.append(try merged(first, spill))
    }
    return SortedReading(try RunMerge(all, order, spill), limit: limit, context)
  }
}

/// Sorted rows, one after the other.
struct SortedReading<Payload: Spillable> {
  private let context: PipelineContext
  /// Rows in memory, the last one first.
  private var rows: [SortedRow<Payload>]
  private var merge: RunMerge<Payload>?
  private var left: Int

  fileprivate init(_ rows: [SortedRow<Payload>], _ context: PipelineContext) {
    self.rows = rows
    self.context = context
    left = rows.count
  }

  fileprivate init(_ merge: RunMerge<Payload>, limit: Int, _ context: PipelineContext) {
    rows = []
    self.merge = merge
    self.context = context
    left = limit
  }

  mutating func next() throws(DatabaseError) -> SortedRow<Payload>? {
    guard left > 0 else { return nil }
    left -= 1
    try context.step()
    if merge != nil { return try merge?.next() }
    guard let row = rows.popLast() else { return nil }
    context.release(row.memoryBytes)
    return row
  }
}

// MARK: - Rows

extension PipelineRow: Spillable {
  func write(to record: inout RecordWriter, _ spill: Spill) {
    record.append(flag: path != nil)
    if let path { record.append(.reference(path)) }
    record.append(flag: stamps != nil)
    if let stamps {
      record.append(word: stamps.version.rawValue)
      record.append(word: UInt64(bitPattern: stamps.updateTime.microsecondsSince1970))
      record.append(word: UInt64(bitPattern: stamps.createTime.microsecondsSince1970))
    }
    if let row = storedRow, let path {
      spill.note(row.symbols, of: path)
      record.append(count: SpilledForm.document)
      record.append(octets: row.bytes)
    } else if case .columns(let layout, let values) = form {
      record.append(count: SpilledForm.columns)
      record.append(count: spill.number(of: layout))
      for value in values { record.append(value) }
    } else {
      record.append(count: SpilledForm.fields)
      record.append(fields)
    }
  }

  init(_ record: inout RecordReader, _ spill: Spill) throws(MalformedBytes) {
    let path = try record.flag() ? try record.value()?.reference : nil
    var stamps: DocumentStamps?
    if try record.flag() {
      stamps = DocumentStamps(
        version: Version(rawValue: try record.word()),
        updateTime: Timestamp(unchecked: Int64(bitPattern: try record.word())),
        createTime: Timestamp(unchecked: Int64(bitPattern: try record.word())))
    }
    switch try record.count() {
    case SpilledForm.document:
      guard let path, let symbols = spill.symbols(of: path) else {
        throw MalformedBytes(at: record.offset, "an intermediate row is of no known collection")
      }
      self.init(path, try DocumentSnapshot.Contents(row: try record.octets(), symbols: symbols))
    case SpilledForm.columns:
      guard let layout = spill.layout(try record.count()) else {
        throw MalformedBytes(at: record.offset, "an intermediate row has no known columns")
      }
      var values: [Value?] = []
      values.reserveCapacity(layout.names.count)
      for _ in layout.names { values.append(try record.value()) }
      self.init(path, stamps, .columns(layout, values))
    default: self.init(path, stamps, .fields(try record.fields()))
    }
  }
}

/// The first number of a row in a scratch file.
private enum SpilledForm {
  static let fields = 0
  static let document = 1
  static let columns = 2
}
