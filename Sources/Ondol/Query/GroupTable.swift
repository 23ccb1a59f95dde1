// Aggregates of groups, computed from documents in their encoded rows. A group is found by the key
// of its values, which is made from their stored bytes: see GroupKey. Values are decoded only for a
// new group. Values that are equal but stored differently, as 1 and 1.0, belong to one group.

internal import OndolEngine

/// The aggregates of groups as the documents add up.
struct GroupTable: Sendable {
  private let fresh: [Aggregator]
  /// How the texts in group keys are compared; nil when by their bytes.
  private let comparison: TextComparison?
  /// Of texts that are equal in the comparison, a group's key has the first by its bytes.
  private(set) var groups: [(key: [Value], aggregators: [Aggregator])] = []
  private var keys = KeyTable()
  /// With a comparison, the keys of the values themselves, and the group of each.
  private var spellings = KeyTable()
  private var groupsOfSpellings: [Int] = []
  private var bytes: [UInt8] = []

  init(_ fields: [AggregateField], comparing comparison: TextComparison?) {
    fresh = fields.map { Aggregator($0) }
    self.comparison = comparison
  }

  /// Adds a document by the values of the aggregates' fields and of the group's fields. A document
  /// that lacks one of the latter is in no group.
  mutating func add(_ values: [Value?], _ keys: [Value?]) {
    let key = keys.compactMap(\.self)
    guard key.count == keys.count else { return }
    let place = place(of: key)
    for index in fresh.indices { groups[place].aggregators[index].add(values[index]) }
  }

  /// Adds the document of the row. A document that lacks one of the group's fields is in no group.
  mutating func add(
    _ view: borrowing DocumentView, _ key: RawSpan, _ reader: GroupFields
  ) throws(DatabaseError) {
    bytes.removeAll(keepingCapacity: true)
    guard try reader.grouped.append(view, key, groupKeysTo: &bytes) else { return }
    let place: Int
    if let known = known(bytes) {
      place = known
    } else {
      place = added(try reader.grouped.values(view, key).compactMap(\.self))
    }
    try reader.aggregated.add(view, key, to: &groups[place].aggregators)
  }

  /// The place of the group of values with this key, if it was met.
  private func known(_ key: [UInt8]) -> Int? {
    guard comparison != nil else { return keys.place(of: key.bytes) }
    return spellings.place(of: key.bytes).map { groupsOfSpellings[$0] }
  }

  /// The place of the group of values whose key was not met.
  private mutating func added(_ values: [Value]) -> Int {
    let spelling = bytes
    let place = place(of: values)
    if comparison != nil {
      _ = spellings.add(spelling)
      groupsOfSpellings.append(place)
    }
    return place
  }

  /// Adds the contents of another table, of later documents.
  mutating func add(_ other: GroupTable) {
    for (key, aggregators) in other.groups {
      let place = place(of: key)
      for index in fresh.indices { groups[place].aggregators[index].add(aggregators[index]) }
    }
  }

  /// The place of the group, which is new when the key is.
  private mutating func place(of key: [Value]) -> Int {
    bytes.removeAll(keepingCapacity: true)
    for value in key { _ = bytes.append(groupKey: comparison?.value(of: value) ?? value) }
    if let place = keys.place(of: bytes.bytes) {
      if comparison != nil { groups[place].key.replaceGreater(by: key) }
      return place
    }
    groups.append((key, fresh))
    return keys.add(bytes)
  }
}

extension [Value] {
  /// Replaces each value with the other list's value when that one is less.
  fileprivate mutating func replaceGreater(by others: [Value]) {
    for index in indices where ValueOrder.compare(others[index], self[index]) < 0 {
      self[index] = others[index]
    }
  }
}

/// Reads the fields that a table of groups needs from the documents of one part of a query. A
/// class, like `QueryPart`.
final class GroupFields {
  /// The fields of the aggregates, nil for counts.
  let aggregated: FieldReader
  /// The fields in which the documents of a group agree.
  let grouped: FieldReader

  init(_ aggregated: [QueryField?], _ grouped: [QueryField], _ part: QueryPart) {
    self.aggregated = FieldReader(aggregated, part)
    self.grouped = FieldReader(grouped, part)
  }
}

/// Reads a few fields of documents of one part of a query.
struct FieldReader {
  private enum Content: BitwiseCopyable {
    case nothing
    case name
    case field
  }

  private let fields: [(content: Content, path: ResolvedPath)]
  private let symbols: SymbolTable
  private let naming: DocumentNaming

  init(_ fields: [QueryField?], _ part: QueryPart) {
    let symbols = part.matcher.symbols
    self.symbols = symbols
    naming = part.naming
    self.fields = fields.map { field in
      switch field {
      case nil: (.nothing, ResolvedPath([], in: symbols))
      case .documentID: (.name, ResolvedPath([], in: symbols))
      // The table and the aggregates compare texts, after they are read.
      case .field(let names), .compared(let names, _): (.field, ResolvedPath(names, in: symbols))
      }
    }
  }

  /// The fields' values; nil for a field that the document lacks.
  func values(
    _ view: borrowing DocumentView, _ key: RawSpan
  ) throws(DatabaseError) -> [Value?] {
    var values: [Value?] = []
    values.reserveCapacity(fields.count)
    for index in fields.indices {
      switch fields[index].content {
      case .nothing: values.append(nil)
      case .name: values.append(try naming.name(of: key))
      case .field:
        do throws(MalformedBytes) {
          values.append(try view.field(fields[index].path)?.value(symbols))
        } catch {
          throw DatabaseError(error, documentAt: try naming.path(of: key))
        }
      }
    }
    return values
  }

  /// Adds the document to aggregates, one for each of the fields.
  func add(
    _ view: borrowing DocumentView, _ key: RawSpan, to aggregators: inout [Aggregator]
  ) throws(DatabaseError) {
    for index in fields.indices {
      switch fields[index].content {
      case .nothing: aggregators[index].add(nil)
      case .name: aggregators[index].add(try naming.name(of: key))
      case .field:
        do throws(MalformedBytes) {
          try aggregators[index].add(view.field(fields[index].path), symbols)
        } catch {
          throw DatabaseError(error, documentAt: try naming.path(of: key))
        }
      }
    }
  }

  /// Appends the keys of the fields as of groups. Returns false when the document lacks one of
  /// them.
  func append(
    _ view: borrowing DocumentView, _ key: RawSpan, groupKeysTo bytes: inout [UInt8]
  ) throws(DatabaseError) -> Bool {
    for index in fields.indices {
      guard fields[index].content == .field else {
        _ = bytes.append(groupKey: try naming.name(of: key))
        continue
      }
      do throws(MalformedBytes) {
        guard let field = try view.field(fields[index].path) else { return false }
        _ = try field.append(groupKeyTo: &bytes, symbols)
      } catch {
        throw DatabaseError(error, documentAt: try naming.path(of: key))
      }
    }
    return true
  }
}
