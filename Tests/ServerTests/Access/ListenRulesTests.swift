// Rules over listen streams: what a listener is shown, and when it ends.

#if Server
  import GRPCCore
  import Ondol
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf
  import Testing

  @testable import OndolServer

  @Suite struct ListenRulesTests {
    private typealias Stage = RuledStage
    private static let member = """
      match /rooms/{room} { allow read: if true; }
      match /rooms/{room}/texts/{text} {
        allow read: if request.auth.uid in
          get(/databases/$(database)/documents/rooms/$(room)).data.members;
      }
      match /items/{item} { allow read: if resource.data.owner == request.auth.uid; }
      """

    /// A stream of one caller.
    private final class Listener: Sendable {
      private let requests: AsyncThrowingStream<WireListenRequest, any Error>.Continuation
      private let answers: Answers<WireListenResponse>
      private let task: Task<Void, Never>

      init(_ stage: RuledStage, as user: String) {
        let (incoming, requests) = AsyncThrowingStream.makeStream(
          of: WireListenRequest.self, throwing: (any Error).self)
        let answers = Answers<WireListenResponse>()
        (self.requests, self.answers) = (requests, answers)
        task = Task {
          do {
            try await stage.with(user) {
              try await stage.service.listen(
                request: RPCAsyncSequence(wrapping: incoming),
                response: RPCWriter(wrapping: answers), context: Stage.context)
            }
            answers.end()
          } catch {
            answers.end(error)
          }
        }
      }

      /// Everything that has been received.
      var all: [WireListenResponse] { answers.elements }

      deinit {
        requests.finish()
        task.cancel()
      }

      func add(_ id: Int32, query: (inout WireStructuredQuery) -> Void, below parent: String? = nil)
      {
        requests.yield(
          .with {
            $0.database = Stage.name
            $0.addTarget.targetID = id
            $0.addTarget.query.parent = parent.map { "\(Stage.documents)/\($0)" } ?? Stage.documents
            query(&$0.addTarget.query.structuredQuery)
          })
      }

      func add(_ id: Int32, document path: String) {
        requests.yield(
          .with {
            $0.database = Stage.name
            $0.addTarget.targetID = id
            $0.addTarget.documents.documents = ["\(Stage.documents)/\(path)"]
          })
      }

      /// Reads until a moment, or until a target ends. Returns the documents that were shown, and
      /// the targets that ended, with their codes.
      func next() async throws -> (shown: [String], ended: [Int32: Int32]) {
        var (shown, ended) = ([String](), [Int32: Int32]())
        for try await answer in answers.stream {
          switch answer.responseType {
          case .documentChange(let change):
            shown.append(
              change.document.name.split(separator: "/").suffix(2).joined(separator: "/"))
          case .targetChange(let change):
            if change.targetChangeType == .remove {
              for id in change.targetIds { ended[id] = change.cause.code }
              return (shown, ended)
            }
            if change.targetChangeType == .noChange { return (shown, ended) }
          default: break
          }
        }
        return (shown, ended)
      }
    }

    private static let denied = Int32(RPCError.Code.permissionDenied.rawValue)

    private func stage() async throws -> RuledStage {
      let stage = try await RuledStage(Self.member)
      try await stage.database.document("items/a").setData(["owner": "ann"])
      try await stage.database.document("items/b").setData(["owner": "ben"])
      try await stage.database.document("rooms/r").setData(["members": ["ann", "ben"]])
      try await stage.database.document("rooms/r/texts/t").setData(["text": "x"])
      return stage
    }

    private static func texts(_ query: inout WireStructuredQuery) { Stage.from(&query, "texts") }

    @Test func `A target that may not be seen is refused, and shows nothing`() async throws {
      let stage = try await stage()
      let listener = Listener(stage, as: "ann")
      listener.add(2) { Stage.from(&$0, "items") }
      var step = try await listener.next()
      #expect(step.shown.isEmpty && step.ended == [2: Self.denied])
      listener.add(4, document: "items/b")
      step = try await listener.next()
      #expect(step.shown.isEmpty && step.ended == [4: Self.denied])
      listener.add(6) {
        Stage.from(&$0, "items")
        $0.where = Stage.equal("owner", "ann")
      }
      step = try await listener.next()
      #expect(step.shown == ["items/a"] && step.ended.isEmpty)
    }

    @Test func `A document that changes hands ends its target, and others go on`() async throws {
      let stage = try await stage()
      let listener = Listener(stage, as: "ann")
      listener.add(2, document: "items/a")
      #expect(try await listener.next().shown == ["items/a"])
      listener.add(4, query: Self.texts, below: "rooms/r")
      #expect(try await listener.next().shown == ["texts/t"])
      try await stage.database.document("items/a").setData(["owner": "ben"])
      let step = try await listener.next()
      #expect(step.shown.isEmpty && step.ended == [2: Self.denied])
      try await stage.database.document("rooms/r/texts/u").setData(["text": "y"])
      while true {
        let step = try await listener.next()
        #expect(step.ended.isEmpty)
        if step.shown == ["texts/u"] { break }
      }
    }

    /// The texts stay as they are, and Ann leaves the room.
    @Test func `A document that the rules ask for ends what it no longer allows`() async throws {
      let stage = try await stage()
      let (ann, ben) = (Listener(stage, as: "ann"), Listener(stage, as: "ben"))
      for listener in [ann, ben] {
        listener.add(2, query: Self.texts, below: "rooms/r")
        #expect(try await listener.next().shown == ["texts/t"])
      }
      let batch = stage.database.batch()
      try batch.setData(["members": ["ben"]], forDocument: stage.database.document("rooms/r"))
      try batch.setData(["text": "secret"], forDocument: stage.database.document("rooms/r/texts/s"))
      try await batch.commit()
      let step = try await ann.next()
      #expect(step.shown.isEmpty && step.ended == [2: Self.denied])
      #expect(try await ben.next().shown == ["texts/s"])
    }

    @Test func `Rules that are deployed hold for open streams`() async throws {
      let stage = try await stage()
      let listener = Listener(stage, as: "ann")
      listener.add(2, document: "items/a")
      #expect(try await listener.next().shown == ["items/a"])
      listener.add(4, query: Self.texts, below: "rooms/r")
      #expect(try await listener.next().shown == ["texts/t"])
      try await stage.deploy("match /rooms/{d=**} { allow read: if true; }")
      #expect(try await listener.next().ended == [2: Self.denied])
      try await stage.database.document("rooms/r/texts/u").setData(["text": "y"])
      while true {
        let step = try await listener.next()
        #expect(step.ended.isEmpty)
        if step.shown == ["texts/u"] { break }
      }
    }

    /// Random changes of documents, rooms and memberships: a listener never sees a text that its
    /// reader may not see as of the same commit, and ends as soon as there is one.
    @Test(arguments: Seeds.first(4))
    func `What a listener is shown was allowed as of its moment`(seed: UInt64) async throws {
      let stage = try await stage()
      let listener = Listener(stage, as: "ann")
      listener.add(2, query: Self.texts, below: "rooms/r")
      _ = try await listener.next()
      let writer = Task {
        var random = SeededRandom(seed: seed)
        for number in 0..<200 {
          let isMember = random.below(12) > 0
          let batch = stage.database.batch()
          try batch.setData(
            ["members": isMember ? ["ann"] : ["ben"], "n": number],
            forDocument: stage.database.document("rooms/r"))
          try batch.setData(
            ["isSecret": !isMember], forDocument: stage.database.document("rooms/r/texts/t"))
          try await batch.commit()
          if random.below(3) == 0 { await Task.yield() }
          if !isMember { return true }
        }
        return false
      }
      let endsForSure = try await writer.value
      if !endsForSure {
        try await stage.database.document("rooms/r").setData(["members": ["ben"]])
      }
      var isOver = false
      while !isOver { isOver = try await listener.next().ended[2] == Self.denied }
      for answer in listener.all {
        for field in answer.documentChange.document.fields where field.key == "isSecret" {
          #expect(!field.value.booleanValue, "seed \(seed)")
        }
      }
    }
  }
#endif
