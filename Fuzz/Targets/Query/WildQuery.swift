// Queries that an app should not write: paths of any bytes, operands of any kind, cursors with too
// many values, negative limits. They are answered or refused, and the error names the mistake.

import Foundation
import Ondol

/// Builds and runs one query.
struct WildQuery {
  private var input: FuzzInput

  init(_ input: FuzzInput) {
    self.input = input
  }

  mutating func ask(_ world: QueryWorld) {
    let snapshot = input.flag() ? world.indexed : world.plain
    let database = snapshot.database
    var query =
      input.oneIn(4)
      ? database.collectionGroup(name()).query
      : database.collection(input.flag() ? "shop" : path()).query
    for _ in 0..<input.below(8) { change(&query, database) }
    do throws(DatabaseError) {
      let found = try snapshot.getDocuments(query)
      if let cursor = found.cursor { demandSame(cursor) }
      for document in found.documents.prefix(3) { _ = try? document.data(as: [String: Int].self) }
    } catch {
      let isExpected = [.invalidArgument, .failedPrecondition].contains(error.code)
      demand(isExpected, "\(query) throws \(error)")
      demand(!error.message.isEmpty && !error.description.isEmpty, "an error without a message")
    }
    _ = query.description
    _ = query.hashValue
  }

  private mutating func change(_ query: inout Query, _ database: Database) {
    switch input.below(14) {
    case 0...3: query = query.whereFilter(filter(depth: 3))
    case 4, 5:
      query = query.order(
        by: field(), descending: input.flag(),
        missing: input.pick([.excluded, .first, .last]))
    case 6: query = query.limit(to: number())
    case 7: query = query.limit(toLast: number())
    case 8: query = query.offset(number())
    case 9: query = query.start(at: values())
    case 10: query = query.end(before: values())
    case 11: query = query.select((0..<input.below(3)).map { _ in field() })
    case 12:
      guard let cursor = cursor() else { return }
      query = input.flag() ? query.start(after: cursor) : query.end(at: cursor)
    default:
      let document = QueryWorld.shared.plain
      let place = try? document.getDocument(document.database.document(path()))
      if let place { query = query.start(atDocument: place) }
    }
  }

  private mutating func filter(depth: Int) -> Filter {
    if depth > 0, input.oneIn(3) {
      let filters = (0..<input.below(4)).map { _ in filter(depth: depth - 1) }
      return input.flag() ? .andFilter(filters) : .orFilter(filters)
    }
    let field = field()
    switch input.below(11) {
    case 0: return .whereField(field, isEqualTo: value())
    case 1: return .whereField(field, isNotEqualTo: value())
    case 2: return .whereField(field, isLessThan: value())
    case 3: return .whereField(field, isLessThanOrEqualTo: value())
    case 4: return .whereField(field, isGreaterThan: value())
    case 5: return .whereField(field, isGreaterThanOrEqualTo: value())
    case 6: return .whereField(field, in: values())
    case 7: return .whereField(field, notIn: values())
    case 8: return .whereField(field, arrayContains: value())
    case 9: return .whereField(field, arrayContainsAny: values())
    default: return .whereField(field, hasPrefix: name())
    }
  }

  // MARK: - Parts

  private mutating func name() -> String {
    switch input.below(8) {
    case 0: ""
    case 1: "posts"
    case 2: "__x__"
    case 3: String(repeating: "n", count: 1_490 + input.below(30))
    default: String(decoding: input.take(input.below(20)), as: UTF8.self)
    }
  }

  private mutating func path() -> String {
    input.flag()
      ? "shop/d\(input.below(30))"
      : (0..<input.below(5)).map { _ in name() }
        .joined(separator: "/")
  }

  private mutating func field() -> FieldPath {
    switch input.below(6) {
    case 0: FieldPath(name())
    case 1: FieldPath((0..<input.below(4)).map { _ in name() })
    case 2: .documentID()
    default: FieldPath(input.pick(["a", "b", "c", "m.x", "t", "m"]))
    }
  }

  private mutating func number() -> Int {
    input.flag() ? input.below(20) : Int(truncatingIfNeeded: input.edge())
  }

  private mutating func values() -> [(any FieldContent)?] {
    (0..<input.below(5)).map { _ in value() }
  }

  private mutating func value() -> (any FieldContent)? {
    switch input.below(13) {
    case 0: return nil
    case 1: return FieldValue.delete()
    case 2: return FieldValue.increment(Int64(bitPattern: input.edge()))
    case 3: return nested(120)
    case 4: return VectorValue((0..<input.below(3)).map { _ in Double(bitPattern: input.word()) })
    case 5: return Value.bytes(input.take(9))
    case 6: return try? GeoPoint(latitude: 1, longitude: 2)
    case 7: return Double(bitPattern: input.word())
    case 8: return Int64(bitPattern: input.edge())
    case 9: return name()
    case 10:
      let digest = BlobDigest(bytes: [UInt8](repeating: UInt8(input.below(256)), count: 32))
      return digest.flatMap { try? BlobReference(digest: $0, length: 1) }
    default:
      var builder = ModelBuilder(input: input)
      let value = builder.value()
      input = builder.input
      return value
    }
  }

  private func nested(_ depth: Int) -> Value {
    (0..<depth).reduce(.null) { value, _ in .array([value]) }
  }

  /// A cursor as it may return from an app's own storage.
  private mutating func cursor() -> QueryCursor? {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    return QueryCursor(String(input.take(input.below(120)).map { alphabet[Int($0) % 64] }))
  }

  private func demandSame(_ cursor: QueryCursor) {
    let again = QueryCursor("\(cursor)")
    demand(again == cursor, "\(cursor) comes back as \(again as Any)")
  }
}
