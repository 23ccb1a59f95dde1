// A listening client of a simulated server, which works as Firestore's clients do: it puts changes
// aside until a message says that all targets are consistent as of one moment. When the connection
// breaks, it forgets them, and the next connection continues from the last token, at any server.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf

  /// Listens to three targets, and checks each moment.
  struct ServeListener: Sendable {
    typealias Connection = SimulatedConnection<WireListenRequest, WireListenResponse>

    /// A document as the server reported it.
    struct Told: Sendable, Equatable {
      var number: Int64
      var updated: Google_Protobuf_Timestamp
    }

    /// The collections of the targets 1, 2 and 3. The last one wants only numbers from 3 on.
    static let collections: [Int32: String] = [1: "left", 2: "right", 3: "counters"]
    static let leastCount: Int64 = 3

    let client: ServeClient
    private var random: SeededRandom
    /// The state of the last moment.
    private(set) var shown: [Int32: [String: Told]] = [:]
    private var pending: [Int32: [String: Told]] = [:]
    /// The tokens of the last moment, and later ones.
    private var tokens: [Int32: Data] = [:]
    private var newTokens: [Int32: Data] = [:]
    private var current: Set<Int32> = []
    /// The number of unacknowledged requests of a target. Until then, messages belong to its
    /// earlier state.
    private var unacknowledged: [Int32: Int] = [:]
    /// Targets that continue from a token. Their documents must not come again unchanged.
    private var resumed: Set<Int32> = []
    private var time = Google_Protobuf_Timestamp()
    private var counted: [String: Int64] = [:]

    init(_ client: ServeClient, seed: UInt64) {
      self.client = client
      random = SeededRandom(seed: seed)
    }

    /// Whether the last commit of the trial has arrived.
    private var isComplete: Bool {
      (shown[1] ?? [:])["last"] != nil && (shown[2] ?? [:])["last"] != nil
    }

    /// Listens until the last commit of the trial has arrived, and returns the shown state.
    mutating func run() async throws -> [Int32: [String: Told]] {
      while !isComplete {
        try Task.checkCancellation()
        do {
          try await connect()
        } catch {
          guard ServeClient.isVague(error) else { throw error }
          client.ledger.note { $0.counts.connections += 1 }
        }
      }
      return shown
    }

    private mutating func connect() async throws {
      let life = try await client.life(&random)
      let (client, tamperer) = (client, Tamperer(client.sabotage, hasToken: !tokens.isEmpty))
      let connection = Connection(
        to: life, on: client.executor, changing: { tamperer.change($0) }
      ) { requests, answers in
        try await life.service.listen(
          request: requests, response: answers,
          context: client.context(WireFirestore.Method.Listen.descriptor))
      }
      defer { connection.end() }
      client.say("connects with \(tokens.count) tokens")
      (pending, newTokens, current, resumed) = (shown, tokens, [], [])
      unacknowledged = [:]
      for target in Self.collections.keys.sorted() {
        try await add(target, to: connection, life)
      }
      var left = random.chance(1, in: 3) ? Int.max : 1 + random.below(40)
      for try await message in connection.answers {
        client.say(Self.line(message))
        try await take(message, connection, life)
        if isComplete { return }
        left -= 1
        if left == 0 {
          connection.cut(isNoticed: random.chance(1, in: 2))
        } else if random.chance(1, in: 60) {
          try await again(1 + Int32(random.below(3)), on: connection, life)
        }
      }
      throw Connection.broken
    }

    /// Removes a target, and adds it again from the beginning.
    private mutating func again(
      _ target: Int32, on connection: Connection, _ life: ServerLife
    ) async throws {
      connection.send(
        .with {
          $0.database = ServeClient.database
          $0.removeTarget = target
        })
      newTokens[target] = nil
      current.remove(target)
      unacknowledged[target, default: 0] += 1
      try await add(target, to: connection, life)
    }

    private mutating func add(
      _ target: Int32, to connection: Connection, _ life: ServerLife
    ) async throws {
      var token = newTokens[target]
      if client.sabotage == .skippedCommits, token != nil {
        token = Data(try await life.newestToken().description.utf8)
      }
      if token == nil {
        pending[target] = [:]
        resumed.remove(target)
      } else {
        resumed.insert(target)
      }
      unacknowledged[target, default: 0] += 1
      if client.sabotage == .repeatedChanges { token = nil }
      let count = pending[target]?.count ?? 0
      connection.send(
        .with {
          $0.database = ServeClient.database
          $0.addTarget.targetID = target
          $0.addTarget.query.parent = ServeClient.documents
          $0.addTarget.query.structuredQuery.from = [
            .with { $0.collectionID = Self.collections[target] ?? "" }
          ]
          if target == 3 {
            $0.addTarget.query.structuredQuery.where.fieldFilter.field.fieldPath = "n"
            $0.addTarget.query.structuredQuery.where.fieldFilter.op = .greaterThanOrEqual
            $0.addTarget.query.structuredQuery.where.fieldFilter.value.integerValue =
              Self.leastCount
          }
          if let token {
            $0.addTarget.resumeToken = token
            $0.addTarget.expectedCount.value = Int32(count)
          }
        })
    }

    // MARK: - Responses

    /// A message in one line.
    private static func line(_ message: WireListenResponse) -> String {
      message.textFormatString().split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private mutating func take(
      _ message: WireListenResponse, _ connection: Connection, _ life: ServerLife
    ) async throws {
      switch message.responseType {
      case .targetChange(let change)?: try take(change)
      case .documentChange(let change)?: try take(change)
      case .documentDelete(let change)?: remove(change.document, change.removedTargetIds)
      case .documentRemove(let change)?: remove(change.document, change.removedTargetIds)
      case .filter(let filter)?:
        // The client's state does not match: the target begins again.
        let isActive = !active([filter.targetID]).isEmpty
        if isActive, pending[filter.targetID]?.count != Int(filter.count) {
          try await again(filter.targetID, on: connection, life)
        }
      case nil: throw client.fault("an empty message")
      }
    }

    private mutating func take(_ change: WireTargetChange) throws {
      switch change.targetChangeType {
      case .add, .remove:
        guard !change.hasCause else { throw client.fault("a target was removed: \(change.cause)") }
        for target in change.targetIds { unacknowledged[target, default: 0] -= 1 }
      case .reset:
        for target in active(change.targetIds) {
          pending[target] = [:]
          current.remove(target)
          resumed.remove(target)
        }
      case .current:
        for target in active(change.targetIds) {
          current.insert(target)
          newTokens[target] = change.resumeToken
        }
      case .noChange:
        guard change.targetIds.isEmpty, !change.resumeToken.isEmpty else { return }
        guard current.count == Self.collections.count,
          active(Array(current)).count == Self.collections.count
        else { return }
        for target in Self.collections.keys { newTokens[target] = change.resumeToken }
        try show(as: change.readTime)
      case .UNRECOGNIZED: throw client.fault("a change of a kind that is not known")
      }
    }

    private func active(_ targets: [Int32]) -> [Int32] {
      targets.filter { unacknowledged[$0, default: 0] == 0 }
    }

    private static func id(_ name: String) -> String {
      String(name.split(separator: "/").last ?? "")
    }

    private mutating func take(_ change: WireDocumentChange) throws {
      let (document, id) = (change.document, Self.id(change.document.name))
      let told = Told(
        number: document.fields.first { $0.key == "n" }?.value.integerValue ?? -1,
        updated: document.updateTime)
      for target in active(change.targetIds) {
        if resumed.contains(target), pending[target]?[id] == told {
          throw client.fault("\(document.name) came as it was known: \(document.updateTime)")
        }
        pending[target, default: [:]][id] = told
      }
      remove(document.name, change.removedTargetIds)
    }

    private mutating func remove(_ name: String, _ targets: [Int32]) {
      for target in active(targets) { pending[target]?[Self.id(name)] = nil }
    }

    // MARK: - Moments

    /// Shows the changes that were put aside, and checks that they can be one moment, not before
    /// the last one.
    private mutating func show(as moment: Google_Protobuf_Timestamp) throws {
      client.ledger.note { $0.counts.moments += 1 }
      guard (moment.seconds, moment.nanos) >= (time.seconds, time.nanos) else {
        throw client.fault("a moment of \(moment) came after one of \(time)")
      }
      (time, shown, tokens) = (moment, pending, newTokens)
      let sides = (1...2).map { (shown[Int32($0)] ?? [:]).mapValues(\.number) }
      guard sides[0] == sides[1] else {
        throw client.fault("half a commit: on the left \(sides[0]), on the right \(sides[1])")
      }
      let counts = (shown[3] ?? [:]).mapValues(\.number)
      for (id, count) in counted where (counts[id] ?? 0) < count {
        throw client.fault("\(id) went from \(count) back to \(counts[id] ?? 0)")
      }
      counted = counts
    }
  }

  /// A dishonest network's changes to answers.
  private final class Tamperer: Sendable {
    private let sabotage: ServeSabotage?
    private let hasToken: Bool
    private let state = Guarded<(changes: Int, moment: WireListenResponse?)>((0, nil))

    init(_ sabotage: ServeSabotage?, hasToken: Bool) {
      (self.sabotage, self.hasToken) = (sabotage, hasToken)
    }

    func change(_ message: WireListenResponse) -> [WireListenResponse] {
      let isChange = if case .documentChange = message.responseType { true } else { false }
      return state.withLock { state in
        if isChange { state.changes += 1 }
        switch sabotage {
        case .lostChanges: return isChange && state.changes.isMultiple(of: 5) ? [] : [message]
        case .halfCommits:
          if message.targetChange.targetChangeType == .noChange, !isChange {
            state.moment = message
          }
          guard isChange, let moment = state.moment else { return [message] }
          return [message, moment]
        case .repeatedChanges:
          return hasToken && message.targetChange.targetChangeType == .reset ? [] : [message]
        default: return [message]
        }
      }
    }
  }
#endif
