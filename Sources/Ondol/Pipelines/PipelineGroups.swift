// Aggregates of groups as rows add up. A group is found by the key of its values, and values are
// decoded only for the answer. A column of aggregates has one entry for each group and only the
// arrays that its kind needs: half a million counts are four megabytes.

internal import OndolEngine

/// One aggregate of every group.
struct AggregateColumn: Sendable {
  enum Kind: String, Sendable {
    case count, countIf = "count_if", countDistinct = "count_distinct", sum, average, minimum
    case maximum, first, last, arrayAgg = "array_agg", arrayAggDistinct = "array_agg_distinct"
  }

  let kind: Kind
  /// Whether rows are counted whatever their values.
  let countsRows: Bool
  private let field: AggregateField
  private let fresh: Aggregator
  private var counts: [Int] = []
  private var numbers: [Aggregator] = []
  private var lists: [[Value]] = []
  private var sets: [Set<Value>] = []

  init(_ kind: Kind, countsRows: Bool) {
    self.kind = kind
    self.countsRows = countsRows
    // The path only names what is aggregated; values come from expressions.
    let path = FieldPath(kind.rawValue)
    field =
      switch kind {
      case .average: .average(path)
      case .minimum: .minimum(path)
      case .maximum: .maximum(path)
      default: .sum(path)
      }
    fresh = Aggregator(field)
  }

  /// Bytes of a new group.
  var bytesOfGroup: Int {
    switch kind {
    case .count, .countIf: MemoryLayout<Int>.stride
    case .sum, .average, .minimum, .maximum: MemoryLayout<Aggregator>.stride + 32
    default: 64
    }
  }

  mutating func addGroup() {
    switch kind {
    case .count, .countIf: counts.append(0)
    case .sum, .average, .minimum, .maximum: numbers.append(fresh)
    case .first, .last, .arrayAgg: lists.append([])
    case .countDistinct: sets.append([])
    case .arrayAggDistinct:
      sets.append([])
      lists.append([])
    }
  }

  /// Adds a row to a group; returns the bytes that are kept of it.
  mutating func add(_ value: Value?, to group: Int) -> Int {
    switch kind {
    case .count: if countsRows || value.map({ !$0.isNull }) ?? false { counts[group] += 1 }
    case .countIf: if value == .boolean(true) { counts[group] += 1 }
    case .sum, .average, .minimum, .maximum: numbers[group].add(value)
    case .first: if lists[group].isEmpty { return keep(value ?? .null, in: group) }
    case .last:
      lists[group].removeAll(keepingCapacity: true)
      lists[group].append(value ?? .null)
    case .arrayAgg: return keep(value ?? .null, in: group)
    case .countDistinct:
      guard let value, !value.isNull else { return 0 }
      return sets[group].insert(value).inserted ? value.memoryBytes + 40 : 0
    case .arrayAggDistinct:
      let value = value ?? .null
      guard sets[group].insert(value).inserted else { return 0 }
      return keep(value, in: group) + value.memoryBytes + 40
    }
    return 0
  }

  /// Appends what was added to a group, for `merge(_:into:)`.
  mutating func write(_ group: Int, to record: inout RecordWriter) {
    switch kind {
    case .count, .countIf: record.append(count: counts[group])
    case .sum, .average, .minimum, .maximum: numbers[group].write(to: &record)
    case .first, .last, .arrayAgg, .arrayAggDistinct:
      record.append(count: lists[group].count)
      for value in lists[group] { record.append(value) }
    case .countDistinct:
      record.append(count: sets[group].count)
      for value in sets[group] { record.append(value) }
    }
  }

  /// Adds what `write(_:to:)` has written of later rows to a group; returns the bytes that are kept
  /// of it.
  mutating func merge(
    _ record: inout RecordReader, into group: Int
  ) throws(MalformedBytes) -> Int {
    switch kind {
    case .count, .countIf: counts[group] += try record.count()
    case .sum, .average, .minimum, .maximum:
      numbers[group].add(try Aggregator(field, &record))
    case .first, .last, .countDistinct, .arrayAgg, .arrayAggDistinct:
      var bytes = 0
      for _ in 0..<(try record.countOfThings()) {
        bytes += add(try record.value(), to: group)
      }
      return bytes
    }
    return 0
  }

  /// Adds a group of another column, of later rows, to one of this; returns the bytes that are kept
  /// of it.
  mutating func add(_ other: AggregateColumn, _ place: Int, to group: Int) -> Int {
    switch kind {
    case .count, .countIf: counts[group] += other.counts[place]
    case .sum, .average, .minimum, .maximum: numbers[group].add(other.numbers[place])
    case .first, .last, .arrayAgg, .arrayAggDistinct:
      return other.lists[place].reduce(0) { $0 + add($1, to: group) }
    case .countDistinct: return other.sets[place].reduce(0) { $0 + add($1, to: group) }
    }
    return 0
  }

  private mutating func keep(_ value: Value, in group: Int) -> Int {
    lists[group].append(value)
    return value.memoryBytes + Value.inlineBytes
  }

  /// Adds a row by a field in a document's bytes. Only for counts and numbers.
  mutating func add(
    _ field: ValueView?, to group: Int, _ symbols: SymbolTable
  ) throws(MalformedBytes) {
    switch kind {
    // Null is stored as code 0.
    case .count: if let field, field.code != 0 { counts[group] += 1 }
    default: try numbers[group].add(field, symbols)
    }
  }

  /// Counts a row.
  mutating func count(in group: Int) { counts[group] += 1 }

  /// Whether a row can be added by a field in a document's bytes.
  var readsFields: Bool {
    switch kind {
    case .count, .sum, .average, .minimum, .maximum: true
    default: false
    }
  }

  func result(of group: Int) -> Value {
    switch kind {
    case .count, .countIf: .integer(Int64(counts[group]))
    case .sum, .average, .minimum, .maximum: numbers[group].result ?? .null
    case .first, .last: lists[group].first ?? .null
    case .countDistinct: .integer(Int64(sets[group].count))
    case .arrayAgg, .arrayAggDistinct: .array(lists[group])
    }
  }
}

/// The groups of an `aggregate` or a `distinct`, in the order in which they were met.
struct PipelineGroups: Sendable {
  private(set) var columns: [AggregateColumn]
  private(set) var keys = KeyTable()
  /// The values of groups whose keys do not show them, as of 1.0.
  private var hidden: [Int: [Value]] = [:]
  private var bytes: [UInt8] = []

  init(_ columns: [AggregateColumn]) {
    self.columns = columns
  }

  var count: Int { keys.count }

  /// The place of a group, which is new when its values are, and the bytes that are kept of it.
  mutating func place(of values: [Value?]) -> (place: Int, bytes: Int) {
    bytes.removeAll(keepingCapacity: true)
    var isShown = true
    for value in values { if !bytes.append(groupKey: value) { isShown = false } }
    if let place = keys.place(of: bytes.bytes) { return (place, 0) }
    return add(bytes, isShown ? nil : values.map { $0 ?? .null })
  }

  /// Adds a group that is not there yet.
  ///
  /// - Parameters:
  ///   - key: the keys of its values, side by side.
  ///   - values: the values, when the key does not show them.
  mutating func add(_ key: [UInt8], _ values: [Value]?) -> (place: Int, bytes: Int) {
    let place = keys.add(key)
    var kept = KeyTable.memoryBytes(key.count)
    if let values {
      hidden[place] = values
      kept += values.reduce(PipelineContext.overhead) { $0 + $1.memoryBytes + Value.inlineBytes }
    }
    for index in columns.indices {
      columns[index].addGroup()
      kept += columns[index].bytesOfGroup
    }
    return (place, kept)
  }

  /// The values of a group.
  func values(of place: Int) throws(DatabaseError) -> [Value] {
    if let values = hidden[place] { return values }
    do throws(MalformedBytes) {
      return try GroupKey.values(in: keys[place])
    } catch {
      throw DatabaseError(.internal, "the key of a group: \(error.reason)")
    }
  }

  /// The places of the groups in the order of their keys' bytes.
  var sortedPlaces: [Int] {
    (0..<count).sorted { keys[$0].compare(keys[$1]) < 0 }
  }

  /// The values of a group whose key does not show them.
  func hiddenValues(of place: Int) -> [Value]? { hidden[place] }

  /// Adds the groups of later rows; returns the bytes that are kept of new ones.
  mutating func add(_ others: PipelineGroups) -> Int {
    var kept = 0
    for other in 0..<others.count {
      let place: Int
      if let known = keys.place(of: others.keys[other]) {
        place = known
      } else {
        let added = add(others.keys[other].array, others.hidden[other])
        place = added.place
        kept += added.bytes
      }
      for index in columns.indices {
        kept += columns[index].add(others.columns[index], other, to: place)
      }
    }
    return kept
  }

  /// Appends what was added to a group, for `merge(_:into:)`.
  mutating func write(_ place: Int, to record: inout RecordWriter) {
    for index in columns.indices { columns[index].write(place, to: &record) }
  }

  /// Adds what `write(_:to:)` has written to a group; returns the bytes that are kept of it.
  mutating func merge(
    _ record: inout RecordReader, into place: Int
  ) throws(MalformedBytes) -> Int {
    var bytes = 0
    for index in columns.indices { bytes += try columns[index].merge(&record, into: place) }
    return bytes
  }

  /// Adds a value to a column of a group; returns the bytes that are kept of it.
  @inline(__always)
  mutating func add(_ value: Value?, column index: Int, to place: Int) -> Int {
    columns[index].add(value, to: place)
  }

  /// Adds a field in a document's bytes to a column of a group.
  @inline(__always)
  mutating func add(
    _ field: ValueView?, column index: Int, to place: Int, _ symbols: SymbolTable
  ) throws(MalformedBytes) {
    try columns[index].add(field, to: place, symbols)
  }

  /// Counts a row in a column that counts rows.
  @inline(__always)
  mutating func count(column index: Int, in place: Int) { columns[index].count(in: place) }
}
