// Calls about single documents and lists of them.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  extension FirestoreService {
    func getDocument(
      request: WireGetDocumentRequest, context: ServerContext
    ) async throws -> WireDocument {
      try await answer(request.name) { call in
        let path = try call.name.path(of: request.name)
        let mask = request.hasMask ? try FieldMask(request.mask) : nil
        let reading = try await call.reading(request.consistency(call.values))
        let document = try await reading.documents(at: [path])[0]
        try await call.access.rules?.check(get: [document], at: reading.moment)
        guard document.exists else { throw Self.missing(request.name) }
        return call.values.wire(document, mask: mask)
      }
    }

    private static func missing(_ name: String) -> RPCError {
      RPCError(code: .notFound, message: "Document \"\(name)\" not found.")
    }

    func batchGetDocuments(
      request: WireBatchGetDocumentsRequest, response: RPCWriter<WireBatchGetDocumentsResponse>,
      context: ServerContext
    ) async throws {
      try await answer(request.database) { call in
        var (paths, seen) = ([DocumentPath](), Set<DocumentPath>())
        for name in request.documents {
          let path = try call.name.path(of: name)
          if seen.insert(path).inserted { paths.append(path) }
        }
        let mask = request.hasMask ? try FieldMask(request.mask) : nil
        let reading = try await call.reading(request.consistency(call.values))
        let time = call.values.wire(reading.moment.time)
        if reading.isNew, let transaction = reading.transaction {
          try await response.write(.with { $0.transaction = Data(transaction.id.bytes) })
        }
        // Missing documents come last, as in Firestore.
        var missing: [WireBatchGetDocumentsResponse] = []
        for group in paths.inGroups(of: Self.documentsOfGroup) {
          var found: [WireBatchGetDocumentsResponse] = []
          let documents = try await reading.documents(at: Array(group))
          try await call.access.rules?.check(get: documents, at: reading.moment)
          for document in documents {
            var answer = WireBatchGetDocumentsResponse()
            answer.readTime = time
            if document.exists {
              answer.found = call.values.wire(document, mask: mask)
              found.append(answer)
            } else {
              answer.missing = "\(call.name.documents)/\(document.reference.path)"
              missing.append(answer)
            }
          }
          try await response.write(contentsOf: found)
        }
        try await response.write(contentsOf: missing)
      }
    }

    /// The number of documents that are read and sent together.
    private static let documentsOfGroup = 256

    func createDocument(
      request: WireCreateDocumentRequest, context: ServerContext
    ) async throws -> WireDocument {
      try await answer(request.parent) { call in
        let (_, parent) = try DatabaseName.parent(request.parent)
        let collection = call.database.collection(
          try parent.collection(request.collectionID))
        let id = request.documentID
        let reference = id.isEmpty ? collection.document() : collection.document(id)
        let path = try DocumentPath(
          segments: try CollectionPath(collection.path).segments + [
            reference.documentID
          ])
        let mask = request.hasMask ? try FieldMask(request.mask) : nil
        let document = try await call.write(
          ClientWrite(
            path: path, .replace(try call.values.fields(request.document.fields)),
            condition: .exists(false)))
        return call.values.wire(document, mask: mask)
      }
    }

    func updateDocument(
      request: WireUpdateDocumentRequest, context: ServerContext
    ) async throws -> WireDocument {
      try await answer(request.document.name) { call in
        let write = try call.values.write(
          .with {
            $0.update = request.document
            if request.hasUpdateMask { $0.updateMask = request.updateMask }
            if request.hasCurrentDocument { $0.currentDocument = request.currentDocument }
          })
        let mask = request.hasMask ? try FieldMask(request.mask) : nil
        return call.values.wire(try await call.write(write), mask: mask)
      }
    }

    func deleteDocument(
      request: WireDeleteDocumentRequest, context: ServerContext
    ) async throws -> Google_Protobuf_Empty {
      try await answer(request.name) { call in
        let write = try call.values.write(
          .with {
            $0.delete = request.name
            if request.hasCurrentDocument { $0.currentDocument = request.currentDocument }
          })
        _ = try await call.database.commit([write], call.access)
        call.noteChanges([write])
        return Google_Protobuf_Empty()
      }
    }

    // MARK: - Lists

    func listDocuments(
      request: WireListDocumentsRequest, context: ServerContext
    ) async throws -> WireListDocumentsResponse {
      try await answerWhileWaitedFor(request.parent) { call in
        let (_, parent) = try DatabaseName.parent(request.parent)
        let collection = try parent.collection(request.collectionID)
        let mask = request.hasMask ? try FieldMask(request.mask) : nil
        let reading = try await call.reading(request.consistency(call.values))
        let size = try Self.pageSize(request.pageSize)
        if request.showMissing {
          try call.access.requireEverything()
          guard request.orderBy.isEmpty else {
            throw DatabaseError(
              .invalidArgument, "a list with missing documents is in the order of their names")
          }
          return try await Self.list(
            collection, evenMissing: reading, mask, size, after: request.pageToken, call)
        }
        let query = try Self.ordered(call.database.collection(collection), request.orderBy)
        let list = try await call.ruled(
          .with {
            $0.from = [.with { $0.collectionID = request.collectionID }]
            $0.limit = .init(Int32(clamping: size))
          }, below: parent, at: reading.moment)
        var page = query.limit(to: size)
        if !request.pageToken.isEmpty {
          guard let cursor = QueryCursor(request.pageToken) else { throw Self.wrongPage }
          page = page.start(after: cursor)
        }
        var documents: [DocumentSnapshot] = []
        try await reading.documents(of: page) { documents += $0 }
        try await list?.check(documents, at: reading.moment)
        return try .with {
          $0.documents = documents.map { call.values.wire($0, mask: mask) }
          if documents.count == size, let last = documents.last {
            $0.nextPageToken = try query.cursor(at: last).description
          }
        }
      }
    }

    /// Lists also missing documents that have others below them.
    private static func list(
      _ collection: CollectionPath, evenMissing reading: Reading, _ mask: FieldMask?, _ size: Int,
      after id: String, _ call: Call
    ) async throws -> WireListDocumentsResponse {
      let ids = try await reading.moment.documentIDs(
        in: collection, after: id.isEmpty ? nil : id, atMost: size)
      let paths = ids.map { DocumentPath(unchecked: collection.segments + [$0]) }
      let documents = try await reading.documents(at: paths)
      return .with {
        $0.documents = documents.map { document in
          document.exists
            ? call.values.wire(document, mask: mask)
            : .with { $0.name = "\(call.name.documents)/\(document.reference.path)" }
        }
        if ids.count == size, let last = ids.last { $0.nextPageToken = last }
      }
    }

    /// Returns the collection in an order in SQL's form: `price desc, name`.
    private static func ordered(
      _ collection: CollectionReference, _ text: String
    ) throws(DatabaseError) -> Query {
      var query = collection.query
      guard !text.isEmpty else { return query }
      for part in text.split(separator: ",") {
        let words = part.split(separator: " ")
        let direction = words.count == 2 ? words[1].lowercased() : "asc"
        guard words.count == 1 || words.count == 2, ["asc", "desc"].contains(direction) else {
          throw DatabaseError(
            .invalidArgument, "\"\(text)\" is no order, as in \"price desc, name\"")
        }
        query = query.order(by: FieldPath(String(words[0])), descending: direction == "desc")
      }
      return query
    }

    func listCollectionIds(
      request: WireListCollectionIdsRequest, context: ServerContext
    ) async throws -> WireListCollectionIdsResponse {
      try await answerWhileWaitedFor(request.parent) { call in
        try call.access.requireEverything()
        let (_, parent) = try DatabaseName.parent(request.parent)
        let size = try Self.pageSize(request.pageSize)
        let reading = try await call.reading(request.consistency(call.values))
        let all = try await reading.moment.collectionIDs(below: parent)
        let rest = all.drop { !Self.isAfter($0, request.pageToken) }
        return .with {
          $0.collectionIds = Array(rest.prefix(size))
          if rest.count > size, let last = $0.collectionIds.last { $0.nextPageToken = last }
        }
      }
    }

    private static func isAfter(_ id: String, _ token: String) -> Bool {
      token.isEmpty || token.utf8.lexicographicallyPrecedes(id.utf8)
    }

    /// The number of documents of a page when a request states none.
    private static let usualPage = 300
    private static let mostOfPage = 10_000

    static func pageSize(_ size: Int32) throws(DatabaseError) -> Int {
      guard size >= 0 else {
        throw DatabaseError(.invalidArgument, "a page has \(size) elements")
      }
      return size == 0 ? usualPage : min(Int(size), mostOfPage)
    }

    static let wrongPage = DatabaseError(
      .invalidArgument, "the page token is none that this server has given for this list")
  }

  extension Array {
    /// Returns the elements in groups of a size.
    fileprivate func inGroups(of count: Int) -> [ArraySlice<Element>] {
      stride(from: 0, to: self.count, by: count).map {
        self[$0..<Swift.min($0 + count, self.count)]
      }
    }
  }
#endif
