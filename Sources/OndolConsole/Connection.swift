// One connection: its requests one after another, and a response to each. A refused request may
// have an unread body. The connection reads that body to its end, so that nothing in it can be
// mistaken for a request.

import Foundation
import Ondol
import OndolEngine
import OndolPlatform

#if Console
  import FlyingSocks

  /// One client's connection.
  struct Connection: Sendable {
    /// The largest rest of a refused request's body, in bytes, that the server reads so that the
    /// client gets the response.
    private static let longestRefused = ConsoleHandler.longestObject + (1 << 20)
    /// How long the client may take to accept a piece of a response.
    private static let patienceOfAnswers = Duration.seconds(120)

    private let socket: AsyncSocket
    private let handler: ConsoleHandler
    private let patience: Patience
    private let incoming: Incoming

    init(_ socket: AsyncSocket, _ handler: ConsoleHandler, _ patience: Patience) {
      self.socket = socket
      self.handler = handler
      self.patience = patience
      incoming = Incoming(patience) {
        try await socket.write(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8))
      } read: {
        (try? await socket.read(atMost: 4_096)) ?? []
      }
    }

    /// Answers requests until the client has no more, or sends one that the server cannot parse.
    func serve() async {
      do {
        var goesOn = true
        while goesOn, !Task.isCancelled {
          do {
            guard let head = try await incoming.head() else { break }
            goesOn = try await answer(head)
          } catch let failure as ConsoleFailure {
            try await send(ConsoleHandler.refusal(failure), nil, isLast: true)
            goesOn = false
          }
          if !goesOn { await sayGoodbye() }
        }
      } catch {}
      try? socket.close()
    }

    /// Answers one request. Returns false when no other request can follow.
    private func answer(_ head: RequestHead) async throws -> Bool {
      let incoming = incoming
      let response = await handler.respond(
        to: ConsoleRequest(
          method: head.method, target: head.target, headers: head.headers,
          body: ConsoleBody { try await incoming.piece() }))
      let isRead = await incoming.skip(atMost: Self.longestRefused)
      let isLast = head.isLast || !isRead
      try await send(response, head, isLast: isLast)
      return !isLast
    }

    /// Lets the response arrive although the server has not read everything that the client sent.
    private func sayGoodbye() async {
      guard shutdown(socket.socket.file.rawValue, Int32(SHUT_WR)) == 0 else { return }
      await incoming.linger()
    }

    // MARK: - Answers

    private func send(
      _ response: ConsoleResponse, _ head: RequestHead?, isLast: Bool
    ) async throws {
      let isHead = head?.method == "HEAD"
      var length = response.headers.first { $0.name == "Content-Length" }.flatMap { Int($0.value) }
      var headers = response.headers
      if let whole = response.body.whole, length == nil, response.status != 204 {
        length = whole.count
        headers.append(("Content-Length", "\(whole.count)"))
      }
      // Without chunks and without a length, the body ends with the connection.
      let isChunked = length == nil && response.body.whole == nil && !(head?.isOld ?? true)
      if isChunked { headers.append(("Transfer-Encoding", "chunked")) }
      if isLast { headers.append(("Connection", "close")) }
      var text = "HTTP/1.1 \(response.status) \(Self.phrase(response.status))\r\n"
      for (name, value) in headers { text += "\(name): \(value)\r\n" }
      var bytes = Array((text + "\r\n").utf8)
      var sent = 0
      if !isHead {
        for try await piece in response.body where !piece.isEmpty {
          sent += piece.count
          if isChunked { bytes += "\(String(piece.count, radix: 16))\r\n".utf8 }
          bytes += piece
          if isChunked { bytes += "\r\n".utf8 }
          try await write(bytes)
          bytes = []
        }
        if isChunked { bytes += "0\r\n\r\n".utf8 }
      }
      if !bytes.isEmpty { try await write(bytes) }
      // A truncated body is no response, and the client must not mistake it for one.
      guard isHead || sent == length ?? sent else { throw CancellationError() }
    }

    private func write(_ bytes: [UInt8]) async throws {
      patience.give(Self.patienceOfAnswers)
      defer { patience.give(nil) }
      try await socket.write(Data(bytes))
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
      case 431: "Request Header Fields Too Large"
      case 503: "Service Unavailable"
      default: "Internal Server Error"
      }
    }
  }
#endif
