// What each function gives: tables of Firestore's documentation and of calendars, and that every
// function refuses a wrong number and wrong types of arguments.

import Testing

@testable import Ondol

@Suite struct PipelineFunctionTests {
  /// The value of a function of constants; nil when it is absent.
  private func value(_ name: String, _ arguments: [Value]) throws -> Value? {
    var compiler = ExpressionCompiler(of: "test")
    let expression = try compiler.compile(.function(name, arguments: arguments))
    let frame = EvaluationFrame(now: .minimum, variables: 0, random: { 7 })
    return try expression.value(in: frame)
  }

  @Test(
    arguments: [
      ("add", [1, 2], 3), ("add", [1, 2.5], 3.5), ("divide", [7, 2], 3), ("divide", [-7, 2], -3),
      ("divide", [7, 2.0], 3.5), ("mod", [-7, 3], -1), ("mod", [7.5, 2], 1.5),
      ("pow", [2, 10], 1_024),
      ("pow", [2, -1], 0.5), ("abs", [-3], 3), ("ceil", [1.2], 2.0), ("floor", [-1.2], -2.0),
      ("round", [4.5], 5.0), ("round", [-4.5], -5.0), ("round", [15, -1], 20),
      ("round", [-15, -1], -20),
      ("round", [1.2345, 2], 1.23), ("trunc", [1.99], 1.0), ("trunc", [-1.999, 1], -1.9),
      ("sqrt", [9], 3.0), ("log", [8, 2], 3.0), ("log10", [1_000], 3.0), ("ln", [1], 0.0),
    ] as [(String, [Value], Value)])
  func `Numbers`(name: String, arguments: [Value], expected: Value) throws {
    let found = try #require(try value(name, arguments))
    if let found = found.double, let expected = expected.double {
      #expect(abs(found - expected) < 1e-12)
    } else {
      #expect(found.isIdentical(to: expected))
    }
  }

  @Test(
    arguments: [
      ("equal", [1, 1.0], true), ("equal", [nil, nil], true),
      ("equal", [.double(.nan), .double(.nan)], true),
      ("not_equal", [1, "1"], true), ("greater_than", [1, 0.0], true),
      ("greater_than", ["a", 0], false),
      ("greater_than", [.double(.nan), 0], false), ("less_than", [.double(.nan), 0], false),
      ("less_than", [nil, 1], false), ("cmp", ["a", 1], 1), ("cmp", [1, 1.0], 0),
      ("cmp", [nil, false], -1),
      ("and", [nil, true], nil), ("and", [nil, false], false), ("or", [nil, true], true),
      ("or", [nil, false], nil), ("nor", [false, false], true), ("xor", [true, true, true], true),
      ("not", [nil], nil), ("conditional", [nil, 1, 2], 2), ("switch_on", [false, 1, 2], 2),
      ("if_null", [nil, 3], 3), ("coalesce", [nil, nil, 4], 4), ("maximum", [1, nil, "a"], "a"),
      ("minimum", [[3, 1, 2]], 1), ("equal_any", [2, [1, 2.0]], true),
      ("not_equal_any", [2, [1]], true),
      ("type", [1], "int64"), ("type", [nil], "null"), ("is_type", [1.5, "float64"], true),
    ] as [(String, [Value], Value)])
  func `Comparisons and logic`(name: String, arguments: [Value], expected: Value) throws {
    #expect(try value(name, arguments) == expected)
  }

  @Test(
    arguments: [
      ("char_length", ["é😀"], 2), ("byte_length", ["é😀"], 6),
      ("string_concat", ["a", "b", "c"], "abc"),
      ("starts_with", ["abc", "ab"], true), ("ends_with", ["abc", "bc"], true),
      ("string_contains", ["abc", "bd"], false), ("like", ["abc", "a%"], true),
      ("like", ["abc", "a_c"], true),
      ("like", ["a%c", "a\\%c"], true), ("like", ["abc", "a\\%c"], false),
      ("like", ["aXbXc", "%b%c"], true),
      ("like", ["ab", "a"], false), ("regex_contains", ["abc", "b+"], true),
      ("regex_match", ["abc", "b"], false),
      ("regex_find", ["a12b3", "[0-9]+"], "12"),
      ("regex_find_all", ["a12b3", "[0-9]+"], ["12", "3"]),
      ("to_upper", ["aé"], "AÉ"), ("trim", [" a \n"], "a"), ("ltrim", ["xxa", "x"], "a"),
      ("rtrim", ["axx", "x"], "a"), ("string_reverse", ["abc"], "cba"),
      ("substring", ["hello", 1, 3], "ell"),
      ("substring", ["hello", -3], "llo"), ("substring", ["hello", 9], ""),
      ("substring", ["hello", -9, 2], "he"),
      ("split", ["a,b,", ","], ["a", "b", ""]), ("split", ["abc", ""], ["a", "b", "c"]),
      ("join", [["a", nil, "b"], "-"], "a-b"), ("string_index_of", ["éab", "b"], 2),
      ("string_index_of", ["a", "b"], -1), ("string_repeat", ["ab", 2], "abab"),
      ("string_replace_all", ["aXbX", "X", "--"], "a--b--"),
      ("string_replace_one", ["aXbX", "X", ""], "abX"),
      ("length", [["k": 1]], 1), ("concat", [[1], [2]], [1, 2]), ("storage_size", ["ab"], 3),
    ] as [(String, [Value], Value)])
  func `Texts`(name: String, arguments: [Value], expected: Value) throws {
    #expect(try value(name, arguments) == expected)
  }

  @Test(
    arguments: [
      ("array_length", [[1, 2]], 2), ("array_concat", [[1], [2], []], [1, 2]),
      ("array_contains", [[1, 2], 2.0], true), ("array_contains_all", [[1, 2], [2, 1]], true),
      ("array_contains_any", [[1, 2], [3]], false), ("array_get", [[1, 2], -1], 2),
      ("array_reverse", [[1, 2]], [2, 1]), ("array_first_n", [[1, 2, 3], 2], [1, 2]),
      ("array_last_n", [[1, 2, 3], 2], [2, 3]), ("array_slice", [[1, 2, 3], 1, 1], [2]),
      ("array_slice", [[1, 2, 3], -2], [2, 3]), ("array_index_of", [[1, 2, 1], 1, "last"], 2),
      ("array_index_of_all", [[1, 2, 1], 1], [0, 2]), ("sum", [[1, 2.5, nil]], 3.5),
      ("maximum_n", [[1, 3, 2], 2], [3, 2]), ("minimum_n", [[1, 3, 2], 2], [1, 2]),
      ("array", [1, nil], [1, nil]), ("map", ["a", 1], ["a": 1]), ("map_get", [["a": 1], "a"], 1),
      ("map_set", [["a": 1], "b", 2], ["a": 1, "b": 2]),
      ("map_remove", [["a": 1, "b": 2], "a"], ["b": 2]),
      ("map_merge", [["a": 1], ["a": 2, "b": 3]], ["a": 2, "b": 3]),
      ("map_keys", [["b": 1, "a": 2]], ["a", "b"]),
      ("map_values", [["b": 1, "a": 2]], [2, 1]),
      ("map_entries", [["a": 2]], [["k": "a", "v": 2]]),
    ] as [(String, [Value], Value)])
  func `Arrays and maps`(name: String, arguments: [Value], expected: Value) throws {
    #expect(try value(name, arguments) == expected)
  }

  private func time(_ microseconds: Int64) throws -> Value {
    .timestamp(try Timestamp(microsecondsSince1970: microseconds))
  }

  /// 2024-02-29 13:14:15.678901, a Thursday.
  private static let leapDay: Int64 = 1_709_212_455_678_901

  @Test(
    arguments: [
      ("second", 1_709_212_455), ("minute", 1_709_212_440), ("hour", 1_709_211_600),
      ("day", 1_709_164_800), ("week", 1_708_819_200), ("isoweek", 1_708_905_600),
      ("week(monday)", 1_708_905_600), ("month", 1_706_745_600), ("quarter", 1_704_067_200),
      ("year", 1_704_067_200), ("isoyear", 1_704_067_200),
    ] as [(String, Int64)])
  func `Times are truncated to the beginning of a unit`(unit: String, seconds: Int64) throws {
    let found = try value("timestamp_trunc", [time(Self.leapDay), .string(unit)])
    #expect(found == (try time(seconds * 1_000_000)))
  }

  @Test(
    arguments: [
      ("year", 2024), ("month", 2), ("day", 29), ("hour", 13), ("minute", 14), ("second", 15),
      ("millisecond", 678), ("microsecond", 678_901), ("dayofweek", 5), ("dayofyear", 60),
      ("quarter", 1), ("isoweek", 9), ("isoyear", 2024), ("week", 8),
    ] as [(String, Int64)])
  func `Parts of a time`(part: String, expected: Int64) throws {
    let found = try value("timestamp_extract", [time(Self.leapDay), .string(part)])
    #expect(found == .integer(expected))
  }

  @Test func `Times move by units, and offsets from UTC move days`() throws {
    let time = try time(Self.leapDay)
    #expect(
      try value("timestamp_add", [time, "day", 1])
        == (try self.time(Self.leapDay + 86_400_000_000)))
    #expect(
      try value("timestamp_diff", [time, self.time(Self.leapDay - 7_300_000_000), "hour"]) == 2)
    #expect(
      try value("timestamp_extract", [time, "day", "+11:00"]) == 1)
    #expect(try value("unix_millis_to_timestamp", [-1]) == (try self.time(-1_000)))
    #expect(try value("timestamp_to_unix_seconds", [self.time(-1)]) == -1)
    #expect(throws: ExpressionFailure.self) {
      try value("timestamp_trunc", [time, "day", "Europe/Vienna"])
    }
    #expect(throws: ExpressionFailure.self) {
      try value("timestamp_add", [time, "day", .integer(.max)])
    }
  }

  @Test func `Every day of a thousand years is the day after the one before it`() {
    var previous = CivilDay(CivilDay.number(year: 1_600, month: 2, day: 28))
    while previous.year < 2_600 {
      let next = CivilDay(previous.number + 1)
      #expect(CivilDay.number(year: next.year, month: next.month, day: next.day) == next.number)
      #expect(next.weekday == (previous.weekday + 1) % 7)
      let isNewMonth = next.day == 1
      if isNewMonth {
        let isLeap =
          previous.year.isMultiple(of: 4) && !previous.year.isMultiple(of: 100)
          || previous.year.isMultiple(of: 400)
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        if previous.number > CivilDay.number(year: 1_600, month: 2, day: 28) {
          #expect(previous.day == lengths[Int(previous.month) - 1])
        }
      } else {
        #expect(next.day == previous.day + 1 && next.month == previous.month)
      }
      previous = next
    }
  }

  @Test func `Vectors and references`() throws {
    let (left, right): (Value, Value) = (.vector([1, 2, 3]), .vector([4, 5, 6]))
    #expect(try value("dot_product", [left, right]) == 32)
    #expect(try value("euclidean_distance", [left, left]) == 0)
    #expect(
      try value("cosine_distance", [left, .vector([2, 4, 6])])?.double.map { abs($0) < 1e-12 }
        == true)
    #expect(try value("vector_length", [left]) == 3)
    #expect(throws: ExpressionFailure.self) { try value("dot_product", [left, .vector([1])]) }
    let reference = Value.reference(try DocumentPath("a/b/c/d"))
    #expect(try value("document_id", [reference]) == "d")
    #expect(try value("collection_id", [reference]) == "c")
    #expect(try value("parent", [reference]) == .reference(try DocumentPath("a/b")))
  }

  @Test(
    arguments: [
      ("add", [.integer(.max), 1]), ("multiply", [.integer(.min), -1]), ("divide", [1, 0]),
      ("mod", [1, 0]), ("abs", [.integer(.min)]), ("pow", [10, 40]), ("sqrt", [-1]), ("ln", [0]),
      ("add", ["a", 1]), ("char_length", [1]), ("substring", ["a", 0, -1]),
      ("string_repeat", ["abc", .integer(.max)]), ("regex_match", ["a", "("]),
      ("array_get", [1, 0]), ("map_get", [1, "a"]), ("and", [1, true]), ("join", [[1], ","]),
      ("switch_on", [false, 1]), ("timestamp_trunc", ["x", "day"]),
    ] as [(String, [Value])])
  func `What cannot be computed is an error`(name: String, arguments: [Value]) {
    #expect(throws: ExpressionFailure.self) { try value(name, arguments) }
  }

  @Test func `Every function takes any values without a trap, and refuses another number of them`()
    throws
  {
    let samples: [Value] = [
      nil, true, 0, -1, .integer(.min), .integer(.max), 0.5, .double(.nan), .double(.infinity), "",
      "a%_\\(", .bytes([1]), [], [1, nil, "a"], [:], ["a": 1], .vector([]), .vector([1]),
      .timestamp(.minimum), .timestamp(.maximum), .reference(try DocumentPath("a/b")),
      .decimal(DecimalValue(Int64.max)), .geoPoint(try GeoPoint(latitude: 1, longitude: 2)),
    ]
    for function in ScalarFunction.allCases {
      let arity = function.arity
      for count in Set([arity.lowerBound, min(arity.upperBound, arity.lowerBound + 1)]) {
        for start in samples.indices {
          let arguments = (0..<count).map { samples[(start + $0 * 7) % samples.count] }
          _ = try? value(function.rawValue, arguments)
        }
      }
      let tooMany = Array(repeating: Value.null, count: arity.upperBound + 1)
      #expect(throws: DatabaseError.self) { try value(function.rawValue, tooMany) }
    }
  }

  @Test func `A pattern that is exponential elsewhere is linear here`() throws {
    let text = String(repeating: "a", count: 20_000)
    #expect(try value("regex_match", [.string(text), "(a*)*(a|aa)+b"]) == false)
    #expect(try value("like", [.string(text), "%a%a%a%a%a%a%b"]) == false)
  }
}
