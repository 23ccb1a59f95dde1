// The writes and queries of an observation trial: few documents with few values, so that most
// commits change most results.

internal import Ondol

/// Draws writes and queries.
struct ObservationDraw {
  var random: SeededRandom
  private let database: Database
  /// The clock for documents' expiry; they have none without it.
  private let clock: StandingClock?

  init(seed: UInt64, _ database: Database, _ clock: StandingClock? = nil) {
    self.init(SeededRandom(seed: seed), database, clock)
  }

  /// Continues drawing for another open.
  init(_ random: SeededRandom, _ database: Database, _ clock: StandingClock? = nil) {
    self.random = random
    self.database = database
    self.clock = clock
  }

  private static let collections = ["c", "c/x/c", "d"]
  private static let fields = ["a", "b", "t"]

  // MARK: - Writes

  private mutating func fields() -> [String: any FieldContent] {
    var fields: [String: any FieldContent] = [:]
    if random.chance(5, in: 6) { fields["a"] = random.number(below: 5) }
    if random.chance(5, in: 6) { fields["b"] = random.pick(["p", "q", "r", "pq"]) }
    if random.chance(1, in: 2) {
      fields["t"] = (0..<random.below(3)).map { _ in random.element(below: 4) }
    }
    fields["n"] = random.below(3)
    if random.chance(1, in: 6) { fields[TrialSchema.poison] = random.below(4) }
    if let clock, random.chance(1, in: 4) {
      fields["end"] = clock.moment(in: random.below(8) - 1)
    }
    return fields
  }

  private mutating func document() -> DocumentReference {
    let collection = random.chance(3, in: 4) ? "c" : random.pick(Self.collections)
    return database.collection(collection).document("d\(random.below(14))")
  }

  /// Makes one commit of one write, or of several; none if that changes a document that cannot be
  /// upgraded.
  mutating func write(durability: Durability = .process) async throws {
    do {
      try await writeAtOnce(durability: durability)
    } catch let error as DatabaseError {
      guard error.code == .failedPrecondition, error.path != nil else { throw error }
    }
  }

  private mutating func writeAtOnce(durability: Durability) async throws {
    switch random.below(8) {
    case 0: try await document().delete(durability: durability)
    case 1...4: try await document().setData(fields(), durability: durability)
    case 5:
      try await document().setData(
        ["a": random.number(below: 5)], merge: true, durability: durability)
    default:
      let batch = database.batch()
      for _ in 0...random.below(5) {
        let document = document()
        if random.chance(1, in: 4) {
          batch.deleteDocument(document)
        } else {
          try batch.setData(fields(), forDocument: document)
        }
      }
      try await batch.commit(durability: durability)
    }
  }

  // MARK: - Queries

  mutating func query() -> Query {
    var query =
      random.chance(1, in: 5)
      ? database.collectionGroup("c").query : database.collection("c").query
    for _ in 0..<random.below(3) { query = filtered(query) }
    for _ in 0..<random.below(3) {
      query = query.order(
        by: FieldPath(stringLiteral: random.pick(Self.fields)),
        descending: random.chance(1, in: 2),
        missing: random.pick([.excluded, .excluded, .first, .last]))
    }
    switch random.below(4) {
    case 0: query = query.limit(to: random.below(6))
    case 1: query = query.limit(toLast: 1 + random.below(5))
    default: break
    }
    if random.chance(1, in: 8) { query = query.offset(random.below(4)) }
    if random.chance(1, in: 8) { query = query.select(["a"]) }
    return query
  }

  private mutating func filtered(_ query: Query) -> Query {
    switch random.below(9) {
    case 0: query.whereField("a", isEqualTo: random.number(below: 5))
    case 1: query.whereField("a", isGreaterThan: random.number(below: 4))
    case 2: query.whereField("a", isLessThanOrEqualTo: random.number(below: 5))
    case 3: query.whereField("b", in: ["p", random.pick(["q", "r"])])
    case 4: query.whereField("b", hasPrefix: "p")
    case 5: query.whereField("t", arrayContains: random.element(below: 4))
    case 6: query.whereField("a", isNotEqualTo: random.number(below: 5))
    case 7:
      query.whereFilter(
        .orFilter([
          .whereField("a", isEqualTo: random.number(below: 5)),
          .whereField(
            "t", arrayContainsAny: [random.element(below: 4), random.element(below: 4)]),
        ]))
    default:
      query.whereFilter(
        .orFilter([
          .whereField("b", isEqualTo: "q"),
          .andFilter([
            .whereField("a", isLessThan: 3), .whereField("b", isNotEqualTo: "p"),
          ]),
        ]))
    }
  }
}
