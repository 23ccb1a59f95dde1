// What a call wants of the object that it is about: generations, metagenerations, and tags. They
// are checked in the transaction that changes the object.

#if Server
  import Ondol

  /// The conditions of a call.
  struct ObjectConditions: Sendable, Hashable {
    /// The generation that the call is about; nil for the one that there is.
    var generation: Int64?
    /// 0 for no object.
    var generationMatch: Int64?
    var generationNotMatch: Int64?
    var metagenerationMatch: Int64?
    var metagenerationNotMatch: Int64?

    static let names = [
      "ifGenerationMatch", "ifGenerationNotMatch", "ifMetagenerationMatch",
      "ifMetagenerationNotMatch",
    ]

    init() {}

    /// - Parameters:
    ///   - query: the parameters of a call.
    ///   - source: whether to read the conditions on the source of a copy.
    /// - Throws: for a number that is none.
    init(_ query: [String: String], ofSource source: Bool = false) throws(StorageFailure) {
      func number(_ name: String) throws(StorageFailure) -> Int64? {
        guard let text = query[name] else { return nil }
        guard let number = byteCount(text) else { throw .invalid("\(name) is not a number") }
        return Int64(number)
      }
      let infix = source ? "Source" : ""
      generation = try number(source ? "sourceGeneration" : "generation")
      generationMatch = try number("if\(infix)GenerationMatch")
      generationNotMatch = try number("if\(infix)GenerationNotMatch")
      metagenerationMatch = try number("if\(infix)MetagenerationMatch")
      metagenerationNotMatch = try number("if\(infix)MetagenerationNotMatch")
    }

    /// Refuses an object that is not as the conditions say.
    ///
    /// - Parameter isRead: whether the call only reads: then a client that has the object already
    ///   is told so.
    func check(_ object: StorageMetadata?, isRead: Bool = false) throws(StorageFailure) {
      let generation = object?.generation ?? 0
      if let generationMatch, generationMatch != generation { throw .unmet }
      if let metagenerationMatch, metagenerationMatch != object?.metageneration ?? 0 {
        throw .unmet
      }
      if let generationNotMatch, generationNotMatch == generation {
        throw isRead ? .notModified : .unmet
      }
      if let metagenerationNotMatch, metagenerationNotMatch == object?.metageneration ?? 0 {
        throw isRead ? .notModified : .unmet
      }
    }

    /// Whether the object is the one that the call is about.
    func isMeant(_ object: StorageMetadata) -> Bool {
      generation == nil || generation == object.generation
    }
  }

  extension StorageMetadata {
    /// Differs whenever bytes or metadata do.
    var tag: String { "\(generation)-\(metageneration)" }

    /// Refuses to answer when the client has what it asks for, or has another one in mind.
    func check(tagsIn headers: [String: String]) throws(StorageFailure) {
      func names(_ header: String) -> Bool {
        header.split(separator: ",").contains { part in
          var part = part.drop { $0 == " " }
          if part.hasPrefix("W/") { part = part.dropFirst(2) }
          let text = part.filter { $0 != "\"" && $0 != " " }
          return text == "*" || text == tag
        }
      }
      if let header = headers["if-match"], !names(header) { throw .unmet }
      if let header = headers["if-none-match"], names(header) { throw .notModified }
    }
  }
#endif
