// Queries. The target builds a query from any bytes with the public calls, and runs it in two small
// databases with the same documents, one with indexes and one without. A valid query returns in
// both what the naive evaluator of the tests returns. An invalid one throws an error for a wrong
// argument. Nothing traps.

import Ondol
import OndolTestKit

enum QueryTarget: FuzzTarget {
  static let name = "query"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    if input.flag() {
      compare(&input)
    } else {
      var wild = WildQuery(input)
      wild.ask(QueryWorld.shared)
    }
  }

  // MARK: - Against the model

  private static func compare(_ input: inout FuzzInput) {
    let world = QueryWorld.shared
    var builder = ModelBuilder(input: input)
    let model = builder.query()
    let expected = world.evaluator.paths(model)
    for snapshot in [world.plain, world.indexed] {
      let query = model.build(in: snapshot.database)
      do throws(DatabaseError) {
        let found = try snapshot.getDocuments(query)
        let paths = found.documents.map(\.reference.path)
        demand(
          paths.elementsEqual(expected) { $0.utf8.elementsEqual($1.utf8) },
          "\(query)\nfinds \(paths)\nnot   \(expected)")
        continuePages(query, model, found, expected, snapshot)
      } catch {
        demand(error.code == .invalidArgument, "\(query) throws \(error)")
        demand(!error.message.isEmpty, "an error without a message")
      }
    }
  }

  /// Continuing after the first document finds the others.
  private static func continuePages(
    _ query: Query, _ model: ModelQuery, _ found: QuerySnapshot, _ expected: [String],
    _ snapshot: DatabaseSnapshot
  ) {
    guard model.limit == nil, model.offset == 0, let first = found.documents.first,
      let cursor = try? query.cursor(at: first)
    else { return }
    for next in [query.start(after: cursor), query.start(afterDocument: first)] {
      let rest = (try? snapshot.getDocuments(next))?.documents.map(\.reference.path)
      demand(rest == Array(expected.dropFirst()), "\(next) finds \(rest as Any)")
    }
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var chance = Chance(7)
    return [24, 60, 120, 240].flatMap { length in
      [[1] + chance.bytes(length), [1] + chance.bytes(length), [0] + chance.bytes(length)]
    }
  }
}
