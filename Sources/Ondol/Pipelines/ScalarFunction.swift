// The functions of expressions: their names in Firestore's protocol, and how many arguments each
// takes. What they compute is in the files Evaluation+….

/// A function of values. Its raw value is the protocol's name.
enum ScalarFunction: String, Sendable, CaseIterable {
  // Comparing.
  case equal, notEqual = "not_equal", lessThan = "less_than"
  case lessThanOrEqual = "less_than_or_equal", greaterThan = "greater_than"
  case greaterThanOrEqual = "greater_than_or_equal", cmp
  case equalAny = "equal_any", notEqualAny = "not_equal_any"
  // Logic.
  case and, or, xor, not, nor, conditional, switchOn = "switch_on"
  case exists, isAbsent = "is_absent", ifAbsent = "if_absent", isError = "is_error"
  case ifError = "if_error", ifNull = "if_null", coalesce, error
  case maximum, minimum, type, isType = "is_type"
  // Numbers.
  case add, subtract, multiply, divide, mod, abs, ceil, floor, round, trunc, pow, sqrt, exp, ln, log
  case log10, rand
  // Texts.
  case charLength = "char_length", byteLength = "byte_length", concat
  case stringConcat = "string_concat", stringContains = "string_contains"
  case startsWith = "starts_with", endsWith = "ends_with", like
  case regexContains = "regex_contains", regexMatch = "regex_match", regexFind = "regex_find"
  case regexFindAll = "regex_find_all", toLower = "to_lower", toUpper = "to_upper", trim, ltrim
  case rtrim, stringReverse = "string_reverse", reverse, substring, split, join
  case stringIndexOf = "string_index_of", stringRepeat = "string_repeat"
  case stringReplaceAll = "string_replace_all", stringReplaceOne = "string_replace_one", length
  case storageSize = "storage_size"
  // Arrays.
  case array, arrayConcat = "array_concat", arrayContains = "array_contains"
  case arrayContainsAll = "array_contains_all", arrayContainsAny = "array_contains_any"
  case arrayGet = "array_get", offset, arrayLength = "array_length"
  case arrayReverse = "array_reverse", arrayFirst = "array_first", arrayLast = "array_last"
  case arrayFirstN = "array_first_n", arrayLastN = "array_last_n", arraySlice = "array_slice"
  case arrayIndexOf = "array_index_of", arrayIndexOfAll = "array_index_of_all", sum
  case maximumN = "maximum_n", minimumN = "minimum_n", arrayFilter = "array_filter"
  case arrayTransform = "array_transform"
  // Maps.
  case map, mapGet = "map_get", getField = "get_field", mapSet = "map_set"
  case mapRemove = "map_remove", mapMerge = "map_merge", mapKeys = "map_keys"
  case mapValues = "map_values", mapEntries = "map_entries"
  // Times.
  case currentTimestamp = "current_timestamp", timestampAdd = "timestamp_add"
  case timestampSubtract = "timestamp_subtract", timestampTrunc = "timestamp_trunc"
  case timestampExtract = "timestamp_extract", timestampDiff = "timestamp_diff"
  case timestampToMicros = "timestamp_to_unix_micros"
  case timestampToMillis = "timestamp_to_unix_millis"
  case timestampToSeconds = "timestamp_to_unix_seconds"
  case microsToTimestamp = "unix_micros_to_timestamp"
  case millisToTimestamp = "unix_millis_to_timestamp"
  case secondsToTimestamp = "unix_seconds_to_timestamp"
  // Vectors and references.
  case cosineDistance = "cosine_distance", dotProduct = "dot_product"
  case euclideanDistance = "euclidean_distance", vectorLength = "vector_length"
  case documentID = "document_id", collectionID = "collection_id", parent

  /// How many arguments it takes.
  var arity: ClosedRange<Int> {
    switch self {
    case .currentTimestamp, .rand: 0...0
    case .array, .map: 0...Self.mostArguments
    case .exists, .isAbsent, .isError, .error, .type, .abs, .ceil, .floor, .sqrt, .exp, .ln, .log10,
      .charLength, .byteLength, .toLower, .toUpper, .stringReverse, .reverse, .length, .storageSize,
      .arrayLength, .arrayReverse, .arrayFirst, .arrayLast, .sum, .mapKeys, .mapValues, .mapEntries,
      .timestampToMicros, .timestampToMillis, .timestampToSeconds, .microsToTimestamp,
      .millisToTimestamp, .secondsToTimestamp, .vectorLength, .documentID, .collectionID, .parent,
      .not:
      1...1
    case .round, .trunc, .trim, .ltrim, .rtrim, .split, .log: 1...2
    case .and, .or, .xor, .nor, .maximum, .minimum, .concat, .stringConcat, .arrayConcat, .mapMerge,
      .coalesce, .ifNull:
      1...Self.mostArguments
    case .substring, .join, .arraySlice, .timestampTrunc, .timestampExtract, .arrayIndexOf: 2...3
    case .conditional, .timestampAdd, .timestampSubtract, .timestampDiff, .stringReplaceAll,
      .stringReplaceOne, .arrayFilter:
      3...3
    case .arrayTransform: 3...4
    case .mapRemove, .switchOn: 2...Self.mostArguments
    case .mapSet: 3...Self.mostArguments
    default: 2...2
    }
  }

  private static let mostArguments = 10_000

  /// Whether equal arguments always give an equal result.
  var isPure: Bool { self != .rand && self != .currentTimestamp }
}
