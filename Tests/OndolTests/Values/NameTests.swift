// The rules for the names of collections, documents and fields, each with examples on both sides.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct NameTests {
  @Test func `Paths have one form, and allow one slash at each end`() throws {
    #expect(try DocumentPath("/users/alice/").segments == ["users", "alice"])
    #expect(try DocumentPath("a/b/c/d").description == "a/b/c/d")
    #expect(try DocumentPath("a/b/c/d").collection.parent == DocumentPath("a/b"))
    #expect(try CollectionPath("a").parent == nil)
    #expect(try CollectionPath("a/b/c").collectionID == "c")
    #expect(try DocumentPath("a/b").collection("c").document("d") == DocumentPath("a/b/c/d"))
    #expect(try DocumentPath("a/b").documentID == "b")
  }

  @Test func `An id is any UTF-8 that the rules do not refuse`() throws {
    let names = [
      "a", " ", "a.b@c.kr", "\0", "é", "e\u{301}", "...", "_", "__", "___", "__a", "a__", "한글",
      "\u{301}", String(repeating: "x", count: 1_500), "😀", "~*[]`\\",
    ]
    for name in names {
      #expect(try CollectionPath("c").document(name).documentID.utf8.elementsEqual(name.utf8))
      #expect(try DocumentPath("c/\(name)").documentID.utf8.elementsEqual(name.utf8))
    }
    let refused = ["", ".", "..", "a/b", "____", "__a__", String(repeating: "é", count: 751)]
    for name in refused {
      #expect(throws: DatabaseError.self, "\(name)") { try CollectionPath("c").document(name) }
      #expect(throws: DatabaseError.self, "\(name)") { try DocumentPath("c/d").collection(name) }
    }
  }

  @Test func `A wrong path says what is wrong with it`() {
    let refused: [(path: String, message: String)] = [
      ("", "must not be empty"), ("/", "must not be empty"), ("//", "must not"),
      ("a//b", "must not contain \"//\""), ("//a/b", "must not contain \"//\""),
      ("a/b//", "must not contain \"//\""), ("a", "even number of segments"),
      ("a/b/c", "even number of segments"), ("a/.", "\".\" and \"..\""),
      ("a/__x__", "reserved"),
      (Array(repeating: "a/b", count: 101).joined(separator: "/"), "100 deep"),
    ]
    for (path, message) in refused {
      do throws(DatabaseError) {
        _ = try DocumentPath(path)
        Issue.record("\(path) was taken")
      } catch {
        #expect(error.code == .invalidArgument)
        #expect(error.description.contains(message), "\(error)")
      }
    }
    #expect(throws: DatabaseError.self) { try CollectionPath("a/b") }
    #expect(throws: Never.self) {
      try DocumentPath(Array(repeating: "a/b", count: 100).joined(separator: "/"))
    }
  }

  @Test func `Paths are equal when their bytes are`() throws {
    let composed = try DocumentPath("c/é")
    let decomposed = try DocumentPath("c/e\u{301}")
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed, try DocumentPath("/c/é")]).count == 2)
    #expect(decomposed < composed)
    #expect(try DocumentPath("a/b") < DocumentPath("a/b/c/d"))
  }

  @Test func `A slash before a combining mark still separates`() throws {
    #expect(try DocumentPath("a/\u{301}").segments == ["a", "\u{301}"])
  }

  @Test func `A field path is split at its dots, outside backticks`() throws {
    let paths: [(String, [String])] = [
      ("a", ["a"]), ("a.b.c", ["a", "b", "c"]), ("foo-bar.1", ["foo-bar", "1"]),
      ("`a.b`.c", ["a.b", "c"]), ("sizes.`5.5`", ["sizes", "5.5"]), ("`\\``", ["`"]),
      ("`\\\\`", ["\\"]), ("`~*/[]`", ["~*/[]"]), ("é.한", ["é", "한"]), ("` `", [" "]),
      ("a\\b", ["a\\b"]),
    ]
    for (path, names) in paths {
      #expect(try FieldPath(path).names() == names, "\(path)")
      #expect(try FieldPath(FieldPath(names).description).names() == names)
    }
    #expect(try FieldPath(["a.b", "~"]).names() == ["a.b", "~"])
    #expect(FieldPath(["a.b", "c", "1"]).description == "`a.b`.c.`1`")
    let literal: FieldPath = "a.b"
    #expect(literal == FieldPath(["a", "b"]))
    #expect(literal != FieldPath(["a.b"]))
  }

  @Test func `A wrong field path throws when it is used`() {
    let refused = [
      "", ".", ".a", "a.", "a..b", "a~", "*", "a/b", "a[0]", "]", "a`b", "`a", "`a`b", "`a\\",
      "``", "__a__", "a.__b__", "`__a__`", String(repeating: "x", count: 1_501),
      Array(repeating: "abcd", count: 301).joined(separator: "."),
    ]
    for path in refused {
      let field = FieldPath(path)
      #expect(throws: DatabaseError.self, "\(path)") { try field.validate() }
    }
    #expect(throws: DatabaseError.self) { try FieldPath([String]()).validate() }
    #expect(throws: DatabaseError.self) { try FieldPath(["a", ""]).validate() }
  }

  @Test func `The document's id is not a field, but may be an order`() {
    #expect(FieldPath.documentID() == "__name__")
    #expect(throws: Never.self) { try FieldPath.documentID().validate() }
    #expect(throws: DatabaseError.self) { try FieldPath.documentID().names() }
    #expect(throws: DatabaseError.self) { try FieldPath("a.__name__").validate() }
  }

  @Test(arguments: Seeds.first(2))
  func `A field path's text form leads back to the same names`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<1_000 {
      let names = (0...samples.random.below(3)).map { _ in
        "x" + samples.text(maximumLength: 4) + ["`", "\\", ".", ""][samples.random.below(4)]
      }
      let path = FieldPath(names)
      #expect(FieldPath(path.description) == path, "seed \(seed): \(names)")
    }
  }
}
