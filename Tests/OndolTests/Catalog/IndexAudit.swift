// Checks that indexes have exactly the rows of the documents.

import OndolEngine
import Testing

@testable import Ondol

/// Compares the rows of every index of the collection's pattern with rows made from the documents.
func auditIndexes(of collection: CollectionReference, seed: UInt64 = 0) async throws {
  let database = collection.database
  let source = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
  let pattern = CollectionPattern(try collection.place.get())
  guard let entry = try database.catalog.family(pattern.root, in: source)?.collections[pattern]
  else { return }
  for index in entry.indexes where index.state == .ready {
    var expected: Set<[UInt8]> = []
    var documents = RangeWalk(source, [KeyRange(prefix: entry.keyspace.prefix)])
    while try documents.next() {
      let ids = try DocumentKey.ids(
        in: documents.cursor.key, ancestorCount: pattern.ancestorCount)
      let fields = try DocumentView(documents.value).fields(entry.symbols)
      let id = try #require(ids.last)
      for row in index.rows(of: fields, ancestors: ids.dropLast(), id: id) {
        expected.insert(row.key)
      }
    }
    var stored: Set<[UInt8]> = []
    var rows = RangeWalk(source, [KeyRange(prefix: index.keyspace.prefix)])
    while try rows.next() {
      stored.insert(rows.cursor.key.array)
    }
    #expect(stored == expected, "seed \(seed): index \(index.name)")
  }
}
