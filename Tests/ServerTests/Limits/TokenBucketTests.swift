// Buckets against a model that counts tokens, and the memory of callers, which is bounded and must
// not be a way out of a limit.

#if Server
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct TokenBucketTests {
    /// A bucket as it is told of: tokens that come evenly, and go with each request.
    private struct Model {
      let allowance: Int
      var tokens: Int
      var time = 0

      init(_ allowance: Int) { (self.allowance, tokens) = (allowance, allowance) }

      mutating func pass(to now: Int) {
        tokens = min(allowance, tokens + (now - time) * allowance / 60)
        time = now
      }
    }

    @Test(arguments: Seeds.first(50))
    func `A bucket allows what it has, and fills in a minute`(seed: UInt64) {
      var random = SeededRandom(seed: seed)
      // Whole tokens in whole seconds, so both count exactly.
      let allowance = 60 * (1 + random.below(20))
      var buckets = TokenBuckets<Int>(allowance: allowance, most: 100)
      var models = (0..<4).map { _ in Model(allowance) }
      var now = 0
      for _ in 0..<2_000 {
        now += random.below(4) == 0 ? random.below(20) : 0
        let key = random.below(4)
        models[key].pass(to: now)
        switch random.below(4) {
        case 0:
          let cost = Int(random.below(allowance))
          buckets.charge(cost, to: key, at: Double(now))
          models[key].tokens -= cost
        case 1:
          let isAllowed = models[key].tokens > 0
          #expect((buckets.ask(key, at: Double(now)) == .allowed) == isAllowed, "seed \(seed)")
        default:
          let cost = 1 + Int(random.below(allowance / 2))
          let isAllowed = models[key].tokens >= cost
          let answer = buckets.take(cost, of: key, at: Double(now))
          #expect((answer == .allowed) == isAllowed, "seed \(seed)")
          if isAllowed { models[key].tokens -= cost }
        }
      }
    }

    @Test func `A refusal says when there is room, and whether it is the first`() {
      var buckets = TokenBuckets<String>(allowance: 60, most: 10)
      #expect(buckets.take(60, of: "ann", at: 100) == .allowed)
      guard case .refused(let seconds, true) = buckets.take(of: "ann", at: 100) else {
        Issue.record("an empty bucket allows nothing")
        return
      }
      #expect(seconds == 1)
      for _ in 0..<5 {
        guard case .refused(_, false) = buckets.take(of: "ann", at: 100.5) else {
          Issue.record("only the first refusal is the first")
          return
        }
      }
      #expect(buckets.take(of: "ann", at: 101) == .allowed)
      guard case .refused(_, true) = buckets.take(of: "ann", at: 101) else {
        Issue.record("after an allowed request the next refusal is a first one")
        return
      }
      #expect(buckets.take(of: "ben", at: 101) == .allowed)
    }

    @Test func `A stream of strangers makes no caller forgotten who has used more`() {
      let most = 64
      var buckets = TokenBuckets<Int>(allowance: 60, most: most)
      for caller in 0..<(most / 2 - 1) { _ = buckets.take(60, of: caller, at: 0) }
      for stranger in 1_000..<20_000 {
        _ = buckets.take(of: stranger, at: 0)
        #expect(buckets.count <= most)
      }
      for caller in 0..<(most / 2 - 1) {
        #expect(buckets.take(of: caller, at: 0) != .allowed, "\(caller)")
      }
    }

    @Test func `Callers who could use everything again are forgotten first`() {
      var buckets = TokenBuckets<Int>(allowance: 60, most: 10)
      for caller in 0..<10 { _ = buckets.take(of: caller, at: 0) }
      #expect(buckets.count == 10)
      _ = buckets.take(of: 10, at: 2)
      #expect(buckets.count == 1)
    }
  }
#endif
