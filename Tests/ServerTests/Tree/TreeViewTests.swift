// Random histories of the tree, with clients that listen to random queries through sessions: after
// each write their views, made of messages alone, are what the model of the tree says.

#if Server
  import Ondol
  import OndolEngine
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct `Views of clients` {
    @Test func `Whatever is written, each view is what its query gives`() async throws {
      var counts = (writes: 0, listens: 0, pushes: 0)
      for seed in Seeds.first(60) {
        let stage = try await TreeStage.inMemory()
        var draw = TreeDraw(seed: seed, stage.database)
        let (session, client) = stage.session(seed)
        var queries: [(ModelTreeQuery, tag: Int64?)] = []
        for number in 0..<30 {
          let query = draw.query()
          let isAsked = number < 12 && draw.random.chance(1, in: 2)
          if isAsked, let json = query.wire, !query.path.contains("x.y@z") {
            let tag: Int64? = json == "{}" ? nil : Int64(number + 1)
            if tag != nil || !queries.contains(where: { $0.0.path == query.path && $0.tag == nil })
            {
              queries.append((query, tag))
              let path = query.path.joined(separator: "/")
              let answer = await client.listen(
                session, path, query: tag == nil ? nil : json, tag: tag)
              // The database refuses some bounds that the model takes.
              if answer?.status == "ok" { counts.listens += 1 } else { queries.removeLast() }
            }
          }
          try await draw.write()
          counts.writes += 1
          if draw.random.chance(1, in: 3) { continue }
          try await stage.poll(session)
          for (query, tag) in queries {
            let path = query.path.joined(separator: "/")
            let expected = query.result(in: draw.model).value
            #expect(
              "\(client.view(path, tag: tag).asJSON)" == "\(expected.asJSON)",
              "SEED=\(seed), \(path) \(query.wire ?? "")")
          }
        }
        counts.pushes += client.state.withLock { $0.pushes.count }
        try await stage.database.close()
      }
      print("Views: \(counts.writes) writes, \(counts.listens) listens, \(counts.pushes) pushes")
      #expect(counts.pushes > 3 * counts.listens && counts.listens > 60)
    }
  }

  extension Value {
    /// JSON has one kind of number.
    fileprivate var asJSON: Value {
      switch self {
      case .double(let number): Int64(exactly: number).map { .integer($0) } ?? self
      case .map(let fields): .map(fields.mapValues(\.asJSON))
      default: self
      }
    }
  }

  extension ModelTreeQuery {
    /// The query as the protocol has it; nil when it cannot say it.
    fileprivate var wire: String? {
      var fields: [String: Value] = [:]
      switch order {
      case .priority: break
      case .key: fields["i"] = .string(".key")
      case .value: fields["i"] = .string(".value")
      case .child(let way):
        if way.contains("x.y@z") { return nil }
        fields["i"] = .string(way.joined(separator: "/"))
      }
      if let start {
        (fields["sp"], fields["sin"]) = (start.value, .boolean(start.isIncluded))
        fields["sn"] = start.key.map { .string($0) }
      }
      if let end {
        (fields["ep"], fields["ein"]) = (end.value, .boolean(end.isIncluded))
        fields["en"] = end.key.map { .string($0) }
      }
      if let limit {
        (fields["l"], fields["vf"]) = (.integer(Int64(limit)), .string(isFromEnd ? "r" : "l"))
      }
      return TreeText.json(.map(fields))
    }
  }
#endif
