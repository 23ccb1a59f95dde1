// What every port does with every call, whatever its protocol. A port opens a call when it knows
// where it comes from and what it is called, asks for admission before it reads anything of value,
// answers it bound to the call, and ends it with the status that the caller is sent:
//
//   let call = gate.open("accounts:lookup", from: source)
//   do throws(LimitReached) { try gate.admit(call, source) } catch { … status 429 … }
//   let answer = await call.bind { await face.answer(request) }
//   gate.end(call, status: "200")
//
// Who makes the call, `Admission.principal(ofBearer:project:in:)` finds out, for the call to which
// its task is bound.

#if Server
  import Logging
  import Ondol

  /// Where a call comes from, as its connection and its headers say.
  package struct CallSource: Sendable {
    /// The connection's network address, without its port.
    package var peer: String
    /// The value of the header `x-forwarded-for`, of several lines the last; nil without one.
    package var forwarded: String?
    /// The credential, as the header `authorization` has it; nil without one.
    package var bearer: String?

    package init(peer: String, forwarded: String? = nil, bearer: String? = nil) {
      self.peer = peer
      self.forwarded = forwarded
      self.bearer = bearer
    }
  }

  /// Limits, log, metrics and audit of all calls.
  package struct CallGate: Sendable {
    let admission: Admission
    let metrics: CallMetrics
    let logger: Logger
    /// Whether connections come from a proxy, which says in a header who calls.
    var isBehindProxy = false
    /// Shows calls while they are open; nil if nobody wants to see them.
    var view: ServerView?

    var limiter: CallLimiter { admission.limiter }
    var audit: AuditTrail { admission.audit }

    /// The address that a call comes from.
    ///
    /// A proxy adds the address of its own caller to the end of what the header has. All before it
    /// is what that caller claims.
    package func address(of source: CallSource) -> NetworkAddress? {
      if isBehindProxy, let last = source.forwarded?.split(separator: ",").last,
        let address = NetworkAddress(Self.trimmed(last))
      {
        return address
      }
      return NetworkAddress(source.peer)
    }

    private static func trimmed(_ text: Substring) -> Substring {
      var text = text
      while text.first == " " || text.first == "\t" { text.removeFirst() }
      while text.last == " " || text.last == "\t" { text.removeLast() }
      return text
    }

    /// Opens a call, which must be ended.
    package func open(_ method: String, from source: CallSource) -> OpenCall {
      metrics.begin(method)
      let call = OpenCall(
        method, from: address(of: source), limiter, isWatched: view != nil)
      view?.begin(call)
      return call
    }

    /// Counts the call for its address. Administrators have no such limit.
    ///
    /// - Throws: `LimitReached`, which the port answers with status 429 or `RESOURCE_EXHAUSTED`.
    package func admit(_ call: OpenCall, _ source: CallSource) throws(LimitReached) {
      guard limiter.limits.isOfAddresses else { return }
      if let bearer = source.bearer, admission.isAdministrator(bearer: bearer) { return }
      do throws(LimitReached) {
        try limiter.admit(call.address)
      } catch {
        admission.note(error, of: call)
        throw error
      }
    }

    /// Ends a call: records it in the log and the metrics.
    ///
    /// - Parameters:
    ///   - status: what the caller is sent, in the protocol's words: one of few.
    ///   - error: what the log adds to it.
    ///   - isDenial: whether the caller may not do what it asked for.
    ///   - isFault: whether the server is to blame.
    package func end(
      _ call: OpenCall, status: String, error: String? = nil, database: String? = nil,
      isDenial: Bool = false, isFault: Bool = false
    ) {
      let duration = ContinuousClock.now - call.start
      view?.end(call)
      metrics.end(
        call.method, status: status, after: duration, received: call.received, sent: call.sent)
      if isDenial { audit.note(.denial, in: call, database: database, reason: status) }
      guard !call.isSilent else { return }
      let level: Logger.Level = isFault ? .error : .info
      guard logger.logLevel <= level else { return }
      var metadata: Logger.Metadata = [
        "peer": "\(call.address?.description ?? "")",
        "milliseconds": "\((duration / .microseconds(10)).rounded() / 100)",
        "received": "\(call.received)", "sent": "\(call.sent)",
      ]
      if let database { metadata["database"] = "\(database)" }
      if let caller = call.caller { metadata["caller"] = "\(caller.name)" }
      if let error { metadata["error"] = "\(error)" }
      logger.log(level: level, "\(call.method) \(status)", metadata: metadata)
    }
  }

  extension ServerLimits {
    /// Whether calls are counted by address.
    var isOfAddresses: Bool { callsOfAddress != nil || bytesOfAddress != nil }
  }
#endif
