// The REST interface's streams of server-sent events: the data, then each change of it. Like a
// session it merges what a slow client has not taken.

#if Server
  import Ondol

  /// A server-sent event.
  struct TreeServerEvent: Sendable, Equatable {
    /// `put`, `patch`, `keep-alive`, `cancel` or `auth_revoked`.
    var name: String
    /// JSON in one line.
    var data: String

    static let keepAlive = TreeServerEvent(name: "keep-alive", data: "null")
    static let cancel = TreeServerEvent(name: "cancel", data: "null")
    static let revoked = TreeServerEvent(
      name: "auth_revoked", data: "\"credential is no longer valid\"")

    /// The event as it is sent.
    var text: String { "event: \(name)\ndata: \(data)\n\n" }
  }

  /// The events of one client. The sequence ends after `cancel` and `auth_revoked`, and when the
  /// database is closed. It is for one iterator.
  struct TreeEventStream: AsyncSequence, Sendable {
    /// The longest time without an event.
    static let keepAliveTime = Duration.seconds(30)

    private let rest: TreeREST
    private let place: TreePlace
    private let terms: TreeQueryTerms
    private let form: TreeText.Form
    private let principal: TreePrincipal
    private let keepAlive: Duration
    /// The deployment of the rules that allowed the stream, or an earlier one.
    private let rulesNumber: Int64?

    /// Begins a stream.
    ///
    /// - Throws: `TreeRefusal` when the request is wrong or denied.
    init(
      _ request: TreeHTTPRequest, _ rest: TreeREST, keepAlive: Duration = keepAliveTime
    ) async throws {
      self.rest = rest
      self.keepAlive = keepAlive
      principal = try await rest.principal(of: request)
      place = try TreeREST.place(of: request.path)
      let parameters = try TreeParameters(request)
      (terms, form) = (parameters.terms, parameters.form)
      rulesNumber = rest.access.rulesNumber
      try await rest.access.checkRead(terms, at: place, in: rest.database, as: principal)
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }

    struct Iterator: AsyncIteratorProtocol {
      private let stream: TreeEventStream
      private let signal = TreeSignal()
      private let follower: TreeFollower
      /// Wakes the stream when other rules are in force.
      private let rules: Handlers.Registration
      private var rulesNumber: Int64?
      private var data: TreeData?
      private var isOver = false

      fileprivate init(_ stream: TreeEventStream) {
        self.stream = stream
        let query = stream.terms.query(at: stream.place.reference(in: stream.rest.database))
        follower = TreeFollower(query) { [signal] in signal.notify() }
        rules = stream.rest.access.deployments.handlers.add { [signal] in
          signal.notify()
        }
        rulesNumber = stream.rulesNumber
      }

      mutating func next() async throws -> TreeServerEvent? {
        while !isOver, !Task.isCancelled {
          if let expiry = stream.principal.expiry, expiry <= stream.rest.database.wallClock {
            isOver = true
            return .revoked
          }
          if let event = try await denial() { return event }
          if let event = try await change() { return event }
          if isOver || follower.isOver { return nil }
          // After either the loop looks for changes first.
          if await !signal.wait(atMost: stream.keepAlive) { return .keepAlive }
        }
        return nil
      }

      /// The end of the stream, if other rules do not allow it.
      private mutating func denial() async throws -> TreeServerEvent? {
        let number = stream.rest.access.rulesNumber
        guard number != rulesNumber else { return nil }
        rulesNumber = number
        return try await checkRead()
      }

      /// Asks the rules; returns the end of the stream if they deny.
      private mutating func checkRead() async throws -> TreeServerEvent? {
        do {
          try await stream.rest.access.checkRead(
            stream.terms, at: stream.place, in: stream.rest.database, as: stream.principal)
          return nil
        } catch let refusal as TreeRefusal where refusal.kind == .permissionDenied {
          isOver = true
          return .cancel
        }
      }

      /// What has changed; nil for nothing.
      private mutating func change() async throws -> TreeServerEvent? {
        while let next = try await follower.poll()?.nodeData {
          let changes = data.map { next.changes(since: $0) }
          if changes?.isEmpty == true { continue }
          data = next
          if let end = try await checkRead() { return end }
          return stream.event(changes, next)
        }
        return nil
      }
    }

    /// The event of some changes; of all data at the beginning.
    private func event(_ changes: [TreeDataChange]?, _ data: TreeData) -> TreeServerEvent {
      guard let changes else { return put("/", TreeText.json(data, form)) }
      if changes.count == 1 {
        return put("/" + changes[0].keys.joined(separator: "/"), changes[0].json(form))
      }
      let values = changes.map { change in
        TreeText.json(change.keys.joined(separator: "/")) + ":" + change.json(form)
      }
      return TreeServerEvent(
        name: "patch", data: "{\"path\":\"/\",\"data\":{\(values.joined(separator: ","))}}")
    }

    private func put(_ path: String, _ json: String) -> TreeServerEvent {
      TreeServerEvent(name: "put", data: "{\"path\":\(TreeText.json(path)),\"data\":\(json)}")
    }
  }
#endif
