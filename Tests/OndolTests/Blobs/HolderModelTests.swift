// Random histories of documents, paths and links, compared with a model that keeps everything in
// plain dictionaries and so knows every content's holders. After each step the rows are compared
// with it. At the end a check of the database recomputes them, and reclaiming storage must remove
// exactly the contents without a holder.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct HolderModelTests {
  @Test(arguments: Seeds.first(80))
  func `Rows record all holders, whatever happened`(seed: UInt64) async throws {
    var options = Database.Options()
    options.blobLease = .zero
    options.blobGracePeriod = .zero
    let database = try await Database.underTest(options: options)
    var trial = HolderTrial(database, seed: seed)
    try await database.collection("items").linkBlobs(field: "files", under: "p")
    for step in 0..<24 {
      try await trial.step()
      try await trial.compare("seed \(seed), step \(step): \(trial.story.suffix(8))")
    }
    let findings = try await database.verify(depth: .full)
    #expect(findings.isEmpty, "seed \(seed): \(findings) after \(trial.story)")
    try await trial.compareContents("seed \(seed)")
    try await database.close()
  }
}

/// The expected state.
private struct HolderModel {
  struct Document {
    /// Contents by their numbers.
    var contents: Set<Int> = []
    var links: Set<String> = []
  }

  var paths: [String: Int] = [:]
  var documents: [String: Document] = [:]

  var links: Set<String> { documents.values.reduce(into: []) { $0.formUnion($1.links) } }

  /// The holders of each content.
  var holders: [Int: Set<String>] {
    var holders: [Int: Set<String>] = [:]
    for (path, content) in paths { holders[content, default: []].insert(path) }
    for (name, document) in documents {
      for content in document.contents { holders[content, default: []].insert(name) }
    }
    return holders
  }

  /// Returns the result of a commit that turns `before` into this; nil if it is refused.
  func committed(from before: HolderModel, touching touched: Set<String>) -> HolderModel? {
    guard links.isSubset(of: paths.keys) else { return nil }
    var result = self
    for (name, document) in before.documents {
      let unlinked = document.links.subtracting(documents[name]?.links ?? [])
      for path in unlinked.subtracting(touched).subtracting(links) { result.paths[path] = nil }
    }
    return result
  }
}

/// A database and its model, and the operations on both.
private struct HolderTrial {
  private let database: Database
  private var random: SeededNumbers
  private var model = HolderModel()
  private(set) var story: [String] = []

  private static let paths = ["p/a", "p/b", "p/c/d", "q"]
  private static let names = ["items/x", "items/y", "items/z", "users/u/notes/n", "users/v"]

  init(_ database: Database, seed: UInt64) {
    self.database = database
    random = SeededNumbers(seed: seed)
  }

  /// Of three lengths, so that contents are stored in every way.
  private static let contents = (0..<6).map { content in
    let length = [5, 3_000, 20_000][content % 3]
    return (0..<length).map { UInt8(truncatingIfNeeded: $0 &* (content + 3)) }
  }
  private static let digests = contents.map { ContentHasher.digest(of: $0) }

  private enum Operation {
    case put(String, Int)
    case deletePath(String)
    case copy(String, String, isMove: Bool)
    case set(String, HolderModel.Document)
    case link(String, Set<String>)
    case delete(String)
  }

  private mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[random.below(elements.count)]
  }

  private mutating func operation() -> Operation {
    switch random.below(12) {
    case 0...3: return .put(pick(Self.paths), random.below(6))
    case 4: return .deletePath(pick(Self.paths))
    case 5: return .copy(pick(Self.paths), pick(Self.paths), isMove: random.oneIn(2))
    case 6, 7:
      var document = HolderModel.Document()
      for _ in 0..<random.below(3) { document.contents.insert(random.below(6)) }
      let name = pick(Self.names)
      if name.hasPrefix("items/") { document.links = someLinks() }
      return .set(name, document)
    case 8, 9: return .link(pick(["items/x", "items/y", "items/z"]), someLinks())
    default: return .delete(pick(Self.names))
    }
  }

  /// Mostly of existing contents, so that most commits are not refused.
  private mutating func someLinks() -> Set<String> {
    let known = model.paths.keys.filter { $0.hasPrefix("p/") }.sorted()
    let choice = known.isEmpty || random.oneIn(8) ? ["p/a", "p/b", "p/c/d"] : known
    return Set((0..<random.below(3)).map { _ in pick(choice) })
  }

  // MARK: - Steps

  mutating func step() async throws {
    if random.oneIn(12) {
      story.append("drop items")
      let before = model
      for name in ["items/x", "items/y", "items/z"] { model.documents[name] = nil }
      model = try #require(model.committed(from: before, touching: []))
      try await database.collection("items").drop()
      // The link went with the collection.
      try await database.collection("items").linkBlobs(field: "files", under: "p")
      return
    }
    if random.oneIn(8) {
      story.append("reclaim")
      try await database.storage.reclaim()
      return
    }
    let operations = (0..<(random.oneIn(2) ? 1 : 1 + random.below(4))).map { _ in operation() }
    story.append("\(operations)")
    let expected = expectation(operations)
    var isCommitted = true
    do {
      try await database.runTransaction { transaction in
        for operation in operations { try await Self.apply(operation, in: transaction, database) }
      }
    } catch let error as DatabaseError {
      #expect(
        [.failedPrecondition, .notFound].contains(error.code), "\(story.suffix(4)): \(error)")
      isCommitted = false
    }
    #expect(isCommitted == (expected != nil), "\(story)")
    if let expected { model = expected }
  }

  private static func apply(
    _ operation: Operation, in transaction: Transaction, _ database: Database
  ) async throws {
    switch operation {
    case .put(let path, let content):
      try await transaction.putData(contents[content], at: path)
    case .deletePath(let path): try transaction.deleteObject(at: path)
    case .copy(let source, let target, let isMove):
      let storage = database.storage
      try transaction.copyObject(
        from: storage.reference(withPath: source), to: storage.reference(withPath: target),
        StorageCondition())
      if isMove, source != target { try transaction.deleteObject(at: source) }
    case .set(let name, let document):
      var blobs: [Value] = []
      for content in document.contents.sorted() {
        blobs.append(.map(["blob": .blob(try await transaction.put(contents[content]))]))
      }
      let links = document.links.sorted().map { Value.string($0) }
      try transaction.setData(
        ["contents": Value.array(blobs), "files": Value.array(links), "n": 1],
        forDocument: database.document(name))
    case .link(let name, let links):
      try transaction.setData(
        ["files": Value.array(links.sorted().map { .string($0) })],
        forDocument: database.document(name), merge: true)
    case .delete(let name): try transaction.deleteDocument(database.document(name))
    }
  }

  /// Returns the model after the operations; nil if they are refused.
  private func expectation(_ operations: [Operation]) -> HolderModel? {
    var next = model
    var touched: Set<String> = []
    for operation in operations {
      switch operation {
      case .put(let path, let content):
        next.paths[path] = content
        touched.insert(path)
      case .deletePath(let path):
        guard next.paths.removeValue(forKey: path) != nil else { return nil }
        touched.insert(path)
      case .copy(let source, let target, let isMove):
        guard let content = next.paths[source] else { return nil }
        next.paths[target] = content
        touched.insert(target)
        if isMove, source != target {
          next.paths[source] = nil
          touched.insert(source)
        }
      case .set(let name, let document): next.documents[name] = document
      case .link(let name, let links): next.documents[name, default: .init()].links = links
      case .delete(let name): next.documents[name] = nil
      }
    }
    return next.committed(from: model, touching: touched)
  }

  // MARK: - Comparing

  func compare(_ place: String) async throws {
    let listed = try await allPaths(below: database.storage.reference())
    #expect(Set(listed) == Set(model.paths.keys), "\(place)")
    let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    let holders = model.holders
    for content in 0..<6 {
      let digest = Self.digests[content]
      let names = Set(try rows.holderNames(of: digest, atMost: 100))
      #expect(names == holders[content] ?? [], "content \(content), \(place)")
    }
    for (path, content) in model.paths {
      let bytes = try await database.storage.reference(withPath: path).data(maxSize: .max)
      #expect(Array(bytes) == Self.contents[content], "\(path), \(place)")
    }
  }

  private func allPaths(below folder: StorageReference) async throws -> [String] {
    let listing = try await folder.listAll()
    var paths = listing.items.map(\.fullPath)
    for prefix in listing.prefixes { paths += try await allPaths(below: prefix) }
    return paths
  }

  /// After storage was reclaimed, exactly the contents with a holder exist.
  func compareContents(_ place: String) async throws {
    for _ in 0..<3 { try await database.storage.reclaim() }
    let statistics = try await database.storage.statistics()
    #expect(statistics.contents == model.holders.count, "\(place)")
    #expect(statistics.unheldContents == 0, "\(place)")
    #expect(statistics.paths == model.paths.count, "\(place)")
    #expect(
      statistics.documents == model.documents.values.map(\.contents.count).reduce(0, +), "\(place)")
  }
}
