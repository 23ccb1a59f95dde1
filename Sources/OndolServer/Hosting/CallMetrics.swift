// The server's counts of its calls, in the format that Prometheus reads.

#if Server
  import Synchronization

  /// What has been counted of one method's calls.
  struct CallCounts: Sendable {
    let method: String
    /// Calls that have ended, by status.
    let ended: [String: Int]
    let open: Int
    /// The time of the ended calls together.
    let seconds: Double
    let received: Int
    let sent: Int
  }

  /// Counts calls by method and result.
  final class CallMetrics: Sendable {
    /// The upper bounds of the histogram's buckets, in seconds.
    private static let bounds = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10]

    private struct Method: Sendable {
      var statuses: [String: Int] = [:]
      /// Calls by the first bound that they met, and those that met none.
      var buckets = Array(repeating: 0, count: bounds.count + 1)
      var seconds = 0.0
      var open = 0
      /// Bytes of messages.
      var received = 0
      var sent = 0
    }

    private let methods = Mutex<[String: Method]>([:])
    private let targets = Atomic(0)

    /// Records the start of a call.
    func begin(_ method: String) {
      methods.withLock { $0[method, default: Method()].open += 1 }
    }

    /// Records the end of a call.
    func end(
      _ method: String, status: String, after duration: Duration, received: Int, sent: Int
    ) {
      let seconds = duration / .seconds(1)
      let bucket = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
      methods.withLock { methods in
        methods[method, default: Method()].open -= 1
        methods[method]?.statuses[status, default: 0] += 1
        methods[method]?.buckets[bucket] += 1
        methods[method]?.seconds += seconds
        methods[method]?.received += received
        methods[method]?.sent += sent
      }
    }

    /// Adds a change to the number of listened targets.
    func countTargets(_ change: Int) {
      targets.add(change, ordering: .relaxed)
    }

    /// The listened targets of streams.
    var targetCount: Int { targets.load(ordering: .relaxed) }

    /// The counts of each method, in the order of the names.
    var counts: [CallCounts] {
      methods.withLock { $0 }.sorted { $0.key < $1.key }.map { name, method in
        CallCounts(
          method: name, ended: method.statuses, open: method.open, seconds: method.seconds,
          received: method.received, sent: method.sent)
      }
    }

    /// All metrics in Prometheus's text format.
    var text: String {
      let methods = methods.withLock { $0 }.sorted { $0.key < $1.key }
      var lines = [
        "# HELP ondol_calls_total Calls that ended.", "# TYPE ondol_calls_total counter",
      ]
      for (name, method) in methods {
        for (status, count) in method.statuses.sorted(by: { $0.key < $1.key }) {
          lines.append("ondol_calls_total{method=\"\(name)\",status=\"\(status)\"} \(count)")
        }
      }
      lines += ["# HELP ondol_calls_open Calls under way.", "# TYPE ondol_calls_open gauge"]
      for (name, method) in methods {
        lines.append("ondol_calls_open{method=\"\(name)\"} \(method.open)")
      }
      lines += [
        "# HELP ondol_call_received_bytes_total Bytes of messages that calls received.",
        "# TYPE ondol_call_received_bytes_total counter",
      ]
      for (name, method) in methods {
        lines.append("ondol_call_received_bytes_total{method=\"\(name)\"} \(method.received)")
      }
      lines += [
        "# HELP ondol_call_sent_bytes_total Bytes of messages that calls sent.",
        "# TYPE ondol_call_sent_bytes_total counter",
      ]
      for (name, method) in methods {
        lines.append("ondol_call_sent_bytes_total{method=\"\(name)\"} \(method.sent)")
      }
      lines += [
        "# HELP ondol_call_seconds How long calls took.", "# TYPE ondol_call_seconds histogram",
      ]
      for (name, method) in methods { lines += Self.histogram(name, method) }
      lines += [
        "# HELP ondol_listen_targets Queries and documents listened to.",
        "# TYPE ondol_listen_targets gauge",
        "ondol_listen_targets \(targets.load(ordering: .relaxed))",
      ]
      return lines.joined(separator: "\n") + "\n"
    }

    private static func histogram(_ name: String, _ method: Method) -> [String] {
      var (lines, sum) = ([String](), 0)
      for (bound, count) in zip(bounds, method.buckets) {
        sum += count
        lines.append("ondol_call_seconds_bucket{method=\"\(name)\",le=\"\(bound)\"} \(sum)")
      }
      let all = method.buckets.reduce(0, +)
      return lines + [
        "ondol_call_seconds_bucket{method=\"\(name)\",le=\"+Inf\"} \(all)",
        "ondol_call_seconds_sum{method=\"\(name)\"} \(method.seconds)",
        "ondol_call_seconds_count{method=\"\(name)\"} \(all)",
      ]
    }
  }
#endif
