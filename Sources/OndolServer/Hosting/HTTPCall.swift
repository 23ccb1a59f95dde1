// A request and its answer, as the faces that speak HTTP see them. They know no library and no
// socket: Serving/HTTPListener reads and writes them, and tests make them by hand.

#if Server
  import Foundation
  package import Ondol
  import OndolJSON

  /// A request.
  package struct HTTPCall: Sendable {
    package var method: String
    /// The path's segments, decoded.
    package var path: [String]
    /// The parameters of the query, decoded. Of two with one name, the last counts.
    package var query: [String: String]
    /// The headers by their names in lower case.
    package var headers: [String: String]
    package var body: [UInt8]
    /// The body of a call for which `HTTPFace.takesStream(_:)` holds; `body` is empty then.
    package var stream: HTTPBody?
    /// The network address that the call comes from; nil if it is not known.
    package var address: NetworkAddress?

    /// Nil for a target that is not written as it must be.
    ///
    /// - Parameter target: the path, with the query.
    package init?(
      _ method: String, _ target: String, headers: [String: String] = [:], body: [UInt8] = [],
      address: NetworkAddress? = nil
    ) {
      let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
      guard let first = parts.first, first.hasPrefix("/") else { return nil }
      var path: [String] = []
      for segment in first.split(separator: "/") {
        guard let decoded = segment.removingPercentEncoding else { return nil }
        path.append(decoded)
      }
      guard let query = Self.form(parts.count > 1 ? parts[1] : "") else { return nil }
      self.method = method
      self.path = path
      self.query = query
      self.headers = headers
      self.body = body
      self.address = address
    }

    /// Names and values of a form, such as `a=1&b=2`; nil when it is none.
    package static func form(_ text: Substring) -> [String: String]? {
      var form: [String: String] = [:]
      for pair in text.split(separator: "&") {
        let parts = pair.replacing("+", with: " ")
          .split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = parts[0].removingPercentEncoding,
          let value = parts.count > 1 ? parts[1].removingPercentEncoding : ""
        else { return nil }
        form[name] = value
      }
      return form
    }
  }

  /// An answer.
  package struct HTTPAnswer: Sendable {
    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    /// A body that is not in memory, and how many bytes it has; `body` is empty then.
    package var stream: (length: Int, bytes: StorageBytes)?
    /// Whether the caller may not do what it asked for. The audit has these answers.
    package var isDenial = false

    package init(
      status: Int = 200, type: String? = nil, headers: [(name: String, value: String)] = [],
      body: [UInt8] = []
    ) {
      self.status = status
      self.headers = headers + (type.map { [("content-type", $0)] } ?? [])
      self.body = body
    }
  }

  extension HTTPAnswer {
    /// JSON.
    package static func json(_ value: Value, status: Int = 200) -> HTTPAnswer {
      HTTPAnswer(
        status: status, type: "application/json; charset=utf-8",
        body: Array(JSONWriter.line(value, .plain).utf8))
    }

    /// Allows a browser to send what it asks for.
    ///
    /// - Parameter methods: those that the face has.
    package static func preflight(_ call: HTTPCall, _ methods: String) -> HTTPAnswer {
      var answer = HTTPAnswer(status: 204)
      answer.headers.append(("access-control-allow-methods", methods))
      answer.headers.append(("access-control-max-age", "3600"))
      let asked = call.headers["access-control-request-headers"] ?? ""
      let names = asked.split(separator: ",").map { $0.filter { $0 != " " } }
      let isPlain =
        asked.utf8.count <= 1_024
        && names.allSatisfy {
          $0.allSatisfy { $0.isASCII && ($0.isLetter || "-_0123456789".contains($0)) }
        }
      if isPlain, !names.isEmpty {
        answer.headers.append(("access-control-allow-headers", names.joined(separator: ", ")))
      }
      return answer
    }

    /// An error in the form of Google's services.
    ///
    /// - Parameters:
    ///   - message: begins with the error's name, such as `EMAIL_EXISTS`.
    ///   - name: the name of Google's status; nil for an error of accounts, which has none.
    package static func failure(
      _ status: Int, _ message: String, named name: String? = nil
    ) -> HTTPAnswer {
      var error: [String: Value] = [
        "code": .integer(Int64(status)), "message": .string(message),
        "errors": [["message": .string(message), "reason": "invalid", "domain": "global"]],
      ]
      error["status"] = name.map(Value.string)
      return json(["error": .map(error)], status: status)
    }
  }

  /// What answers requests on one port.
  package protocol HTTPFace: Sendable {
    /// The name of a call in the log and in the metrics: one of few.
    func name(of call: HTTPCall) -> String

    /// Whether a call, which has no body yet, gets it piece by piece. All others get theirs whole.
    func takesStream(_ call: HTTPCall) -> Bool

    /// Answers a request, whatever it is.
    func answer(_ call: HTTPCall) async -> HTTPAnswer

    /// The answer to a request that a limit refuses, in the form of the face's protocol.
    func refusal(_ limit: LimitReached) -> HTTPAnswer
  }

  extension HTTPFace {
    package func takesStream(_ call: HTTPCall) -> Bool { false }
  }
#endif
