// Values survive the way over the wire and back, and impossible ones are refused with their place.

#if Server
  import GRPCCore
  import Ondol
  import OndolMapping
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf
  import Testing

  @testable import OndolServer

  @Suite struct MappingTests {
    private let name = DatabaseName(project: "p", id: "(default)")
    private var values: ValueMapping { ValueMapping(database: name) }

    @Test func `Every value comes back from the wire as it was`() throws {
      var random = SeededRandom(seed: Seeds.first(1)[0])
      for _ in 0..<5_000 {
        let value = try Value.random(&random)
        let bytes: [UInt8] = try values.wire(value).serializedBytes()
        let back = try values.value(WireValue(serializedBytes: bytes))
        #expect("\(back)" == "\(value)")
        #expect(back == value)
      }
    }

    @Test(arguments: [
      "", "projects", "projects/p/databases", "projects//databases/d/documents/c/a",
      "projects/p/databases/d/documents", "projects/p/databases/(default)/documents/c",
      "projects/p/databases/(default)/documents/c//", "projects/p/databases/(default)/docs/c/a",
      "/projects/p/databases/(default)/documents/c/a", "projects/p/databases/other/documents/c/a",
      "projects/p/databases/(default)/documents/__c__/a",
    ])
    func `An invalid document name is refused`(text: String) {
      let error = #expect(throws: DatabaseError.self) { try name.path(of: text) }
      #expect(error?.code == .invalidArgument)
    }

    @Test func `A document's name is its path in its database`() throws {
      let text = "projects/p/databases/(default)/documents/c/a/d/b"
      let path = try name.path(of: text)
      #expect(path.segments == ["c", "a", "d", "b"])
      #expect(name.name(of: path) == text)
    }

    @Test func `A field in two spellings is refused`() throws {
      let entries: [WireEntry] = ["caf\u{e9}", "cafe\u{301}"].map { key in
        .with {
          $0.key = key
          $0.value.integerValue = 1
        }
      }
      let error = #expect(throws: DatabaseError.self) { try values.fields(entries) }
      #expect(error?.code == .invalidArgument)
    }

    @Test func `Values nested without end are refused before they are followed`() throws {
      var value = WireValue()
      value.integerValue = 1
      for _ in 0..<5_000 {
        let inner = value
        value = .with { $0.arrayValue.values = [inner] }
      }
      let error = #expect(throws: DatabaseError.self) { try values.value(value) }
      #expect(error?.code == .invalidArgument)
    }

    @Test func `A mask keeps the named fields, and nothing else`() throws {
      let fields: [String: Value] = [
        "a": 1, "b": ["c": 2, "d": ["e": 3]], "f.g": 4,
      ]
      let mask = try FieldMask(.with { $0.fieldPaths = ["b.d.e", "`f.g`", "missing", "a.x"] })
      #expect(Value.map(mask.part(of: fields)) == ["b": ["d": ["e": 3]], "f.g": 4])
    }

    @Test func `The codes of errors are Firestore's numbers`() {
      for code in DatabaseError.Code.allCases where code != .ok {
        #expect(ErrorMapping.code(code).rawValue == code.rawValue, "\(code)")
      }
    }

    @Test func `Errors have the words that clients look at`() {
      let name = DatabaseName(project: "p", id: "d")
      let missing = ErrorMapping.rpcError(
        DatabaseError(.notFound, "there is no document to update", path: "c/a"), in: name)
      #expect(missing.message == "No document to update: projects/p/databases/d/documents/c/a")
      let there = ErrorMapping.rpcError(
        DatabaseError(.alreadyExists, "there is a document already", path: "c/a"), in: name)
      #expect(there.message == "Document already exists: projects/p/databases/d/documents/c/a")
    }

    @Test func `Writes have the protocol's meaning`() throws {
      let update = try values.write(
        .with {
          $0.update.name = "\(name.documents)/c/a"
          $0.update.fields = values.wire(["a": 1])
          $0.updateMask.fieldPaths = ["a", "b"]
          $0.currentDocument.exists = true
        })
      #expect("\(update.path)" == "c/a")
      #expect(throws: DatabaseError.self) { try values.write(WireWrite()) }
      #expect(throws: DatabaseError.self) {
        try values.write(.with { $0.transform.document = "c/a" })
      }
    }
  }
#endif
