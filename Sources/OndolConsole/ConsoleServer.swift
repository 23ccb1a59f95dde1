// Carries the handler's requests and responses over HTTP on this machine's own address. What the
// server library lacks is around it: it listens nowhere else, a response to a body that was not
// read ends its connection, and sizes are the handler's business.

import Foundation
import Ondol
import OndolEngine

#if Console
  import FlyingFox
  import FlyingSocks

  /// The server.
  final class ConsoleServer: Sendable {
    let port: Int
    private let server: HTTPServer
    private let work: Task<Void, Never>

    private init(_ server: HTTPServer, _ work: Task<Void, Never>, port: Int) {
      self.server = server
      self.work = work
      self.port = port
    }

    /// Listens on 127.0.0.1.
    static func start(_ handler: ConsoleHandler, port: Int) async throws -> ConsoleServer {
      guard let number = UInt16(exactly: port) else {
        throw DatabaseError(.invalidArgument, "a port is from 0 to 65535, not \(port)")
      }
      let server = HTTPServer(
        config: .init(
          address: try .inet(ip4: "127.0.0.1", port: number), timeout: 600, logger: .disabled),
        handler: Bridge(handler: handler))
      let failure = Guarded<String?>(nil)
      let work = Task {
        do {
          try await server.run()
        } catch {
          failure.withLock { $0 = "\(error)" }
        }
      }
      // The library tells of a socket that listens, and not of one that never will.
      for _ in 0..<1_000 where await server.listeningAddress == nil {
        if let problem = failure.withLock({ $0 }) {
          throw DatabaseError(.unavailable, "cannot listen on port \(port): \(problem)")
        }
        try await Task.sleep(for: .milliseconds(10))
      }
      guard case .ip4(_, let actual)? = await server.listeningAddress else {
        throw DatabaseError(.unavailable, "cannot tell where the console listens")
      }
      return ConsoleServer(server, work, port: Int(actual))
    }

    func stop() async {
      await server.stop(timeout: 1)
      work.cancel()
    }
  }

  /// Makes the handler's requests of the library's and the other way round.
  private struct Bridge: HTTPHandler {
    let handler: ConsoleHandler

    func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
      var headers: [(name: String, value: String)] = []
      for header in request.headers.keys {
        for value in request.headers.values(for: header) {
          headers.append((header.rawValue, value))
        }
      }
      let pieces = Received(request.bodySequence)
      let response = await handler.respond(
        to: ConsoleRequest(
          method: request.method.rawValue, target: request.target.rawValue, headers: headers,
          body: ConsoleBody { try await pieces.next() }))
      var sent = HTTPHeaders()
      for (name, value) in response.headers { sent.addValue(value, for: HTTPHeader(name)) }
      // What was refused may have a body that nobody read.
      if response.status >= 400 { sent[.connection] = "close" }
      let status = HTTPStatusCode(response.status, phrase: Self.phrase(response.status))
      if let whole = response.body.whole {
        return HTTPResponse(statusCode: status, headers: sent, body: Data(whole))
      }
      sent[.connection] = "close"
      let length = response.headers.first { $0.name == "Content-Length" }.flatMap { Int($0.value) }
      let bytes = Sending(body: response.body)
      let body =
        if let length {
          HTTPBodySequence(from: bytes, count: length, suggestedBufferSize: 64 << 10)
        } else {
          HTTPBodySequence(from: bytes, suggestedBufferSize: 64 << 10)
        }
      return HTTPResponse(statusCode: status, headers: sent, body: body)
    }

    private static func phrase(_ status: Int) -> String {
      switch status {
      case 200: "OK"
      case 204: "No Content"
      case 206: "Partial Content"
      case 400: "Bad Request"
      case 401: "Unauthorized"
      case 403: "Forbidden"
      case 404: "Not Found"
      case 405: "Method Not Allowed"
      case 409: "Conflict"
      case 413: "Content Too Large"
      case 421: "Misdirected Request"
      case 429: "Too Many Requests"
      case 503: "Service Unavailable"
      default: "Internal Server Error"
      }
    }
  }

  /// What comes, as bytes: read by a task of its own from the first piece that is asked for on.
  private final class Received: Sendable {
    private let body: HTTPBodySequence
    private let pipe = Pipe()
    private let work = Guarded<Task<Void, Never>?>(nil)

    init(_ body: HTTPBodySequence) { self.body = body }

    deinit { work.withLock { $0 }?.cancel() }

    func next() async throws -> [UInt8]? {
      work.withLock { work in
        guard work == nil else { return }
        work = Task { [body, pipe] in
          do {
            for try await piece in body { try await pipe.send(Array(piece)) }
            await pipe.finish(nil)
          } catch {
            await pipe.finish(error)
          }
        }
      }
      return try await pipe.next()
    }
  }

  /// What goes, as the library takes it.
  private struct Sending: AsyncBufferedSequence {
    typealias Element = UInt8

    let body: ConsoleBody

    func makeAsyncIterator() -> Iterator { Iterator(pieces: body.makeAsyncIterator()) }

    struct Iterator: AsyncBufferedIteratorProtocol {
      var pieces: ConsoleBody.Iterator
      private var rest: ArraySlice<UInt8> = []

      init(pieces: ConsoleBody.Iterator) { self.pieces = pieces }

      mutating func next() async throws -> UInt8? {
        if rest.isEmpty, let piece = try await pieces.next() { rest = piece[...] }
        return rest.popFirst()
      }

      mutating func nextBuffer(suggested count: Int) async throws -> [UInt8]? {
        if !rest.isEmpty {
          defer { rest = [] }
          return Array(rest)
        }
        return try await pieces.next()
      }
    }
  }
#else
  /// No server: the package was built without its trait.
  final class ConsoleServer: Sendable {
    let port = 0

    static func start(_ handler: ConsoleHandler, port: Int) async throws -> ConsoleServer {
      handler.close()
      throw DatabaseError(
        .unimplemented,
        "this was built without the console: build with the package's trait Console",
        suggestion: "swift build --traits Console, or traits: [\"Console\"] where you depend on it")
    }

    func stop() async {}
  }
#endif
