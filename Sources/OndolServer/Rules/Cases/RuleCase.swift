// A test case for a rules file: one request as JSON, with the expected decision of the rules. A
// file of them, one a line, tests an app's rules before they are deployed.
//
//   {"as": "ann", "method": "update", "path": "items/lamp", "resource": {"owner": "ann"},
//    "new": {"owner": "bob"}, "allow": false}

#if Server
  import Foundation

  /// A request, and whether the rules should allow it.
  struct RuleCase: Sendable {
    let request: RuleRequest
    let documents: CaseDocuments
    let isAllowed: Bool
  }

  /// The documents that exist in a case.
  struct CaseDocuments: RuleDocuments, Sendable {
    let before: [[String]: RuleValue]
    /// The documents that differ after the request's writes.
    let after: [[String]: RuleValue]

    func document(at path: [String], afterWrites: Bool) -> RuleValue? {
      let found = (afterWrites ? after[path] : nil) ?? before[path]
      if case .null? = found { return nil }
      return found
    }
  }

  extension RuleCase: Decodable {
    private enum Key: String, CodingKey, CaseIterable {
      case name, user = "as", method, path, bucket, resource, new, documents, after, time, query
      case allow
    }

    private struct AnyKey: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }

      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
      let all = try decoder.container(keyedBy: AnyKey.self)
      for key in all.allKeys where Key(rawValue: key.stringValue) == nil {
        throw DecodingError.dataCorruptedError(
          forKey: key, in: all,
          debugDescription: "a case has \(Key.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      let values = try decoder.container(keyedBy: Key.self)
      let name = try values.decode(String.self, forKey: .method)
      guard let method = RuleMethods.byName[name], method.rawValue.nonzeroBitCount == 1 else {
        throw DecodingError.dataCorruptedError(
          forKey: .method, in: values, debugDescription: "get, list, create, update or delete")
      }
      let segments = Self.segments(try values.decode(String.self, forKey: .path))
      let bucket = try values.decodeIfPresent(String.self, forKey: .bucket)
      let path =
        bucket.map { RuleRequest.storage(segments, bucket: $0) } ?? RuleRequest.firestore(segments)
      func resource(_ key: Key) throws -> RuleValue {
        guard let fields = try values.decodeIfPresent(RuleValue.self, forKey: key),
          !fields.isNull
        else { return .null }
        return bucket == nil ? .document(RuleDocument(path: path, data: fields)) : fields
      }
      let now = RuleTimestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000))
      let time = try values.decodeIfPresent(RuleValue.self, forKey: .time)
      guard let moment = time?.timestamp ?? now else {
        throw DecodingError.dataCorruptedError(
          forKey: .time, in: values, debugDescription: "a moment has the form {\"$time\": \"…\"}")
      }
      request = RuleRequest(
        service: bucket == nil ? .firestore : .storage, method: method, path: path,
        auth: try Self.auth(try values.decodeIfPresent(RuleValue.self, forKey: .user)),
        time: moment, resource: try resource(.resource), newResource: try resource(.new),
        query: try values.decodeIfPresent(RuleValue.self, forKey: .query) ?? .null)
      documents = CaseDocuments(
        before: try Self.documents(values, .documents), after: try Self.documents(values, .after))
      isAllowed = try values.decode(Bool.self, forKey: .allow)
    }

    private static func documents(
      _ values: KeyedDecodingContainer<Key>, _ key: Key
    ) throws -> [[String]: RuleValue] {
      var documents: [[String]: RuleValue] = [:]
      for (path, fields) in try values.decodeIfPresent([String: RuleValue].self, forKey: key) ?? [:]
      {
        documents[RuleRequest.firestore(segments(path))] = fields
      }
      return documents
    }

    private static func segments(_ path: String) -> [String] {
      path.split(separator: "/").map(String.init)
    }

    /// A user, by uid alone, or by uid and token.
    private static func auth(_ user: RuleValue?) throws -> RuleValue {
      switch user {
      case nil, .null?: .null
      case .string(let uid)?: .map(["uid": .string(uid), "token": .map(["sub": .string(uid)])])
      case let user?: user
      }
    }
  }

  extension RuleValue {
    var timestamp: RuleTimestamp? {
      if case .timestamp(let time) = self { time } else { nil }
    }
  }

  extension RuleValue: Decodable {
    /// Reads JSON's values, and `{"$time": …}`, `{"$bytes": …}` in base64, and `{"$latlng": [a,
    /// b]}`.
    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if value.decodeNil() {
        self = .null
      } else if let bool = try? value.decode(Bool.self) {
        self = .bool(bool)
      } else if let number = try? value.decode(Int64.self) {
        self = .int(number)
      } else if let number = try? value.decode(Double.self) {
        self = .float(number)
      } else if let text = try? value.decode(String.self) {
        self = .string(text)
      } else if let list = try? value.decode([RuleValue].self) {
        self = .list(list)
      } else {
        self = try Self.typed(try value.decode([String: RuleValue].self), decoder)
      }
    }

    private static func typed(
      _ map: [String: RuleValue], _ decoder: any Decoder
    ) throws -> RuleValue {
      guard map.count == 1, let (name, value) = map.first, name.hasPrefix("$") else {
        return .map(map)
      }
      switch (name, value) {
      case ("$time", .string(let text)):
        if let date = try? Date(text, strategy: .iso8601),
          let time = RuleTimestamp(milliseconds: Int64(date.timeIntervalSince1970 * 1_000))
        {
          return .timestamp(time)
        }
      case ("$bytes", .string(let text)):
        if let data = Data(base64Encoded: text) { return .bytes([UInt8](data)) }
      case ("$latlng", .list(let parts)):
        let degrees = parts.compactMap(\.number)
        if degrees.count == 2 {
          return .latlng(RuleLatLng(latitude: degrees[0], longitude: degrees[1]))
        }
      default: break
      }
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "\(name) is not written so"))
    }

    private var number: Double? {
      switch self {
      case .int(let number): Double(number)
      case .float(let number): number
      default: nil
      }
    }
  }
#endif
