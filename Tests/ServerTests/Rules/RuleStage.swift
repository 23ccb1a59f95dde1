// The stage of the rules' tests: one stored document, one to be stored, a few documents that rules
// may read, and Anna, who makes the request.

#if Server
  import Testing

  @testable import OndolServer

  /// Documents in a dictionary, by their path below the database. It counts reads.
  final class StagedDocuments: RuleDocuments {
    private let stored: [String: RuleValue]
    private let written: [String: RuleValue]
    private(set) var readCount = 0

    /// - Parameter written: the documents after the request's writes, in addition to the stored
    ///   ones.
    init(_ stored: [String: RuleValue], written: [String: RuleValue] = [:]) {
      self.stored = stored
      self.written = written
    }

    func document(at path: [String], afterWrites: Bool) throws -> RuleValue? {
      readCount += 1
      let name = path.dropFirst(3).joined(separator: "/")
      return afterWrites ? written[name] ?? stored[name] : stored[name]
    }
  }

  enum RuleStage {
    /// Tuesday, 3 February 2026, 04:05:06.789 in UTC.
    static let now = RuleTimestamp(seconds: 1_770_091_506, nanoseconds: 789_000_000)

    static let anna = RuleValue.map([
      "uid": .string("anna"),
      "token": .map([
        "email": .string("anna@example.org"), "email_verified": .bool(true), "admin": .bool(true),
        "level": .int(3),
      ]),
    ])

    static let stored: [String: RuleValue] = [
      "owner": .string("anna"), "title": .string("Lamp"), "price": .int(40), "weight": .float(1.5),
      "tags": .list([.string("red"), .string("small")]), "nothing": .null, "isOpen": .bool(true),
      "made": .timestamp(RuleStage.day(2026, 1, 31)), "raw": .bytes([0, 255, 16]),
      "at": .latlng(RuleLatLng(latitude: 52.5, longitude: 13.4)),
      "size": .map(["width": .int(3), "unit": .map(["name": .string("cm")])]),
      "link": .path(["databases", "(default)", "documents", "users", "anna"]),
      "list": .list([.int(1), .int(2), .int(3)]), "big": .int(.max), "nan": .float(.nan),
    ]

    static let updated: [String: RuleValue] = stored.merging([
      "title": .string("Lamp 2"), "price": .int(45), "added": .bool(true),
    ]) { _, new in new }

    static var documents: StagedDocuments {
      StagedDocuments(
        [
          "users/anna": .map(["role": .string("admin"), "friends": .list([.string("ben")])]),
          "users/ben": .map(["role": .string("guest")]),
          "items/lamp": .map(stored),
        ],
        written: ["items/lamp": .map(updated), "logs/1": .map(["by": .string("anna")])])
    }

    static func day(_ year: Int64, _ month: Int64, _ day: Int64) -> RuleTimestamp {
      guard let day = RuleTimestamp(year: year, month: month, day: day) else {
        preconditionFailure("there is no such day")
      }
      return day
    }

    /// A request for `items/lamp`.
    static func request(
      _ method: RuleMethods = .update, as auth: RuleValue = anna,
      path: [String] = ["items", "lamp"]
    ) throws -> RuleRequest {
      let whole = RuleRequest.firestore(path)
      return RuleRequest(
        service: .firestore, method: method, path: whole, auth: auth, time: try #require(now),
        resource: method == .create
          ? .null : .document(RuleDocument(path: whole, data: .map(stored))),
        newResource: [.create, .update].contains(method)
          ? .document(RuleDocument(path: whole, data: .map(updated))) : .null,
        query: .map(["limit": .int(10)]))
    }

    /// A file with one condition for all methods on items.
    static func file(_ condition: String, functions: String = "") -> String {
      """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents {
          \(functions)
          match /items/{item} { allow read, write: if \(condition); }
        }
      }
      """
    }

    /// The digests of the tests are easy to compute by hand: the reversed bytes, and their count.
    static let digests = RuleDigests(
      md5: { $0.reversed() }, sha256: { [UInt8(truncatingIfNeeded: $0.count)] })

    static func verdict(
      _ condition: String, functions: String = "", as auth: RuleValue = anna, explain: Bool = false
    ) throws -> RuleVerdict {
      let rules = try RuleSet(parsing: file(condition, functions: functions))
      return rules.verdict(
        try request(as: auth), documents: documents, digests: digests, explain: explain)
    }
  }
#endif
