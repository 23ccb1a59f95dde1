// Queries and documents for user interfaces: objects whose properties follow the database on the
// main actor, in the form that SwiftUI needs. They decode results off the main actor, and only what
// has changed.

public import Observation
internal import OndolEngine

/// The documents of a query as values of a `Decodable` type, kept up to date for a user interface.
///
/// ```swift
/// struct ItemList: View {
///   @State var live: LiveQuery<Item>
///   var body: some View { List(live.items) { Text($0.name) } }
/// }
/// ```
///
/// A document that does not fit the type is in `failures` and hides no other. Creating a live query
/// starts nothing, so a view's initialiser may create one each time the view is made. It listens to
/// the query from the first read of a property until the object is released.
@MainActor @Observable
public final class LiveQuery<Item: Decodable & Sendable> {
  private var shown = LiveItems<Item>()
  private var end: DatabaseError?
  @ObservationIgnored private let query: Query
  @ObservationIgnored private let decoder: DocumentDecoder
  @ObservationIgnored private var listening: BackgroundTask?

  /// The decoded documents, in the query's order; empty until `isLoaded`.
  public var items: [Item] { current.items }
  /// Documents that do not fit the type, in the query's order.
  public var failures: [DatabaseError] { current.failures }
  /// Whether the first result has arrived.
  public var isLoaded: Bool { current.isLoaded }
  /// Why no more results arrive; nil as long as they do. The last result stays in `items`.
  public var error: DatabaseError? {
    listen()
    return end
  }

  private var current: LiveItems<Item> {
    listen()
    return shown
  }

  /// Takes the query, and listens to it once a property is read.
  ///
  /// - Parameters:
  ///   - query: a collection, a collection group or a query.
  ///   - type: the type of the documents.
  ///   - decoder: how they are decoded.
  /// - Complexity: O(1).
  public init(
    _ query: some QuerySource, as type: Item.Type = Item.self,
    decoder: DocumentDecoder = DocumentDecoder()
  ) {
    self.query = query.query
    self.decoder = decoder
  }

  /// Listens again after an `error`; does nothing while there is none.
  public func retry() {
    guard end != nil else { return }
    end = nil
    listening = nil
    listen()
  }

  private func listen() {
    guard listening == nil else { return }
    listening = query.database.engine.startInBackground { [weak self, query, decoder] in
      var decoded = LiveDecoding<Item>(decoder)
      do throws(DatabaseError) {
        for try await snapshot in query.snapshots {
          // Released here and not on the main actor, where releasing takes as long as the list is.
          let before = decoded
          decoded = await before.following(snapshot)
          await self?.show(decoded.shown)
          withExtendedLifetime(before) {}
        }
      } catch {
        await self?.end(with: error)
      }
    }
  }

  private func show(_ items: LiveItems<Item>) {
    shown = items
  }

  private func end(with error: DatabaseError) {
    end = error
  }

  deinit {
    listening?.cancel()
  }
}

/// What a live query shows.
private struct LiveItems<Item: Sendable>: Sendable {
  var items: [Item] = []
  var failures: [DatabaseError] = []
  var isLoaded = false
}

/// A document as a value of a `Decodable` type, kept up to date for a user interface. Like
/// ``LiveQuery``, it listens from the first read of a property.
@MainActor @Observable
public final class LiveDocument<Item: Decodable & Sendable> {
  private var shown: LiveItem<Item>?
  private var end: DatabaseError?
  @ObservationIgnored private let document: DocumentReference
  @ObservationIgnored private let decoder: DocumentDecoder
  @ObservationIgnored private var listening: BackgroundTask?

  /// The decoded document; nil until `isLoaded`, and while there is no document or it does not fit
  /// the type.
  public var item: Item? { try? current?.result?.get() }
  /// Why the document does not fit the type; nil when it fits or there is none.
  public var failure: DatabaseError? {
    if case .failure(let failure)? = current?.result { failure } else { nil }
  }
  /// Whether the first state has arrived.
  public var isLoaded: Bool { current != nil }
  /// Why no more states arrive; nil as long as they do. The last state stays.
  public var error: DatabaseError? {
    listen()
    return end
  }

  private var current: LiveItem<Item>? {
    listen()
    return shown
  }

  /// Takes the document, and listens to it once a property is read.
  ///
  /// - Parameters:
  ///   - document: the document to listen to.
  ///   - type: its type.
  ///   - decoder: how it is decoded.
  /// - Complexity: O(1).
  public init(
    _ document: DocumentReference, as type: Item.Type = Item.self,
    decoder: DocumentDecoder = DocumentDecoder()
  ) {
    self.document = document
    self.decoder = decoder
  }

  /// Listens again after an `error`; does nothing while there is none.
  public func retry() {
    guard end != nil else { return }
    end = nil
    listening = nil
    listen()
  }

  private func listen() {
    guard listening == nil else { return }
    listening = document.database.engine.startInBackground { [weak self, document, decoder] in
      do throws(DatabaseError) {
        for try await snapshot in document.snapshots {
          let decoded = await LiveDecoding<Item>.decode(snapshot, decoder)
          await self?.show(LiveItem(result: decoded))
        }
      } catch {
        await self?.end(with: error)
      }
    }
  }

  private func show(_ item: LiveItem<Item>) {
    shown = item
  }

  private func end(with error: DatabaseError) {
    end = error
  }

  deinit {
    listening?.cancel()
  }
}

/// What a live document shows: nothing when there is no document.
private struct LiveItem<Item: Sendable>: Sendable {
  var result: Result<Item, DatabaseError>?
}

/// The decoded documents of a result.
private struct LiveDecoding<Item: Decodable & Sendable>: Sendable {
  private let decoder: DocumentDecoder
  private var results: [Result<Item, DatabaseError>] = []
  /// The parts of the results, assembled here because the main actor has no time for long lists.
  private(set) var shown = LiveItems<Item>()

  init(_ decoder: DocumentDecoder) {
    self.decoder = decoder
  }

  /// The same after decoding the changes, off the caller's actor.
  @concurrent
  func following(_ snapshot: QuerySnapshot) async -> LiveDecoding {
    var next = self
    for change in snapshot.documentChanges {
      if let index = change.oldIndex { next.results.remove(at: index) }
      if let index = change.newIndex {
        next.results.insert(Self.decode(change.document, as: Item.self, decoder), at: index)
      }
    }
    next.shown = LiveItems(isLoaded: true)
    for result in next.results {
      switch result {
      case .success(let item): next.shown.items.append(item)
      case .failure(let failure): next.shown.failures.append(failure)
      }
    }
    return next
  }

  /// Returns nil when there is no document.
  @concurrent
  static func decode(
    _ document: DocumentSnapshot, _ decoder: DocumentDecoder
  ) async -> Result<Item, DatabaseError>? {
    document.exists ? decode(document, as: Item.self, decoder) : nil
  }

  private static func decode(
    _ document: DocumentSnapshot, as type: Item.Type, _ decoder: DocumentDecoder
  ) -> Result<Item, DatabaseError> {
    Result { () throws(DatabaseError) in try document.data(as: type, decoder: decoder) }
  }
}
