// Writing clients of a simulated server, as state machines: a device that sends numbered groups of
// writes by a stream, and one that commits by single calls, with and without a transaction. Each
// records in the ledger what it was told, and the trial compares that with the final state.

#if Server
  import Foundation
  import GRPCCore
  import OndolEngine
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf

  /// What the server told the clients.
  final class ServeLedger: Sendable {
    struct Entries: Sendable {
      /// The acknowledged groups of each device.
      var groups: [Int: Int] = [:]
      /// Documents that were created, and those that were refused. The others are unknown.
      var made: Set<String> = []
      var refused: Set<String> = []
      /// Additions to the shared number: acknowledged ones, and those without an answer.
      var added = 0
      var unanswered = 0
      var counts = ServeCounts()
    }

    private let entries = Guarded(Entries())

    var all: Entries { entries.withLock { $0 } }

    func note(_ change: (inout Entries) -> Void) { entries.withLock { change(&$0) } }
  }

  /// The shared parts of all clients.
  struct ServeClient: Sendable {
    static let database = "projects/p/databases/(default)"
    static let documents = database + "/documents"

    let site: SimulatedSite
    let executor: SimulationExecutor
    let ledger: ServeLedger
    let sabotage: ServeSabotage?
    let number: Int
    /// Receives a line for each event.
    let trace: (@Sendable (String) -> Void)?

    /// Returns any server.
    func life(_ random: inout SeededRandom) async throws -> ServerLife {
      try await site.life(of: random.below(site.serverCount))
    }

    func say(_ text: @autoclosure () -> String) { trace?("\(number) \(text())") }

    func context(_ method: MethodDescriptor) -> ServerContext {
      ServerContext(
        descriptor: method, remotePeer: "client \(number)", localPeer: "server",
        cancellation: ServerContext.RPCCancellationHandle())
    }

    /// Makes a call whose request and answer are one message each.
    ///
    /// Throws `unavailable` if the server ends first.
    func call<Response: Sendable>(
      _ life: ServerLife, _ body: @escaping @Sendable () async throws -> Response
    ) async throws -> Response {
      let connection = SimulatedConnection<Never, Response>(to: life, on: executor) { _, response in
        try await response.write(try await body())
      }
      defer { connection.end() }
      var answers = connection.answers.makeAsyncIterator()
      guard let answer = try await answers.next() else {
        throw SimulatedConnection<Never, Response>.broken
      }
      return answer
    }

    static func write(
      _ path: String, _ number: Int, exists: Bool? = nil
    ) -> WireWrite {
      .with {
        $0.update.name = "\(documents)/\(path)"
        $0.update.fields = [
          .with {
            $0.key = "n"
            $0.value.integerValue = Int64(number)
          }
        ]
        if let exists { $0.currentDocument.exists = exists }
      }
    }

    static func delete(_ path: String) -> WireWrite { .with { $0.delete = "\(documents)/\(path)" } }

    /// Adds one to a document's number.
    static func increment(_ path: String) -> WireWrite {
      .with {
        $0.update.name = "\(documents)/\(path)"
        $0.updateMask.fieldPaths = []
        $0.updateTransforms = [
          .with {
            $0.fieldPath = "n"
            $0.increment.integerValue = 1
          }
        ]
      }
    }

    /// Whether an error leaves open what the call did.
    static func isVague(_ error: any Error) -> Bool {
      guard let error = error as? RPCError else { return false }
      return [.unavailable, .unknown, .deadlineExceeded, .cancelled, .internalError]
        .contains(error.code)
    }

    func fault(_ text: String) -> ServeFault {
      ServeFault(description: "client \(number): \(text)")
    }
  }

  // MARK: - A device

  /// Sends groups of writes, several without waiting for the answers, and resends those that had no
  /// answer when the connection broke.
  struct ServeDevice: Sendable {
    static let groups = 8

    let client: ServeClient
    private var random: SeededRandom
    private var token = Data()
    /// The number of answered groups.
    private var answered = 0
    /// Whether it has resent some.
    private var hasSentAgain = false

    init(_ client: ServeClient, seed: UInt64) {
      self.client = client
      random = SeededRandom(seed: seed)
    }

    /// Writes its own number, and the same number to both sides of a pair.
    private func writes(_ group: Int) -> [WireWrite] {
      let pair = (client.number * 7 + group * 5) % 4
      let number = client.number * 1_000 + group
      let isDelete = (client.number + group).isMultiple(of: 5)
      let sides = ["left/p\(pair)", "right/p\(pair)"].map {
        isDelete ? ServeClient.delete($0) : ServeClient.write($0, number)
      }
      return [ServeClient.increment("counters/c\(client.number)")] + sides
    }

    mutating func run() async throws {
      while answered < Self.groups {
        try Task.checkCancellation()
        do {
          try await connect()
        } catch {
          guard ServeClient.isVague(error) else { throw client.fault("its stream ended: \(error)") }
          client.say("has \(answered) groups, and \(error)")
          hasSentAgain = true
          client.ledger.note { $0.counts.connections += 1 }
        }
      }
    }

    private mutating func connect() async throws {
      let life = try await client.life(&random)
      let client = client
      client.say("connects after \(answered) groups")
      let connection = SimulatedConnection<WireWriteRequest, WireWriteResponse>(
        to: life, on: client.executor
      ) { requests, answers in
        try await life.service.write(
          request: requests, response: answers,
          context: client.context(WireFirestore.Method.Write.descriptor))
      }
      var answers = connection.answers.makeAsyncIterator()
      connection.send(
        .with {
          $0.database = ServeClient.database
          $0.streamToken = client.sabotage == .forgottenStreams ? Data() : token
        })
      guard let hello = try await answers.next() else {
        throw SimulatedConnection<WireWriteRequest, WireWriteResponse>.broken
      }
      token = hello.streamToken
      var sent = answered
      while answered < Self.groups {
        while sent < Self.groups, sent == answered || sent < answered + 3 && random.chance(1, in: 2)
        {
          let (writes, token) = (writes(sent), token)
          connection.send(
            .with {
              $0.writes = writes
              $0.streamToken = token
            })
          sent += 1
        }
        if random.chance(1, in: 7) { connection.cut(isNoticed: random.chance(1, in: 2)) }
        guard let answer = try await answers.next() else {
          throw SimulatedConnection<WireWriteRequest, WireWriteResponse>.broken
        }
        try take(answer)
      }
      connection.end()
    }

    private mutating func take(_ answer: WireWriteResponse) throws {
      answered += 1
      token = answer.streamToken
      let (number, answered) = (client.number, answered)
      client.say("group \(answered) is committed")
      client.ledger.note { entries in
        entries.groups[number] = answered
        entries.counts.commits += 1
      }
      let value = answer.writeResults.first?.transformResults.first?.integerValue
      guard answer.writeResults.count == 3, let value, value >= Int64(answered),
        hasSentAgain || value == Int64(answered)
      else {
        throw client.fault(
          "group \(answered) was answered with \(value.map(String.init) ?? "nothing") and"
            + " \(answer.writeResults.count) results")
      }
    }
  }

  // MARK: - Single calls

  /// Creates documents, and adds to a shared number.
  struct ServeCaller: Sendable {
    private static let turns = 5

    let client: ServeClient
    private var random: SeededRandom

    init(_ client: ServeClient, seed: UInt64) {
      self.client = client
      random = SeededRandom(seed: seed)
    }

    mutating func run() async throws {
      for turn in 0..<Self.turns {
        try await make("made/m\(client.number)-\(turn)")
        try await add()
      }
    }

    private func commit(
      _ life: ServerLife, _ writes: [WireWrite], _ transaction: Data = Data()
    ) async throws {
      let client = client
      let isUnguarded = client.sabotage == .unguardedTransactions
      _ = try await client.call(life) {
        try await life.service.commit(
          request: .with {
            $0.database = ServeClient.database
            $0.writes = writes
            $0.transaction = isUnguarded ? Data() : transaction
          }, context: client.context(WireFirestore.Method.Commit.descriptor))
      }
    }

    private mutating func make(_ path: String) async throws {
      let life = try await client.life(&random)
      do {
        try await commit(life, [ServeClient.write(path, 1, exists: false)])
        client.say("made \(path)")
        client.ledger.note { $0.made.insert(path) }
      } catch {
        guard !ServeClient.isVague(error) else { return }
        client.ledger.note { $0.refused.insert(path) }
      }
    }

    /// Reads the shared number in a transaction and writes the next one, until that succeeds.
    private mutating func add() async throws {
      var lost = Data()
      while true {
        try Task.checkCancellation()
        let life = try await client.life(&random)
        do {
          let (transaction, number) = try await read(life, after: lost)
          lost = transaction
          do {
            try await commit(life, [ServeClient.write("shared/s", number + 1)], transaction)
            client.say("added to \(number)")
            return client.ledger.note { $0.added += 1 }
          } catch  where ServeClient.isVague(error) {
            return client.ledger.note { $0.unanswered += 1 }
          }
        } catch {
          guard let error = error as? RPCError else { throw error }
          // The result of a transaction whose server has ended, or that took too long.
          if error.code == .invalidArgument { lost = Data() }
          guard ServeClient.isVague(error) || [.aborted, .invalidArgument].contains(error.code)
          else { throw client.fault("a transaction failed: \(error)") }
          client.say("tries again: \(error)")
          client.ledger.note { $0.counts.attempts += 1 }
          await Task.yield()
        }
      }
    }

    private func read(
      _ life: ServerLife, after lost: Data
    ) async throws -> (transaction: Data, number: Int) {
      let client = client
      let begun = try await client.call(life) {
        try await life.service.beginTransaction(
          request: .with {
            $0.database = ServeClient.database
            if !lost.isEmpty { $0.options.readWrite.retryTransaction = lost }
          }, context: client.context(WireFirestore.Method.BeginTransaction.descriptor))
      }
      do {
        let document = try await client.call(life) {
          try await life.service.getDocument(
            request: .with {
              $0.name = "\(ServeClient.documents)/shared/s"
              $0.transaction = begun.transaction
            }, context: client.context(WireFirestore.Method.GetDocument.descriptor))
        }
        let number = document.fields.first { $0.key == "n" }?.value.integerValue ?? 0
        return (begun.transaction, Int(number))
      } catch let error as RPCError where error.code == .notFound {
        return (begun.transaction, 0)
      }
    }
  }
#endif
