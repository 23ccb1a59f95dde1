// The model. The stored item, the client's input and the answer are three types, so that one can
// change without the others.

import Hummingbird
import Ondol

/// A stored item.
struct Item: Codable, Sendable, Identifiable, Equatable {
  var id: String
  var name: String
  var category: String
  var price: Int
  /// The photo's bytes stay stored as long as the item has it.
  var photo: BlobReference?
}

/// What a client sends for a new item.
struct NewItem: Decodable, Sendable {
  var name: String
  var category: String
  var price: Int

  /// Throws 400 for an invalid item.
  func check() throws {
    guard !name.isEmpty, !category.isEmpty else {
      throw HTTPError(.badRequest, message: "name and category must not be empty")
    }
    guard price >= 0 else { throw HTTPError(.badRequest, message: "price must be 0 or more") }
  }
}

/// What a client sends to change an item. Only the given fields change.
struct ItemChanges: Decodable, Sendable {
  var name: String?
  var price: Int?
}

/// An item, as a client sees it.
struct ItemAnswer: ResponseCodable, Sendable, Equatable {
  var id: String
  var name: String
  var category: String
  var price: Int
  /// The photo's address; nil without a photo.
  var photo: String?

  init(_ item: Item) {
    id = item.id
    name = item.name
    category = item.category
    price = item.price
    photo = item.photo.map { _ in "/items/\(item.id)/photo" }
  }
}

/// A page of a list.
struct Page: ResponseCodable, Sendable {
  var items: [ItemAnswer]
  /// The `after` of the next page; nil on the last one.
  var next: String?
}

/// The first items of a category.
struct TopOfCategory: ResponseCodable, Sendable {
  var category: String
  var items: [ItemAnswer]
}
