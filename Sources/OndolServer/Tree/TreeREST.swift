// The Realtime Database's REST interface, from a request to a response, without a server:
// GET, PUT, POST, PATCH and DELETE of `/path.json`. TreeEventStream has the streams of events.
//
// A tag is the hash of the data. A client that wants to change data only if nobody else has, reads
// it with its tag and writes with `if-match`; with another tag the answer is 412, the data and its
// tag.

#if Server
  import Ondol
  import OndolJSON

  /// Answers requests of the REST interface.
  struct TreeREST: Sendable {
    let database: Database
    let access: TreeAccess

    init(_ database: Database, _ access: TreeAccess) {
      self.database = database
      self.access = access
    }

    /// The tag of data that does not exist.
    private static let tagOfNothing = "null_etag"
    /// The path of the rules, which only administrators read and write.
    private static let rulesPath = "/.settings/rules.json"

    /// Answers a request.
    func respond(to request: TreeHTTPRequest) async -> TreeHTTPResponse {
      do {
        let principal = try await principal(of: request)
        if request.path == Self.rulesPath { return try await rules(request, as: principal) }
        let place = try Self.place(of: request.path)
        let parameters = try TreeParameters(request)
        let method = request.headers["x-http-method-override"] ?? request.method
        switch method.uppercased() {
        case "GET", "HEAD": return try await get(place, parameters, principal)
        case "PUT": return try await put(Self.json(request), place, parameters, principal)
        case "POST": return try await post(Self.json(request), place, parameters, principal)
        case "PATCH": return try await patch(Self.json(request), place, parameters, principal)
        case "DELETE": return try await put(.null, place, parameters, principal)
        default: throw TreeRefusal(.invalid, "the method \(method) is not supported")
        }
      } catch {
        return TreeHTTPResponse(TreeRefusal(error))
      }
    }

    // MARK: - Requests

    /// The principal of a request's credential, or whom an administrator acts as.
    func principal(of request: TreeHTTPRequest) async throws -> TreePrincipal {
      guard let credential = request.credential else { return .nobody }
      let principal = try await access.authentication.principal(ofCredential: credential)
      guard let text = request.value("auth_variable_override") else { return principal }
      guard let auth = try? JSONReader.read(Array(text.utf8), .plain, numbers: .double) else {
        throw TreeRefusal(.invalid, "auth_variable_override must be JSON")
      }
      return principal.acting(as: auth)
    }

    /// The place of a path that ends with `.json`.
    static func place(of path: String) throws(TreeRefusal) -> TreePlace {
      let suffix = ".json"
      guard path.utf8.first == UInt8(ascii: "/"), path.hasSuffix(suffix) else {
        throw TreeRefusal(.invalid, "Invalid path: it must begin with \"/\" and end with \".json\"")
      }
      var keys: [String] = []
      for part in path.dropLast(suffix.count).utf8.split(separator: UInt8(ascii: "/")) {
        guard let key = TreeHTTPRequest.decoded(part) else {
          throw TreeRefusal(.invalid, "Invalid path: its percent-encoding is wrong")
        }
        keys.append(key)
      }
      return try TreePlace(keys: keys)
    }

    private static func json(_ request: TreeHTTPRequest) throws(TreeRefusal) -> Value {
      do throws(JSONError) {
        return try JSONReader.read(request.body, .plain, numbers: .double)
      } catch {
        throw TreeRefusal(
          .invalid, "Invalid data; couldn't parse JSON object, array, or value: \(error.reason)")
      }
    }

    // MARK: - Methods

    private func get(
      _ place: TreePlace, _ parameters: TreeParameters, _ principal: TreePrincipal
    ) async throws -> TreeHTTPResponse {
      if let index = access.missingIndex(parameters.terms, at: place) {
        throw TreeRefusal(
          .invalid,
          "Index not defined, add \".indexOn\": \"\(index)\", for path \"/\(place.text)\", to the"
            + " rules")
      }
      let data = try await Self.within(parameters.timeout) {
        try await access.read(parameters.terms, at: place, in: database, as: principal).nodeData
      }
      if parameters.ifNoneMatch == Self.tag(of: data) {
        return response(data, parameters, status: 304, isEmpty: true)
      }
      return response(data, parameters)
    }

    /// A write of the whole node, or its removal.
    private func put(
      _ value: Value, _ place: TreePlace, _ parameters: TreeParameters, _ principal: TreePrincipal
    ) async throws -> TreeHTTPResponse {
      try Self.refuseQuery(parameters)
      let write = try TreeWrite(
        put: value, at: TreeTarget(place), now: database.wallClock / 1_000)
      let hash = parameters.ifMatch.map { $0 == Self.tagOfNothing ? "" : $0 }
      do {
        let written = try await access.write(
          write, ifHash: hash, to: database, as: principal,
          isReturned: parameters.wantsTag || parameters.print != .silent)
        return response(written, parameters)
      } catch let refusal as TreeRefusal where refusal.kind == .stale {
        let terms = TreeQueryTerms()
        let stored = try await access.read(terms, at: place, in: database, as: principal)
        return response(stored.nodeData, parameters, status: 412)
      }
    }

    /// A new child with a key in the order of time.
    private func post(
      _ value: Value, _ place: TreePlace, _ parameters: TreeParameters, _ principal: TreePrincipal
    ) async throws -> TreeHTTPResponse {
      try Self.refuseQuery(parameters)
      guard parameters.ifMatch == nil else {
        throw TreeRefusal(.invalid, "if-match is for PUT and DELETE")
      }
      let key = place.reference(in: database).childByAutoId().key ?? ""
      let child = try place.appending(TreePlace(keys: [key]))
      let write = try TreeWrite(
        put: value, at: TreeTarget(child), now: database.wallClock / 1_000)
      try await access.write(write, to: database, as: principal)
      guard parameters.print != .silent else { return Self.silent }
      return TreeHTTPResponse("{\"name\":\(TreeText.json(key))}")
    }

    /// A write of several places below the node. The answer has what was written, as it came.
    private func patch(
      _ value: Value, _ place: TreePlace, _ parameters: TreeParameters, _ principal: TreePrincipal
    ) async throws -> TreeHTTPResponse {
      try Self.refuseQuery(parameters)
      guard parameters.ifMatch == nil else {
        throw TreeRefusal(.invalid, "if-match is for PUT and DELETE")
      }
      let write = try TreeWrite(merge: value, at: place, now: database.wallClock / 1_000)
      try await access.write(write, to: database, as: principal)
      guard parameters.print != .silent else { return Self.silent }
      return TreeHTTPResponse(TreeText.json(value))
    }

    private static func refuseQuery(_ parameters: TreeParameters) throws(TreeRefusal) {
      guard parameters.hasQuery || parameters.isShallow else { return }
      throw TreeRefusal(.invalid, "querying parameters are for GET")
    }

    // MARK: - Responses

    private static func tag(of data: TreeData) -> String {
      data.exists ? TreeHash.hash(of: data) : tagOfNothing
    }

    private static let silent: TreeHTTPResponse = {
      var response = TreeHTTPResponse("", status: 204)
      response.headers = [("Cache-Control", "no-cache")]
      return response
    }()

    private func response(
      _ data: TreeData, _ parameters: TreeParameters, status: Int = 200, isEmpty: Bool = false
    ) -> TreeHTTPResponse {
      var response: TreeHTTPResponse
      if parameters.print == .silent, status == 200 {
        response = Self.silent
      } else {
        response = TreeHTTPResponse(isEmpty ? "" : Self.body(data, parameters), status: status)
      }
      if parameters.wantsTag { response.headers.append(("ETag", Self.tag(of: data))) }
      return response
    }

    private static func body(_ data: TreeData, _ parameters: TreeParameters) -> String {
      if parameters.isShallow { return TreeText.shallow(data) }
      return parameters.print == .pretty
        ? TreeText.pretty(data, parameters.form) : TreeText.json(data, parameters.form)
    }

    /// Does work for at most that long.
    private static func within<Result: Sendable>(
      _ duration: Duration?, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
      guard let duration else { return try await body() }
      return try await withThrowingTaskGroup(of: Result.self) { group in
        group.addTask { try await body() }
        group.addTask {
          try await Task.sleep(for: duration)
          throw TreeRefusal(.invalid, "Request timed out")
        }
        defer { group.cancelAll() }
        guard let result = try await group.next() else { throw CancellationError() }
        return result
      }
    }

    // MARK: - Rules

    private func rules(
      _ request: TreeHTTPRequest, as principal: TreePrincipal
    ) async throws -> TreeHTTPResponse {
      guard principal.isAdministrator else { throw TreeRefusal.denied }
      switch request.method.uppercased() {
      case "GET": return TreeHTTPResponse(access.deployments.loaded??.treeText ?? "{}")
      case "PUT":
        guard let text = String(validating: request.body, as: UTF8.self) else {
          throw TreeRefusal(.invalid, "the rules are not UTF-8")
        }
        if try await access.deployments.deploy(RulesTexts(database: text)) != nil {
          access.gate?.audit.note(.rulesChange)
        }
        return TreeHTTPResponse("{\"status\":\"ok\"}")
      default: throw TreeRefusal(.invalid, "rules are read with GET and replaced with PUT")
      }
    }
  }
#endif
