// Queries and documents for user interfaces: objects whose properties follow the database on the
// main actor, as SwiftUI wants them. Results are decoded away from the main actor, and only what
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
/// A document that does not fit is in `failures` and hides no other. The query is listened to until
/// the object is let go.
@MainActor @Observable
public final class LiveQuery<Item: Decodable & Sendable> {
  /// What the documents hold, in the query's order; empty until `isLoaded`.
  public private(set) var items: [Item] = []
  /// Documents that do not fit the type, in the query's order.
  public private(set) var failures: [DatabaseError] = []
  /// Whether the first result has come.
  public private(set) var isLoaded = false
  /// Why no more results come; nil as long as they do.
  public private(set) var error: DatabaseError?

  @ObservationIgnored private var listening: BackgroundTask?

  /// Listens to a query.
  ///
  /// - Parameters:
  ///   - query: what to listen to: a collection, a collection group or a query.
  ///   - type: what the documents are.
  ///   - decoder: how they are decoded.
  /// - Complexity: O(1); the first result comes later.
  public init(
    _ query: some QuerySource, as type: Item.Type = Item.self,
    decoder: DocumentDecoder = DocumentDecoder()
  ) {
    let query = query.query
    listening = query.database.engine.startInBackground { [weak self] in
      var decoded = LiveDecoding<Item>(decoder)
      do throws(DatabaseError) {
        for try await snapshot in query.snapshots {
          decoded = await decoded.following(snapshot)
          await self?.show(decoded)
        }
      } catch {
        await self?.end(with: error)
      }
    }
  }

  private func show(_ decoded: LiveDecoding<Item>) {
    items = decoded.items
    failures = decoded.failures
    isLoaded = true
  }

  private func end(with error: DatabaseError) {
    self.error = error
  }

  deinit {
    listening?.cancel()
  }
}

/// A document as a value of a `Decodable` type, kept up to date for a user interface.
@MainActor @Observable
public final class LiveDocument<Item: Decodable & Sendable> {
  /// What the document holds; nil until `isLoaded`, and while there is no document or it does not
  /// fit.
  public private(set) var item: Item?
  /// Why the document does not fit the type; nil when it does or there is none.
  public private(set) var failure: DatabaseError?
  /// Whether the first state has come.
  public private(set) var isLoaded = false
  /// Why no more states come; nil as long as they do.
  public private(set) var error: DatabaseError?

  @ObservationIgnored private var listening: BackgroundTask?

  /// Listens to a document.
  ///
  /// - Parameters:
  ///   - document: what to listen to.
  ///   - type: what the document is.
  ///   - decoder: how it is decoded.
  /// - Complexity: O(1); the first state comes later.
  public init(
    _ document: DocumentReference, as type: Item.Type = Item.self,
    decoder: DocumentDecoder = DocumentDecoder()
  ) {
    listening = document.database.engine.startInBackground { [weak self] in
      do throws(DatabaseError) {
        for try await snapshot in document.snapshots {
          let decoded = await LiveDecoding<Item>.decode(snapshot, decoder)
          await self?.show(decoded)
        }
      } catch {
        await self?.end(with: error)
      }
    }
  }

  private func show(_ decoded: Result<Item, DatabaseError>?) {
    (item, failure) = (nil, nil)
    switch decoded {
    case .success(let value)?: item = value
    case .failure(let reason)?: failure = reason
    case nil: break
    }
    isLoaded = true
  }

  private func end(with error: DatabaseError) {
    self.error = error
  }

  deinit {
    listening?.cancel()
  }
}

/// The decoded documents of a result.
private struct LiveDecoding<Item: Decodable & Sendable>: Sendable {
  private let decoder: DocumentDecoder
  private var results: [Result<Item, DatabaseError>] = []

  init(_ decoder: DocumentDecoder) {
    self.decoder = decoder
  }

  var items: [Item] { results.compactMap { try? $0.get() } }

  var failures: [DatabaseError] {
    results.compactMap { if case .failure(let failure) = $0 { failure } else { nil } }
  }

  /// The same after what changed was decoded, away from the caller's actor.
  @concurrent
  func following(_ snapshot: QuerySnapshot) async -> LiveDecoding {
    var next = self
    for change in snapshot.documentChanges {
      if let index = change.oldIndex { next.results.remove(at: index) }
      if let index = change.newIndex {
        next.results.insert(Self.decode(change.document, as: Item.self, decoder), at: index)
      }
    }
    return next
  }

  /// Nil when there is no document.
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
