// Live pipelines: random histories in which a listener must have what the pipeline gives when it is
// executed (LivePipelineTrial), and which pipelines follow changes at all.

import OndolPostgres
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct LivePipelineTests {
  @Test(arguments: LivePipelineTrial.Place.allCases)
  func `A listener has the answer of a fresh execution, whatever happens`(
    place: LivePipelineTrial.Place
  ) throws {
    var counts = LivePipelineCounts()
    for seed in Seeds.first(100) {
      do {
        counts += try LivePipelineTrial.run(seed: seed, place)
      } catch {
        Issue.record("SEED=\(seed), \(place): \(error)")
        return
      }
    }
    print(
      "Live pipelines \(place): \(counts.histories) histories, \(counts.commits) commits,"
        + " \(counts.answers) answers, \(counts.following) pipelines follow changes,"
        + " \(counts.repeating) run again")
    #expect(counts.answers > 10 * counts.histories)
    #expect(counts.following > counts.repeating)
  }

  /// On the store that the suites run on, with another open of it where there can be one.
  @Test(arguments: Seeds.first(6))
  func `The same holds on the store of the suites`(seed: UInt64) async throws {
    let writer: Database
    var observed: Database?
    if TestedStore.current == .postgres {
      let address = try TestedStore.newAddress()
      writer = try await Database.open(on: .postgres(address))
      observed = try await Database.open(on: .postgres(address))
    } else {
      writer = try await Database.underTest()
    }
    _ = try await LivePipelineTrial.run(
      seed: seed, writer: writer, observed: observed ?? writer, nil)
  }

  @Test func `Filters, columns, orders and groups follow changes, and no other pipelines`()
    async throws
  {
    let database = try await Database.inMemory()
    let books = database.pipeline().collection("books")
    let groups = books.aggregate(
      .count().as("n"), Field("price").sum().as("sum"), Field("price").minimum().as("least"),
      groups: [Field("genre")])
    let following: [Pipeline] = [
      books, books.where(Field("price").multiply(2).greaterThan(3)),
      books.where(Field("price").greaterThan(3)).select(Field("title")).limit(5),
      books.sort(Field("price").descending()), books.sort(Field("price").descending()).limit(3),
      books.addFields(Field("price").multiply(2).as("d")).sort(Field("d").ascending()).limit(2),
      books.select(Field("__update_time__").as("at")), groups,
      groups.where(Field("n").greaterThan(1)),
      groups.sort(Field("sum").descending()).offset(1).limit(2).select(Field("genre")),
      books.aggregate(.count().as("n")),
    ]
    for pipeline in following { #expect(pipeline.followsChanges, "\(pipeline.stages)") }
    let repeating: [Pipeline] = [
      books.where(Field("__update_time__").greaterThan(Timestamp.minimum)),
      books.select(PipelineExpression.function("rand").as("x")),
      books.aggregate(Field("price").first().as("x")),
      groups.limit(2), groups.select(Field("n")).sort(Field("n").ascending()),
      books.unnest(Field("tags").as("tag")), books.union(books), books.sample(2),
      books.lookup(Field("author"), as: "author"), books.limit(2).aggregate(.count().as("n")),
      database.pipeline().allDocuments(), database.pipeline().documents([]),
    ]
    for pipeline in repeating { #expect(!pipeline.followsChanges, "\(pipeline.stages)") }
  }

  @Test func `The least value of a group is known after the values before it went`() async throws {
    for isMinimum in [true, false] {
      var random = SeededRandom(seed: 5)
      var extreme = LiveExtreme(isMinimum: isMinimum)
      var values: [Int64] = []
      var unknown = 0
      for _ in 0..<20_000 {
        if values.isEmpty || random.below(values.count > 60 ? 3 : 2) == 0 {
          let value = Int64(random.below(100))
          values.append(value)
          extreme.add(.integer(value))
        } else {
          // Half of the time the one that is the result.
          let least = isMinimum ? values.min() : values.max()
          let place =
            random.chance(1, in: 2)
            ? values.firstIndex { $0 == least } ?? 0 : random.below(values.count)
          let value = values.remove(at: place)
          if !extreme.remove(.integer(value)) {
            unknown += 1
            extreme = LiveExtreme(isMinimum: isMinimum)
            for value in values { extreme.add(.integer(value)) }
          }
        }
        let least = isMinimum ? values.min() : values.max()
        #expect(extreme.result == least.map { .integer($0) })
      }
      #expect(unknown > 0 && unknown < 2_000)
    }
  }

  @Test func `A change of a group that the answer does not show is not told`() async throws {
    let database = try await Database.inMemory()
    for (number, genre) in ["a", "a", "a", "b"].enumerated() {
      try await database.document("c/\(number)").setData(["g": genre])
    }
    var best = database.pipeline().collection("c")
      .aggregate(.count().as("n"), groups: [Field("g")])
      .sort(Field("n").descending()).limit(1).snapshots.makeAsyncIterator()
    #expect(try await best.next()?.results.map { $0.data() } == [["g": "a", "n": 3]])
    try await database.document("c/4").setData(["g": "b"])
    #expect(try await best.poll() == nil)
    for number in 5..<7 { try await database.document("c/\(number)").setData(["g": "b"]) }
    #expect(try await best.poll()?.results.map { $0.data() } == [["g": "b", "n": 4]])
  }

  @Test func `All documents and references are listened to`() async throws {
    let database = try await Database.inMemory()
    let ada = database.document("people/ada")
    try await ada.setData(["name": "Ada"])
    try await database.document("loans/1").setData(["of": ada])
    var count = database.pipeline().allDocuments().aggregate(.count().as("n"))
      .snapshots.makeAsyncIterator()
    var names = database.pipeline().collection("loans").lookup(Field("of"), as: "who")
      .select(Field("who.name").as("name")).snapshots.makeAsyncIterator()
    #expect(try await count.next()?.results.map { $0.data() } == [["n": 2]])
    #expect(try await names.next()?.results.map { $0.data() } == [["name": "Ada"]])
    try await ada.updateData(["name": "Eve"])
    #expect(try await names.next()?.results.map { $0.data() } == [["name": "Eve"]])
    let bo = database.document("people/bo")
    try await bo.setData(["name": "Bo"])
    #expect(try await count.next()?.results.map { $0.data() } == [["n": 3]])
    try await database.document("loans/1").setData(["of": bo])
    #expect(try await names.next()?.results.map { $0.data() } == [["name": "Bo"]])
    try await bo.delete()
    #expect(try await names.next()?.results.map { $0.data() } == [[:]])
  }
}
