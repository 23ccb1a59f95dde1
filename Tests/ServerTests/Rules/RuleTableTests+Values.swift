// The table's rows for composed values, the request, and failures.

#if Server
  @testable import OndolServer

  extension RuleTableTests {
    static let collections = [
      RuleRow("[1, 'a', null].size() == 3", "[].size() == 1"),
      RuleRow("[1, 2][1] == 2", "[1, 2][2] == 2"),
      RuleRow("[1, 2, 3][0:2] == [1, 2]", "[1, 2, 3][0:2] == [1, 2, 3]"),
      RuleRow("[1, [2]] == [1, [2]]", "[1, 2] == [2, 1]"),
      RuleRow("[1, 2].hasAll([2])", "[1, 2].hasAll([2, 3])"),
      RuleRow("[1, 2].hasAny([2, 3])", "[1, 2].hasAny([3])"),
      RuleRow("['a', 'a', 'b'].hasOnly(['a', 'b', 'c'])", "['a', 'b'].hasOnly(['a', 'c'])"),
      RuleRow("[1].hasAll([1.0].toSet())", "[1].hasAll(1)"),
      RuleRow("[1].concat([2]) == [1, 2]", "[1].concat(2) == [1, 2]"),
      RuleRow("[1, 2, 1].removeAll([1]) == [2]", "[1, 2, 1].removeAll([1]) == [2, 1]"),
      RuleRow("[1, 1, 2].toSet().size() == 2", "[1, 1, 2].toSet().size() == 3"),
      RuleRow("[1, 2].toSet() == [2, 1].toSet()", "[1, 2].toSet() == [1, 2]"),
      RuleRow("['a', 'b'].toSet().hasAll(['a'])", "['a', 'b'].toSet().hasAll(['a', 'c'])"),
      RuleRow("['a'].toSet().hasAny(['a', 'c'])", "['a'].toSet().hasAny(['c'])"),
      RuleRow("['a'].toSet().hasOnly(['a', 'b'])", "['c'].toSet().hasOnly(['a', 'b'])"),
      RuleRow(
        "['a', 'b'].toSet().difference(['a', 'c'].toSet()) == ['b'].toSet()",
        "['a', 'b'].toSet().difference(['a']) == ['b'].toSet()"),
      RuleRow(
        "['a', 'b'].toSet().intersection(['b'].toSet()) == ['b'].toSet()",
        "['a', 'b'].toSet().intersection(['c'].toSet()).size() == 1"),
      RuleRow(
        "['a'].toSet().union(['b'].toSet()).size() == 2",
        "['a'].toSet().union(['a'].toSet()).size() == 2"),
      RuleRow("resource.data.tags is list", "resource.data.tags.toSet() is list"),
      RuleRow("['a'].toSet() is set", "['a'] is set"),
      RuleRow("'red' in resource.data.tags", "'blue' in resource.data.tags"),
      RuleRow("resource.data.tags[0] == 'red'", "resource.data.tags['red'] == 'red'"),
    ]

    static let maps = [
      RuleRow("{'a': 1}.a == 1", "{'a': 1}.b == 1"),
      RuleRow("{'a': 1}['a'] == 1", "{'a': 1}['b'] == 1"),
      RuleRow("{'a': {'b': 2}}.a.b == 2", "{'a': {'b': 2}}.a.c == 2"),
      RuleRow("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "{'a': 1} == {'a': 2}"),
      RuleRow("{'a': 1}.size() == 1", "{}.size() == 1"),
      RuleRow("{'a': 1, 'b': 2}.keys().hasOnly(['a', 'b'])", "{'a': 1}.keys().hasAll(['b'])"),
      RuleRow("1 in {'a': 1}.values()", "2 in {'a': 1}.values()"),
      RuleRow("{'a': 1}.get('a', 0) == 1", "{'a': 1}.get('b', 0) == 1"),
      RuleRow("{'a': {'b': 2}}.get(['a', 'b'], 0) == 2", "{'a': 1}.get(['a', 'b'], 0) == 1"),
      RuleRow("{'a': 1} is map", "['a'] is map"),
      RuleRow("{'a' + 'b': 1}.ab == 1", "{1: 1}.size() == 1"),
      RuleRow("resource.data.size.unit.name == 'cm'", "resource.data.size.unit.sign == 'cm'"),
      RuleRow("resource.data['title'] == 'Lamp'", "resource.data['tit' + 'el'] == 'Lamp'"),
      RuleRow("'title' in resource.data", "'other' in resource.data"),
      RuleRow("resource.data.get('other', 7) == 7", "resource.data.other == null"),
      RuleRow(
        "request.resource.data.diff(resource.data).addedKeys() == ['added'].toSet()",
        "request.resource.data.diff(resource.data).addedKeys().size() == 0"),
      RuleRow(
        "resource.data.diff(request.resource.data).removedKeys().hasAll(['added'])",
        "request.resource.data.diff(resource.data).removedKeys().size() > 0"),
      RuleRow(
        "request.resource.data.diff(resource.data).changedKeys()"
          + ".hasOnly(['title', 'price', 'nan'])",
        "request.resource.data.diff(resource.data).changedKeys().hasOnly(['title'])"),
      RuleRow(
        "request.resource.data.diff(resource.data).affectedKeys()"
          + ".hasOnly(['title', 'price', 'added', 'nan'])",
        "request.resource.data.diff(resource.data).affectedKeys().hasOnly(['title', 'price'])"),
      RuleRow(
        "request.resource.data.diff(resource.data).unchangedKeys().hasAll(['owner', 'tags'])",
        "request.resource.data.diff(resource.data).unchangedKeys().hasAny(['title'])"),
    ]

    static let times = [
      RuleRow("request.time is timestamp", "request.time is string"),
      RuleRow("request.time.year() == 2026", "request.time.year() == 2025"),
      RuleRow("request.time.month() == 2", "request.time.month() == 1"),
      RuleRow("request.time.day() == 3", "request.time.day() == 4"),
      RuleRow("request.time.hours() == 4", "request.time.hours() == 5"),
      RuleRow("request.time.minutes() == 5", "request.time.minutes() == 6"),
      RuleRow("request.time.seconds() == 6", "request.time.seconds() == 7"),
      RuleRow("request.time.nanos() == 789000000", "request.time.nanos() == 789"),
      RuleRow("request.time.dayOfWeek() == 2", "request.time.dayOfWeek() == 3"),
      RuleRow("request.time.dayOfYear() == 34", "request.time.dayOfYear() == 3"),
      RuleRow("request.time.toMillis() == 1770091506789", "request.time.toMillis() == 1770091506"),
      RuleRow(
        "request.time.date() == timestamp.date(2026, 2, 3)", "request.time.date() == request.time"),
      RuleRow(
        "request.time.time() == duration.time(4, 5, 6, 789000000)",
        "request.time.time() == duration.time(4, 5, 6, 0)"),
      RuleRow(
        "timestamp.value(0) == timestamp.date(1970, 1, 1)", "timestamp.date(2026, 2, 30) != null"),
      RuleRow("request.time > resource.data.made", "request.time < resource.data.made"),
      RuleRow(
        "request.time < resource.data.made + duration.value(4, 'd')",
        "request.time < resource.data.made + duration.value(3, 'd')"),
      RuleRow(
        "request.time - resource.data.made > duration.value(3, 'd')",
        "request.time - resource.data.made > duration.value(1, 'w')"),
      RuleRow(
        "request.time - duration.value(1, 'h') < request.time",
        "request.time - duration.value(1, 'h') > request.time"),
      RuleRow(
        "duration.value(90, 's') == duration.time(0, 1, 30, 0)", "duration.value(1, 'y') != null"),
      RuleRow(
        "duration.value(1500, 'ms').seconds() == 1", "duration.value(1500, 'ms').seconds() == 2"),
      RuleRow("duration.value(5, 'ns').nanos() == 5", "duration.value(5, 'ns').nanos() == 0"),
      RuleRow(
        "duration.abs(duration.value(-1, 'm')) == duration.value(1, 'm')",
        "duration.value(-1, 'm') == duration.value(1, 'm')"),
      RuleRow("duration.value(-1500, 'ms').nanos() == -500000000", "duration.value(1, 'm') is int"),
      RuleRow(
        "duration.value(1, 'm') is duration", "duration.value(9223372036854775807, 'w') != null"),
      RuleRow(
        "duration.value(1, 'm') + duration.value(1, 's') == duration.value(61, 's')",
        "duration.value(1, 'm') + 1 == duration.value(61, 's')"),
      RuleRow(
        "timestamp.date(9999, 1, 1).year() == 9999",
        "timestamp.value(9223372036854775807) != null"),
    ]

    static let others = [
      RuleRow("null is null", "0 is null"),
      RuleRow("true is bool", "'true' is bool"),
      RuleRow("1 is int", "1.0 is int"),
      RuleRow("1.0 is float", "1 is float"),
      RuleRow("1 is number && 1.0 is number", "'1' is number"),
      RuleRow("'a' is string", "b'a' is string"),
      RuleRow("b'a' is bytes", "'a' is bytes"),
      RuleRow("/a/b is path", "'/a/b' is path"),
      RuleRow("latlng.value(1, 2) is latlng", "latlng.value(91, 2) is latlng"),
      RuleRow("b'\\x00\\xff\\x10' == resource.data.raw", "b'\\x00' == resource.data.raw"),
      RuleRow("resource.data.raw.size() == 3", "resource.data.raw.size() == 4"),
      RuleRow("resource.data.raw.toBase64() == 'AP8Q'", "resource.data.raw.toBase64() == 'AP8='"),
      RuleRow("b'ab'.toBase64() == 'YWI='", "b'ab'.toBase64() == 'YWI'"),
      RuleRow("b'~~~?'.toBase64() == 'fn5-Pw=='", "b'~~~'.toBase64() == 'fn5+'"),
      RuleRow(
        "resource.data.raw.toHexString() == '00FF10'", "resource.data.raw.toHexString() == ''"),
      RuleRow("b'abc'[1:3] == b'bc'", "b'abc'[1:9] == b'bc'"),
      RuleRow("resource.data.at.latitude() == 52.5", "resource.data.at.latitude() == 13.4"),
      RuleRow("resource.data.at.longitude() == 13.4", "resource.data.at.longitude() == 52.5"),
      RuleRow(
        "math.round(latlng.value(0, 0).distance(latlng.value(0, 1)) / 1000) == 111",
        "latlng.value(0, 0).distance(latlng.value(0, 1)) < 111000"),
      RuleRow("hashing.md5('abc') == b'cba'", "hashing.md5('abc') == b'abc'"),
      RuleRow("hashing.sha256(b'abc') == b'\\x03'", "hashing.sha256(1) == b'\\x03'"),
      RuleRow(
        "hashing.crc32('123456789').toHexString() == '2639F4CB'",
        "hashing.crc32('123456789').toHexString() == '839206E3'"),
      RuleRow(
        "hashing.crc32c('123456789').toHexString() == '839206E3'",
        "hashing.crc32c('123456789').toHexString() == '2639F4CB'"),
      RuleRow("path('a/b') == /a/b", "path('a/b') == 'a/b'"),
      RuleRow("path('/a/b') == /a/$('b')", "path('/a//b') == /a/b"),
      RuleRow("/a/b[1] == 'b'", "/a/b[2] == 'b'"),
      RuleRow("(/a/$(x)/c).bind({'x': 'b'}) == /a/b/c", "(/a/$(x)/c).bind({'y': 'b'}) == /a/b/c"),
      RuleRow("path('/a/$(x)').bind({'x': 'b'}) == /a/b", "path('/a/$(x)').bind({'x': 1}) == /a/b"),
      RuleRow("path('/a/{x}').bind({'x': 'b'}) == /a/b", "path('/a/{x}').bind({'y': 'b'}) == /a/b"),
      // A "/" in a text does not lead to another document.
      RuleRow("/a/$('b') == /a/b", "/a/$('b/c') == /a/b/c"),
      RuleRow("string(/a/b) == '/a/b'", "string([1]) == '1'"),
      RuleRow("debug(true)", "debug(false)"),
    ]

    static let requests = [
      RuleRow("request.auth != null", "request.auth == null"),
      RuleRow("request.auth.uid == 'anna'", "request.auth.uid == 'ben'"),
      RuleRow("request.auth.uid == resource.data.owner", "request.auth.uid == resource.data.title"),
      RuleRow("request.auth.token.email_verified", "request.auth.token.phone_number != null"),
      RuleRow("request.auth.token.admin == true", "request.auth.token.admin == 'true'"),
      RuleRow("request.auth.token.get('level', 0) > 2", "request.auth.token.get('rank', 0) > 2"),
      RuleRow("request.method == 'update'", "request.method == 'create'"),
      RuleRow(
        "request.path == /databases/(default)/documents/items/lamp",
        "request.path == /databases/other/documents/items/lamp"),
      RuleRow("request.path[4] == 'lamp'", "request.path[5] == 'lamp'"),
      RuleRow("request.query.limit <= 10", "request.query.offset <= 10"),
      RuleRow("request.resource.data.price == 45", "resource.data.price == 45"),
      RuleRow("request.resource.data.price > resource.data.price", "resource.data.nothing > 0"),
      RuleRow("resource.id == 'lamp'", "resource.id == 'items'"),
      RuleRow("resource.__name__ == request.path", "resource.__name__ == /items/lamp"),
      RuleRow("resource != null", "resource == null"),
      RuleRow("item == 'lamp'", "item == 'chair'"),
      RuleRow("database == '(default)'", "database == 'other'"),
      RuleRow("resource.data.nothing == null", "resource.data.nothing.more == null"),
      RuleRow("request.auth is map", "request.auth is string"),
      RuleRow("request['method'] == 'update'", "request['method'] == 'get'"),
      RuleRow("'auth' in request", "'user' in request"),
      RuleRow("resource['data'].title == 'Lamp'", "resource.title == 'Lamp'"),
    ]

    static let reads = [
      RuleRow(
        "get(/databases/$(database)/documents/users/$(request.auth.uid)).data.role == 'admin'",
        "get(/databases/$(database)/documents/users/ben).data.role == 'admin'"),
      RuleRow(
        "exists(/databases/$(database)/documents/users/anna)",
        "exists(/databases/$(database)/documents/users/carl)"),
      RuleRow(
        "get(/databases/$(database)/documents/users/ben) != null",
        "get(/databases/$(database)/documents/users/carl) == null"),
      RuleRow(
        "get(/databases/(default)/documents/users/anna).id == 'anna'",
        "get(/databases/(default)/documents/users).id == 'users'"),
      RuleRow(
        "getAfter(/databases/$(database)/documents/items/lamp).data.price == 45",
        "get(/databases/$(database)/documents/items/lamp).data.price == 45"),
      RuleRow(
        "existsAfter(/databases/$(database)/documents/logs/1)",
        "exists(/databases/$(database)/documents/logs/1)"),
      RuleRow(
        "'ben' in get(resource.data.link).data.friends",
        "'carl' in get(resource.data.link).data.friends"),
      RuleRow("get(request.path).data.title == 'Lamp'", "get('users/anna').data.role == 'admin'"),
    ]

    /// A failure on one side, and the result with the other side.
    static let absorption = [
      RuleRow("resource.data.x || true", "resource.data.x || false"),
      RuleRow("true || resource.data.x", "false || resource.data.x"),
      RuleRow("!(resource.data.x && false)", "!(resource.data.x && true)"),
      RuleRow("!(false && resource.data.x)", "!(true && resource.data.x)"),
      RuleRow("1 || true", "1 || false"),
      RuleRow("(resource.data.x && true) || true", "(resource.data.x || false) && true"),
      RuleRow("!(1 / 0 == 1 && false)", "1 / 0 == 1 || false"),
      RuleRow("true ? true : resource.data.x", "resource.data.x ? true : true"),
      RuleRow("resource.data.x == 1 || resource.data.price == 40", "!(resource.data.x == 1)"),
    ]
  }
#endif
