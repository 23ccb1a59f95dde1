// How much each of many callers has used lately: a token bucket for each, as the moment at which it
// will be full again. Callers come from outside, so the number of remembered ones is bounded. A
// bucket that is full says nothing, and is forgotten first.

#if Server
  /// Token buckets by caller. A bucket holds the allowance of one minute and fills evenly.
  struct TokenBuckets<Key: Hashable & Sendable>: Sendable {
    /// What the bucket says of one request.
    enum Outcome: Sendable, Hashable {
      case allowed
      /// Refused, for that many seconds. `isFirst` is true for the first refusal since the last
      /// request that was allowed.
      case refused(seconds: Double, isFirst: Bool)
    }

    private struct Bucket: Sendable {
      /// When it will be full, in seconds of the caller's clock.
      var fullAt: Double
      var hasRefused = false
    }

    /// The seconds in which an empty bucket fills.
    private static var span: Double { 60 }
    /// What rounding may add to a time.
    private static var tolerance: Double { 1e-7 }

    /// What a bucket holds.
    let allowance: Int
    private let most: Int
    private var buckets: [Key: Bucket] = [:]

    /// - Parameters:
    ///   - allowance: what a caller may use in a minute, 1 or more.
    ///   - most: the number of callers to remember, 2 or more.
    init(allowance: Int, most: Int) {
      self.allowance = max(1, allowance)
      self.most = max(2, most)
    }

    /// The number of remembered callers.
    var count: Int { buckets.count }

    /// Asks for a request, and takes its cost out of the bucket if it is allowed.
    ///
    /// - Complexity: O(1) amortized.
    mutating func take(_ cost: Int = 1, of key: Key, at now: Double) -> Outcome {
      let bucket = buckets[key]
      let start = max(bucket?.fullAt ?? now, now)
      let end = start + seconds(for: cost)
      guard end - now <= Self.span + Self.tolerance else {
        let isFirst = bucket?.hasRefused != true
        keep(Bucket(fullAt: start, hasRefused: true), of: key, at: now)
        return .refused(seconds: end - now - Self.span, isFirst: isFirst)
      }
      keep(Bucket(fullAt: end), of: key, at: now)
      return .allowed
    }

    /// Asks whether the bucket has anything left, and takes nothing.
    mutating func ask(_ key: Key, at now: Double) -> Outcome {
      guard let bucket = buckets[key], isEmpty(bucket, at: now) else { return .allowed }
      buckets[key]?.hasRefused = true
      return .refused(seconds: bucket.fullAt - now - Self.span, isFirst: !bucket.hasRefused)
    }

    /// Takes what has been used already. The bucket may then owe.
    mutating func charge(_ cost: Int, to key: Key, at now: Double) {
      let bucket = buckets[key]
      let wasEmpty = bucket.map { isEmpty($0, at: now) } ?? false
      keep(
        Bucket(
          fullAt: max(bucket?.fullAt ?? now, now) + seconds(for: cost),
          hasRefused: wasEmpty && bucket?.hasRefused == true), of: key, at: now)
    }

    private func isEmpty(_ bucket: Bucket, at now: Double) -> Bool {
      bucket.fullAt - now >= Self.span - Self.tolerance
    }

    private func seconds(for cost: Int) -> Double {
      Double(max(0, cost)) * Self.span / Double(allowance)
    }

    private mutating func keep(_ bucket: Bucket, of key: Key, at now: Double) {
      if buckets.count >= most, buckets[key] == nil { forget(at: now) }
      buckets[key] = bucket
    }

    /// Forgets full buckets. If more than half of the callers are left, also forgets those that
    /// have used least, so that half are left.
    private mutating func forget(at now: Double) {
      buckets = buckets.filter { $0.value.fullAt > now }
      guard buckets.count > most / 2 else { return }
      let half = most / 2
      let order = buckets.values.map(\.fullAt).sorted()
      let least = order[order.count - half]
      var room = half - order.count { $0 > least }
      buckets = buckets.filter { _, bucket in
        guard bucket.fullAt == least else { return bucket.fullAt > least }
        room -= 1
        return room >= 0
      }
    }
  }
#endif
