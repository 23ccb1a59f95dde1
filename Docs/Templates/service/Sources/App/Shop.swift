// The app's use of its data, without HTTP: indexes, queries, pages and pictures.

import Foundation
import Hummingbird
import Ondol

/// The shop's data.
struct Shop: Sendable {
  static let mostPhotoBytes = 10 << 20

  let database: Database
  let items: TypedCollection<Item>

  init(_ database: Database) async throws {
    self.database = database
    items = try database.collection("items", of: Item.self)
    // Existing indexes stay as they are.
    try await items.createIndex(on: .ascending(\.name))
    try await items.createIndex(on: .ascending(\.category), .ascending(\.name))
    try await items.createIndex(on: .ascending(\.category), .descending(\.price))
  }

  // MARK: - One item

  func item(_ id: String) async throws -> Item {
    guard let item = try await items.document(id).getDocument() else {
      throw HTTPError(.notFound, message: "there is no item \(id)")
    }
    return item
  }

  func add(_ new: NewItem) async throws -> Item {
    try new.check()
    let document = items.document()
    let item = Item(
      id: document.documentID, name: new.name, category: new.category, price: new.price)
    try await document.create(item)
    return item
  }

  func change(_ id: String, _ changes: ItemChanges) async throws -> Item {
    let document = items.document(id)
    // Read and write are one transaction, so a concurrent change is not lost.
    return try await database.runTransaction { transaction in
      guard var item = try transaction.getDocument(document) else {
        throw HTTPError(.notFound, message: "there is no item \(id)")
      }
      item.name = changes.name ?? item.name
      item.price = changes.price ?? item.price
      try NewItem(name: item.name, category: item.category, price: item.price).check()
      try transaction.setData(item, forDocument: document)
      return item
    }
  }

  func delete(_ id: String) async throws {
    // The photo goes with it.
    try await items.document(id).delete()
  }

  func setPhoto(_ id: String, _ bytes: [UInt8], contentType: String?) async throws {
    let photo = try await database.storage.put(bytes, contentType: contentType)
    try await items.document(id).update(.set(\.photo, to: photo))
  }

  // MARK: - Lists

  /// All items, or those of a category, by name.
  func list(of category: String?) -> TypedQuery<Item> {
    guard let category else { return items.order(by: \.name) }
    return items.where(\.category == category).order(by: \.name)
  }

  /// A page of a list. The cursor is a text that survives restarts, and changes of the documents on
  /// the page.
  func page(of category: String?, limit: Int, after text: String?) async throws -> Page {
    let cursor = try text.map { text in
      guard let cursor = QueryCursor(text) else {
        throw HTTPError(.badRequest, message: "after must be the next of a page")
      }
      return cursor
    }
    let limit = min(max(limit, 1), 100)
    let found = try await list(of: category).start(after: cursor).limit(to: limit).getSnapshot()
    let items = try found.results.map { ItemAnswer(try $0.get()) }
    return Page(items: items, next: found.isLastPage ? nil : found.cursor?.description)
  }

  /// The most expensive items of each category, all from one moment.
  func top(_ count: Int) async throws -> [TopOfCategory] {
    let categories = try await items.group(by: \.category).count().keys.sorted()
    // The index on category and price has each group in order, so a few rows of each are enough.
    return try await database.runTransaction { transaction in
      try categories.compactMap { category in
        let top = items.where(\.category == category).order(by: \.price, descending: true)
          .limit(to: min(max(count, 1), 100))
        let found = try transaction.getDocuments(top)
        return found.isEmpty
          ? nil : TopOfCategory(category: category, items: found.map(ItemAnswer.init))
      }
    }
  }
}
