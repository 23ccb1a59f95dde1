// A live query as server-sent events: the browser's `EventSource` reads them, and reconnects by
// itself. A stream ends when its client goes, when the service shuts down, and when the database is
// closed. A slow client costs bounded memory: it misses states in between, never the newest.

import Foundation
import Hummingbird
import Ondol
import ServiceLifecycle

/// Answers with a query's result, and with each later one.
///
/// - Parameters:
///   - query: the query to follow.
///   - request: the client's request.
///   - content: the client's form of a result.
func liveEvents<Model, Content: Encodable & Sendable>(
  _ query: TypedQuery<Model>, for request: Request,
  content: @escaping @Sendable (TypedQuerySnapshot<Model>) throws -> Content
) -> Response {
  let headers: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store"]
  let events = LiveEvents(query: query, content: { try JSONEncoder().encode(try content($0)) })
  let body = ResponseBody { writer in
    // A client that goes away cancels the work inside, also while nothing changes.
    try? await request.body.consumeWithCancellationOnInboundClose { _ in
      for try await event in events { try await writer.write(ByteBuffer(string: event)) }
    }
    try await writer.finish(nil)
  }
  return Response(status: .ok, headers: headers, body: body)
}

/// The texts of the events. They end with the service.
struct LiveEvents<Model: Codable & Sendable>: AsyncSequence, Sendable {
  let query: TypedQuery<Model>
  let content: @Sendable (TypedQuerySnapshot<Model>) throws -> Data

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(
      content: content, base: query.snapshots.cancelOnGracefulShutdown().makeAsyncIterator())
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    let content: @Sendable (TypedQuerySnapshot<Model>) throws -> Data
    var base:
      AsyncCancelOnGracefulShutdownSequence<Updates<TypedQuerySnapshot<Model>>>.AsyncIterator

    mutating func next() async throws -> String? {
      guard let snapshot = try await base.next() else { return nil }
      // JSON has no line breaks here, so one line has all of it.
      return "event: result\ndata: \(String(decoding: try content(snapshot), as: UTF8.self))\n\n"
    }
  }
}
