// A query that a page watches. The watch runs it again after a commit that touched its result or
// conditions, and sends the steps from the page's result to the new one.

import Ondol

/// A query's result.
struct QueryWatch: LiveWatch {
  let id: String
  let asked: AskedQuery
  private var told: [DocumentSnapshot]?
  private(set) var isBehind = true
  private var cost = Duration.zero
  private var last = ContinuousClock.now

  init(id: String, asked: AskedQuery) {
    self.id = id
    self.asked = asked
  }

  mutating func event(after news: News, for handler: ConsoleHandler) async throws -> LiveEvent? {
    isBehind = isBehind || isConcerned(news)
    // The longer a query takes, the less often it is repeated.
    guard isBehind, told == nil || ContinuousClock.now - last >= cost * 9 else { return nil }
    isBehind = false
    let start = ContinuousClock.now
    let found = try await asked.query.limit(to: asked.limit).getDocuments()
    cost = .now - start
    last = .now
    let before = told
    told = found.documents
    let page = try AskedQuery.page(found)
    guard let before else {
      return LiveEvent(
        name: "state", data: JSON.object(page).behind(["watch": .text(id)]))
    }
    let changes = Self.changes(from: before, to: found.documents)
    guard !changes.isEmpty else { return nil }
    let place = page.filter { $0.name == "cursor" || $0.name == "last" }
    return LiveEvent(
      name: "changes",
      data: JSON.object(place + [(name: "changes", value: .list(changes))])
        .behind(["watch": .text(id)]))
  }

  private func isConcerned(_ news: News) -> Bool {
    if news.isAll { return true }
    return news.commits.contains { commit in
      !commit.isKnown
        || commit.touched.documents.contains { path in
          if let group = asked.group { return path.collection.collectionID == group }
          return "\(path.collection)" == asked.collection
        }
    }
  }

  /// The steps from one list to another: which elements are gone, new, changed or moved.
  static func changes(from old: [DocumentSnapshot], to new: [DocumentSnapshot]) -> [JSON] {
    var changes: [JSON] = []
    var now = old
    let places = Dictionary(
      new.enumerated().map { ($1.reference.path, $0) }, uniquingKeysWith: { first, _ in first })
    let before = Dictionary(
      old.map { ($0.reference.path, $0.version) }, uniquingKeysWith: { first, _ in first })
    func place(_ document: DocumentSnapshot) -> Int { places[document.reference.path] ?? 0 }
    for document in old where places[document.reference.path] == nil {
      guard let index = now.firstIndex(where: { $0.reference == document.reference }) else {
        continue
      }
      now.remove(at: index)
      changes.append([
        "type": "removed", "oldIndex": .number(index), "document": .document(document),
      ])
    }
    for (index, document) in new.enumerated() where before[document.reference.path] == nil {
      let target = now.count { place($0) < index }
      now.insert(document, at: target)
      changes.append([
        "type": "added", "newIndex": .number(target), "document": .document(document),
      ])
    }
    for (index, document) in new.enumerated() {
      let version = before[document.reference.path] ?? document.version
      let isMoved = now[index].reference != document.reference
      guard version != document.version || isMoved,
        let source = now.firstIndex(where: { $0.reference == document.reference })
      else { continue }
      now.remove(at: source)
      let target = min(index, now.count)
      now.insert(document, at: target)
      changes.append([
        "type": "modified", "oldIndex": .number(source), "newIndex": .number(target),
        "document": .document(document),
      ])
    }
    return changes
  }
}
