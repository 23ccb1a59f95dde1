// Each construct of the language, once where it allows and once where it denies. The stage is in
// RuleStage. A condition that fails denies like a false one.

#if Server
  import Testing

  @testable import OndolServer

  /// A construct: a condition that allows, and one that denies.
  struct RuleRow: Sendable, CustomTestStringConvertible {
    let allows: String
    let denies: String

    init(_ allows: String, _ denies: String) {
      self.allows = allows
      self.denies = denies
    }

    var testDescription: String { allows }
  }

  @Suite struct RuleTableTests {
    @Test(arguments: operators + numbers + texts + patterns)
    func `A scalar construct allows and denies`(row: RuleRow) throws { try check(row) }

    @Test(arguments: collections + maps + times + others)
    func `A construct of composed values allows and denies`(row: RuleRow) throws { try check(row) }

    @Test(arguments: requests + reads + absorption)
    func `A construct of the request allows and denies`(row: RuleRow) throws { try check(row) }

    @Test func `The table has at least 150 rows`() {
      let rows =
        Self.operators + Self.numbers + Self.texts + Self.patterns + Self.collections + Self.maps
        + Self.times + Self.others + Self.requests + Self.reads + Self.absorption
      #expect(rows.count >= 150)
    }

    private func check(_ row: RuleRow) throws {
      let allowed = try RuleStage.verdict(row.allows, explain: true)
      #expect(allowed.isAllowed, "\(allowed)")
      let denied = try RuleStage.verdict(row.denies, explain: true)
      #expect(!denied.isAllowed, "\(denied)")
    }

    static let operators = [
      RuleRow("true", "false"),
      RuleRow("!false", "!true"),
      RuleRow("!!true", "!null"),
      RuleRow("true && true", "true && false"),
      RuleRow("true && true && true", "true && true && false"),
      RuleRow("false || true", "false || false"),
      RuleRow("false || false || true", "false || false || false"),
      RuleRow("true || false && false", "(true || false) && false"),
      RuleRow("1 == 1", "1 == 2"),
      RuleRow("1 == 1.0", "1 == 1.5"),
      RuleRow("1 != 2", "1 != 1"),
      RuleRow("1 != '1'", "1 == '1'"),
      RuleRow("null == null", "null == false"),
      RuleRow("1 < 2", "2 < 2"),
      RuleRow("2 <= 2", "3 <= 2"),
      RuleRow("3 > 2.5", "2 > 2.5"),
      RuleRow("2 >= 2", "1 >= 2"),
      RuleRow("'a' < 'b'", "'b' < 'a'"),
      RuleRow("'Z' < 'a'", "'a' < 'Z'"),
      RuleRow("1 < 2 == true", "1 < 2 == false"),
      RuleRow("1 + 1 in [2]", "1 + 1 in [3]"),
      RuleRow("1 is int == true", "1 is float == true"),
      RuleRow("true ? true : false", "false ? true : false"),
      RuleRow("(1 > 2 ? 'a' : 'b') == 'b'", "(1 > 2 ? 'a' : 'b') == 'a'"),
      RuleRow("false ? false : false ? false : true", "true ? false : true ? true : true"),
      RuleRow("1 in [1, 2]", "3 in [1, 2]"),
      RuleRow("'a' in {'a': 1}", "'b' in {'a': 1}"),
      RuleRow("'a' in ['a'].toSet()", "'b' in ['a'].toSet()"),
      RuleRow("!(1 in [2])", "!(2 in [2])"),
      // A text does not contain texts: `matches` is for that.
      RuleRow("'a' in ['abc', 'a']", "'a' in 'abc'"),
    ]

    static let numbers = [
      RuleRow("1 + 2 == 3", "1 + 2 == 4"),
      RuleRow("5 - 2 - 1 == 2", "5 - 2 - 1 == 4"),
      RuleRow("2 * 3 + 1 == 7", "2 * 3 + 1 == 8"),
      RuleRow("7 / 2 == 3", "7 / 2 == 3.5"),
      RuleRow("7 / 2.0 == 3.5", "7 / 0 == 0"),
      RuleRow("-7 / 2 == -3", "-7 / 2 == -4"),
      RuleRow("7 % 3 == 1", "7 % 0 == 0"),
      RuleRow("7.5 % 2 == 1.5", "7.5 % 2 == 1"),
      RuleRow("-(3) == 0 - 3", "-('a') == 0"),
      RuleRow("resource.data.big > 0", "resource.data.big + 1 > 0"),
      RuleRow("resource.data.big - 1 > 0", "resource.data.big * 2 > 0"),
      RuleRow("resource.data.big + 1.0 > 0", "-resource.data.big - 2 < 0"),
      RuleRow("1e3 == 1000", "1.5e-1 == 1.5"),
      RuleRow("int('42') == 42", "int('4x') == 4"),
      RuleRow("int(2.9) == 2", "int(2.9) == 3"),
      RuleRow("int(-2.9) == -2", "int(1e30) == 0"),
      RuleRow("float('1.5') == 1.5", "float('one') == 1.0"),
      RuleRow("float(2) is float", "float(2) is int"),
      RuleRow("string(1) == '1'", "string(1) == '1.0'"),
      RuleRow("string(2.0) == '2.0'", "string(2.0) == '2'"),
      RuleRow("string(true) == 'true'", "string(null) == ''"),
      RuleRow("bool('true')", "bool('yes')"),
      RuleRow("bool('false') == false", "bool(1)"),
      RuleRow("math.abs(-3) == 3", "math.abs(-3) == -3"),
      RuleRow("math.abs(-1.5) == 1.5", "math.abs('a') == 1"),
      RuleRow("math.ceil(2.1) == 3", "math.ceil(2.1) == 2"),
      RuleRow("math.floor(2.9) == 2", "math.floor(2.9) == 3"),
      RuleRow("math.round(2.5) == 3", "math.round(2.4) == 3"),
      RuleRow("math.sqrt(4) == 2.0", "math.sqrt(4) == 4"),
      RuleRow("math.pow(2, 10) == 1024", "math.pow(2, 10) == 20"),
      RuleRow("math.isNaN(resource.data.nan)", "math.isNaN(1)"),
      RuleRow("math.isInfinite(1.0 / 0)", "math.isInfinite(1)"),
      RuleRow("resource.data.nan != resource.data.nan", "resource.data.nan < 1"),
    ]

    static let texts = [
      RuleRow("'a' + 'b' == 'ab'", "'a' + 1 == 'a1'"),
      RuleRow("\"it's\" == 'it\\'s'", "'a' == 'A'"),
      RuleRow("'\\u00e9' == 'é'", "'e' == 'é'"),
      // Two spellings of one letter are two texts.
      RuleRow("'e\\u0301' == 'e\\u0301'", "'e\\u0301' == '\\u00e9'"),
      RuleRow("'tab\\there'.size() == 8", "'tab\\there'.size() == 9"),
      RuleRow("'abc'.size() == 3", "'abc'.size() == 2"),
      RuleRow("'äöü'.size() == 3", "'äöü'.size() == 6"),
      RuleRow("'abc'[0] == 'a'", "'abc'[3] == ''"),
      RuleRow("'abc'[1:3] == 'bc'", "'abc'[1:4] == 'bc'"),
      RuleRow("'abc'[3:3] == ''", "'abc'[-1:1] == 'a'"),
      RuleRow("'AbC'.lower() == 'abc'", "'AbC'.lower() == 'ABC'"),
      RuleRow("'AbC'.upper() == 'ABC'", "'AbC'.upper() == 'AbC'"),
      RuleRow("' a b '.trim() == 'a b'", "' a b '.trim() == ' a b '"),
      RuleRow("'a,b'.split(',') == ['a', 'b']", "'a,b'.split(';') == ['a', 'b']"),
      RuleRow("'a1b22c'.split('[0-9]+') == ['a', 'b', 'c']", "'a1b'.split('(') == ['a']"),
      RuleRow("'a,,b'.split(',').size() == 3", "'a,,b'.split(',').size() == 2"),
      RuleRow("'aXbX'.replace('X', '-') == 'a-b-'", "'aXbX'.replace('X', '-') == 'a-bX'"),
      RuleRow("'anna@a.com'.replace('@.*[.]com', '') == 'anna'", "'a'.replace('a', 1) == '1'"),
      RuleRow("'é'.toUtf8().size() == 2", "'é'.toUtf8().size() == 1"),
      RuleRow("['a', 'b'].join('-') == 'a-b'", "['a', 'b'].join('-') == 'ab'"),
      RuleRow("[1, true, 'x'].join('') == '1truex'", "[[1]].join('') == '1'"),
    ]

    static let patterns = [
      RuleRow("'abc'.matches('abc')", "'abcd'.matches('abc')"),
      RuleRow("'abc'.matches('a.c')", "'abc'.matches('a.')"),
      RuleRow("'aaa'.matches('a*')", "'aab'.matches('a*')"),
      RuleRow("'aaa'.matches('a{3}')", "'aa'.matches('a{3}')"),
      RuleRow("'aaaa'.matches('a{2,}')", "'a'.matches('a{2,}')"),
      RuleRow("'ab'.matches('a?b')", "'aab'.matches('a?b')"),
      RuleRow("'cat'.matches('cat|dog')", "'cow'.matches('cat|dog')"),
      RuleRow("'x7'.matches('[a-z][0-9]')", "'X7'.matches('[a-z][0-9]')"),
      RuleRow("'x'.matches('[^0-9]')", "'7'.matches('[^0-9]')"),
      RuleRow("'12'.matches('\\\\d+')", "'1a'.matches('\\\\d+')"),
      RuleRow("'a_1'.matches('\\\\w+')", "'a-1'.matches('\\\\w+')"),
      RuleRow("'ABC'.matches('(?i)abc')", "'ABC'.matches('abc')"),
      RuleRow("'a.b'.matches('a\\\\.b')", "'axb'.matches('a\\\\.b')"),
      RuleRow("'abab'.matches('(ab)+')", "'aba'.matches('(ab)+')"),
      RuleRow("'Ä'.matches('\\\\p{Lu}')", "'ä'.matches('\\\\p{Lu}')"),
      RuleRow("'abc'.matches('^abc$')", "'abc'.matches('^bc$')"),
      RuleRow(
        "'a@b.org'.matches('[^@ ]+@[^@ ]+[.][a-z]{2,}')",
        "'a@b'.matches('[^@ ]+@[^@ ]+[.][a-z]{2,}')"),
      RuleRow("'a'.matches('' + 'a')", "'a'.matches('(' + 'a')"),
      RuleRow("!'a\\nb'.matches('a.b')", "'a\\nb'.matches('a.b')"),
    ]
  }
#endif
