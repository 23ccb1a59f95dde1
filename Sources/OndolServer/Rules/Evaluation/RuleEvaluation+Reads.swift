// A condition's context: the request, paths that it constructs, and documents that it reads. A text
// in a path is one segment, so that an id with a "/" in it cannot reach another document.

#if Server
  /// A document that was read, and its moment.
  struct RuleRead: Hashable {
    let path: [String]
    let afterWrites: Bool
  }

  extension RuleEvaluation {
    func field(_ field: RuleRequestField) -> RuleValue {
      switch field {
      case .auth: request.auth
      case .method: .string(request.methodName)
      // The documents of a list have different paths.
      case .path: conditions == nil ? .path(request.path) : .unknown(.anything)
      case .query: request.query
      case .resource: request.newResource
      case .time: .timestamp(request.time)
      }
    }

    /// The whole `request`, which hardly any rule uses.
    var wholeRequest: RuleValue {
      // The documents of a list share only parts of it.
      if conditions != nil { return .unknown(.anything) }
      var fields: [String: RuleValue] = [:]
      for name in RuleRequestField.allCases { fields[name.rawValue] = field(name) }
      return .map(fields)
    }

    // MARK: - Paths

    mutating func path(
      _ parts: [RulePathPart<RuleNode>]
    ) throws(RuleFailure) -> RuleValue {
      var segments: [String] = []
      for part in parts {
        switch part {
        case .segment(let text): segments.append(text)
        case .value(let node):
          switch try value(of: node) {
          case .string(let text): segments.append(try segment(text))
          case .path(let inner): segments += inner
          case let other: return try unsuited("$()", other)
          }
        }
      }
      return .path(segments)
    }

    func segment(_ text: String) throws(RuleFailure) -> String {
      guard !text.isEmpty, !text.utf8.contains(UInt8(ascii: "/")) else {
        throw .invalid("a segment of a path is empty or has a /")
      }
      return text
    }

    /// `path("…")`. The first slash may be missing.
    mutating func path(of text: String) throws(RuleFailure) -> RuleValue {
      try charge(text.utf8.count)
      var parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[
        ...]
      if let first = parts.first, first.isEmpty { parts = parts.dropFirst() }
      var segments: [String] = []
      for part in parts { segments.append(try segment(String(Substring(part)))) }
      return .path(segments)
    }

    /// Replaces the segments `$(name)` and `{name}`.
    func bound(
      _ segments: [String], _ fields: [String: RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      var bound: [String] = []
      for text in segments {
        guard let name = text.boundName else {
          bound.append(text)
          continue
        }
        switch fields.field(name) {
        case .string(let value): bound.append(try segment(value))
        case .path(let inner): bound += inner
        case nil: bound.append(text)
        default: throw .wrongType("bind")
        }
      }
      return .path(bound)
    }

    // MARK: - Documents

    /// Returns the document at a path. A missing one fails: Firebase's reference says null, but its
    /// servers deny.
    mutating func existing(
      _ path: RuleValue, afterWrites: Bool
    ) throws(RuleFailure) -> RuleValue {
      let found = try document(at: path, afterWrites: afterWrites)
      if case .null = found { throw .noDocument }
      return found
    }

    /// Returns the document at a path, or null.
    private mutating func document(
      at path: RuleValue, afterWrites: Bool
    ) throws(RuleFailure) -> RuleValue {
      guard case .path(let segments) = path else { return try unsuited("get", path) }
      guard segments.count > 3, segments.count % 2 == 1, segments[0] == "databases",
        segments[2] == "documents"
      else {
        throw .invalid("\(path) is no document: /databases/DATABASE/documents/COLLECTION/ID")
      }
      let read = RuleRead(path: segments, afterWrites: afterWrites)
      if let known = readDocuments[read] { return known }
      guard readDocuments.count < Self.mostDocuments else { throw .tooManyDocuments }
      let fields: RuleValue?
      do {
        fields = try documents.document(at: segments, afterWrites: afterWrites)
      } catch {
        throw .unreadable("\(error)")
      }
      let found = fields.map { RuleValue.document(RuleDocument(path: segments, data: $0)) } ?? .null
      readDocuments[read] = found
      return found
    }

    mutating func exists(
      _ path: RuleValue, afterWrites: Bool
    ) throws(RuleFailure) -> RuleValue {
      switch try document(at: path, afterWrites: afterWrites) {
      case .null: .bool(false)
      case .unknown: .unknown(.anything)
      default: .bool(true)
      }
    }
  }

  extension String {
    /// The name in `$(name)` or `{name}`.
    fileprivate var boundName: String? {
      if hasPrefix("$("), hasSuffix(")") { return String(dropFirst(2).dropLast()) }
      if hasPrefix("{"), hasSuffix("}") { return String(dropFirst().dropLast()) }
      return nil
    }
  }
#endif
