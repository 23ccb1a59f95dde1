// The values that apps may write into fields and read from them, those with a range of their own,
// and the errors that name the mistake.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct FieldContentTests {
  private func encode(_ content: [String: (any FieldContent)?]) throws -> Value {
    try FieldInput.map(FieldInput.fields(content)).plainValue()
  }

  @Test func `Literals, nested and mixed, become values`() throws {
    let nothing: Int? = nil
    let variables: [String: any FieldConvertible] = ["price": 80, "tags": ["oak", "new"]]
    let value = try encode([
      "name": "Chair", "mixed": [1, "two", nil, [3.5, true]], "map": ["a": nil, "b": ["c": 1]],
      "n": ["c": nothing],
      "none": nil, "bytes": Data([1, 2]), "octets": [UInt8]([3]), "variables": variables,
      "empty": [String](), "vector": FieldValue.vector([1, 2]), "big": UInt64(5),
    ])
    let expected: Value = [
      "name": "Chair", "mixed": [1, "two", nil, [3.5, true]], "map": ["a": nil, "b": ["c": 1]],
      "n": ["c": nil],
      "none": nil, "bytes": .bytes([1, 2]), "octets": .bytes([3]),
      "variables": ["price": 80, "tags": ["oak", "new"]], "empty": [], "vector": .vector([1, 2]),
      "big": 5,
    ]
    #expect(value == expected)
    #expect(value["map"]?["b"]?["c"]?.integer == 1)
  }

  @Test func `A value that cannot be a field is named with its place`() throws {
    struct Unfit {}
    let wrong: [([String: (any FieldContent)?], String)] = [
      (["a": ["b": [1, Unfit()] as [Any]] as [String: Any]], "a.b[1]"),
      (["x.y": Decimal.nan], "`x.y`"),
      (["when": Date.distantPast], "when"),
      (["list": [[FieldValue.delete()]]], "list[0][0]"),
    ]
    for (content, field) in wrong {
      do throws(DatabaseError) {
        _ = try FieldInput.fields(content)
        Issue.record("\(field) was taken")
      } catch {
        #expect(error.code == .invalidArgument)
        #expect(error.field == field)
      }
    }
  }

  @Test func `Instructions stay in place, and only in valid places`() throws {
    let fields = try FieldInput.fields([
      "count": FieldValue.increment(-1), "map": ["at": FieldValue.serverTimestamp(), "n": 1],
      "plain": ["n": 1],
    ])
    guard case .operation(.increment(let amount)) = fields["count"]?.form,
      case .map(let inner) = fields["map"]?.form,
      case .operation(.serverTimestamp) = inner["at"]?.form
    else {
      Issue.record("\(fields)")
      return
    }
    #expect(amount.isIdentical(to: -1))
    #expect(fields["plain"]?.value == ["n": 1])
    #expect(throws: DatabaseError.self) { try FieldInput.map(fields).plainValue() }
  }

  @Test func `A union keeps its elements, and throws for a wrong one when it is used`() throws {
    guard case .arrayUnion(let elements) = FieldValue.arrayUnion(["a", 1, nil]).operation else {
      Issue.record("no union")
      return
    }
    #expect(elements == ["a", 1, nil])
    let wrong = FieldValue.arrayRemove([Decimal.nan])
    #expect(throws: DatabaseError.self) { try wrong.encodeField() }
  }

  @Test func `Numbers are read when they fit`() {
    #expect(Int(fieldValue: 3.0) == 3 && Int(fieldValue: 3.5) == nil && Int(fieldValue: "3") == nil)
    #expect(Int8(fieldValue: 128) == nil && UInt8(fieldValue: -1) == nil)
    #expect(Double(fieldValue: 3) == 3 && Float(fieldValue: 0.5) == 0.5)
    #expect(Bool(fieldValue: 1) == nil && Bool(fieldValue: true) == true)
    #expect(Int(fieldValue: .double(.nan)) == nil && Int(fieldValue: .double(.infinity)) == nil)
  }

  @Test func `Containers are read when all their elements are`() {
    #expect([Int](fieldValue: [1, 2.0]) == [1, 2])
    #expect([Int](fieldValue: [1, "a"]) == nil)
    #expect([UInt8](fieldValue: .bytes([1, 2])) == [1, 2])
    #expect([UInt8](fieldValue: [1, 2]) == [1, 2])
    #expect([Int](fieldValue: .bytes([1])) == nil)
    #expect([String: [String]](fieldValue: ["a": ["b"]]) == ["a": ["b"]])
    #expect([String: Value](fieldValue: ["a": nil]) == ["a": nil])
    #expect(Data(fieldValue: .bytes([7])) == Data([7]))
  }
}

@Suite struct TimestampTests {
  @Test func `Nanoseconds are rounded down to microseconds, also before 1970`() throws {
    #expect(try Timestamp(seconds: 1, nanoseconds: 1_999).microsecondsSince1970 == 1_000_001)
    #expect(try Timestamp(seconds: -1, nanoseconds: 999_999_999).microsecondsSince1970 == -1)
    let early = try Timestamp(seconds: -2, nanoseconds: 500_000_900)
    #expect(early.seconds == -2 && early.nanoseconds == 500_000_000)
    #expect(early < (try Timestamp(seconds: -1, nanoseconds: 0)))
  }

  @Test func `The years 1 to 9999 are possible, and nothing else`() throws {
    #expect(try Timestamp(seconds: -62_135_596_800, nanoseconds: 0) == .minimum)
    #expect(try Timestamp(seconds: 253_402_300_799, nanoseconds: 999_999_999) == .maximum)
    for (seconds, nanoseconds) in [
      (-62_135_596_801, 999_999_999), (253_402_300_800, 0), (.max, 0), (.min, 0), (0, -1),
      (0, 1_000_000_000),
    ] as [(Int64, Int32)] {
      #expect(throws: DatabaseError.self) {
        try Timestamp(seconds: seconds, nanoseconds: nanoseconds)
      }
    }
    #expect(throws: DatabaseError.self) { try Timestamp(microsecondsSince1970: .max) }
    for date in [
      Date.distantPast, Date(timeIntervalSince1970: .nan), .init(timeIntervalSince1970: 1e30),
    ] {
      #expect(throws: DatabaseError.self) { try Timestamp(date: date) }
    }
  }

  @Test(arguments: Seeds.first(2))
  func `A timestamp survives a Date, and coding`(seed: UInt64) throws {
    var samples = ValueSamples(seed: seed)
    for _ in 0..<2_000 {
      // Two centuries around 2001.
      let moment = Timestamp(
        unchecked: Int64(samples.random.next() % 6_000_000_000_000_000) - 2_000_000_000_000_000)
      #expect(try Timestamp(date: moment.dateValue()) == moment, "seed \(seed)")
      #expect(
        try Timestamp(seconds: moment.seconds, nanoseconds: moment.nanoseconds) == moment)
    }
    let moment = samples.timestamp()
    let data = try JSONEncoder().encode(moment)
    #expect(try JSONDecoder().decode(Timestamp.self, from: data) == moment)
    let outside = Data(#"{"seconds": 999999999999, "nanoseconds": 0}"#.utf8)
    #expect(throws: (any Error).self) { try JSONDecoder().decode(Timestamp.self, from: outside) }
  }

  @Test func `A place must be on Earth`() {
    for (latitude, longitude) in [
      (91.0, 0.0), (-90.1, 0), (0, 180.5), (0, -181), (.nan, 0), (0, .nan),
    ] {
      #expect(throws: DatabaseError.self) {
        try GeoPoint(latitude: latitude, longitude: longitude)
      }
    }
  }
}

@Suite struct DatabaseErrorTests {
  @Test func `Every error of the engine has a code and keeps its place`() {
    let errors: [(EngineError, DatabaseError.Code, String)] = [
      (.notADatabase(path: "p", reason: "r"), .dataLoss, "p"),
      (.corrupt(file: "f", offset: 12, reason: "r"), .dataLoss, "byte 12"),
      (.inUse(path: "p", holder: "process 7"), .failedPrecondition, "process 7"),
      (.closed, .failedPrecondition, "closed"),
      (.needsNewerVersion(file: "f", reason: "r"), .unimplemented, "f"),
      (.io(operation: "write", file: "f", offset: 3, errno: 28), .resourceExhausted, "f"),
      (.io(operation: "open", file: "f", offset: nil, errno: 13), .permissionDenied, "f"),
      (.io(operation: "write", file: "f", offset: 3, errno: 5), .internal, "f"),
      (.poisoned(reason: "r"), .unavailable, "opened again"),
      (.outOfStep(reason: "r"), .unavailable, "opened again"),
      (.stale, .aborted, "repeat"), (.tooLarge(bytes: 9, limit: 8), .resourceExhausted, "9"),
      (.invalid(reason: "why"), .invalidArgument, "why"),
    ]
    for (engine, code, text) in errors {
      let error = DatabaseError(engine)
      #expect(error.code == code)
      #expect(error.description.contains(text), "\(error)")
    }
  }

  @Test func `A code has Firestore's number, and is easy to catch`() {
    #expect(DatabaseError.Code.alreadyExists.rawValue == 6)
    #expect(DatabaseError.Code.allCases.map(\.rawValue) == Array(0...16))
    do throws(DatabaseError) {
      throw DatabaseError(.alreadyExists, "there is one", path: "c/d")
    } catch let error where error.code == .alreadyExists {
      #expect(error.path == "c/d")
    } catch {
      Issue.record("\(error)")
    }
  }

  // Foundation's text for an error without one of its own is "The operation could not be completed.
  // (Ondol.DatabaseError error 1.)", which people once saw in alerts.
  @Test func `Its localized description says what happened, and the suggestion is separate`() {
    let error = DatabaseError(
      .notFound, "there is no document to update", suggestion: "setData makes one", path: "a/b")
    #expect(error.localizedDescription == "there is no document to update (a/b)")
    #expect(error.recoverySuggestion == "setData makes one")
    #expect(
      "\(error)" == "notFound: there is no document to update; setData makes one (a/b)")
  }

  @Test func `A database that is open elsewhere says where, and since when`() {
    func message(_ holder: String) -> String {
      DatabaseError(EngineError.inUse(path: "p", holder: holder)).message
    }
    #expect(
      message("process 7, since 1795321231181338")
        == "p is open already in process 7, since 2026-11-22 04:20:31 UTC")
    // Whatever the file contains, because it belongs to another program.
    for text in ["this process", "process 7, since noon", "x, since -1", "x, since 9\(Int64.max)"] {
      #expect(message(text) == "p is open already (\(text))")
    }
    #expect(message("") == "p is open already")
  }

  @Test func `An error's place grows from the inside out`() {
    let error = DatabaseError(.invalidArgument, "no").within(index: 2).within(field: "a.b")
      .within(index: 0).within(field: "c")
    #expect(error.field == "c[0].`a.b`[2]")
    #expect(error.at(path: "x/y").description == "invalidArgument: no (x/y, field c[0].`a.b`[2])")
    #expect(error.at(path: "x/y").at(path: "z").path == "x/y")
  }
}
