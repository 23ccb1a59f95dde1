// The functions of the language: conversions, reads, and functions with a namespace.

#if Server
  extension RuleEvaluation {
    mutating func builtin(
      _ builtin: RuleBuiltin, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      switch builtin {
      case .debug: return arguments[0]
      case .get, .firestoreGet: return try existing(arguments[0], afterWrites: false)
      case .getAfter: return try existing(arguments[0], afterWrites: true)
      case .exists, .firestoreExists: return try exists(arguments[0], afterWrites: false)
      case .existsAfter: return try exists(arguments[0], afterWrites: true)
      default: break
      }
      if arguments.contains(where: \.isUnknown) { return .unknown(.anything) }
      switch builtin {
      case .int, .float, .string, .bool, .path: return try conversion(builtin, arguments[0])
      case .md5, .sha256, .crc32, .crc32c: return try digest(builtin, arguments[0])
      case .timestampDate, .timestampValue, .durationAbs, .durationTime, .durationValue:
        return try time(builtin, arguments)
      case .latlngValue: return try place(arguments[0], arguments[1])
      default: return try mathematics(builtin, arguments)
      }
    }

    // MARK: - Conversions

    private mutating func conversion(
      _ builtin: RuleBuiltin, _ value: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      switch builtin {
      case .int: return .int(try integer(value))
      case .float: return .float(try float(value))
      case .bool: return .bool(try boolean(value))
      case .string: return .string(try text(value))
      case .path:
        guard case .string(let text) = value else { throw .wrongType("path()") }
        return try path(of: text)
      default: throw .wrongType(builtin.rawValue)
      }
    }

    private func integer(_ value: RuleValue) throws(RuleFailure) -> Int64 {
      switch value {
      case .int(let value): return value
      case .float(let value): return try integer(value.rounded(.towardZero))
      case .string(let text):
        guard let value = Int64(text) else { throw .invalid("the text is no integer") }
        return value
      default: throw .wrongType("int()")
      }
    }

    func integer(_ whole: Double) throws(RuleFailure) -> Int64 {
      guard let value = Int64(exactly: whole) else { throw .overflow }
      return value
    }

    private func float(_ value: RuleValue) throws(RuleFailure) -> Double {
      if let value = value.double { return value }
      guard case .string(let text) = value else { throw .wrongType("float()") }
      guard let value = Double(text) else { throw .invalid("the text is no number") }
      return value
    }

    private func boolean(_ value: RuleValue) throws(RuleFailure) -> Bool {
      switch value {
      case .bool(let value): return value
      case .string("true"): return true
      case .string("false"): return false
      default: throw .wrongType("bool()")
      }
    }

    func text(_ value: RuleValue) throws(RuleFailure) -> String {
      switch value {
      case .null: return "null"
      case .bool(let value): return value ? "true" : "false"
      case .int(let value): return String(value)
      case .float(let value): return String(value)
      case .string(let text): return text
      case .path(let segments): return segments.map { "/\($0)" }.joined()
      default: throw .wrongType("string()")
      }
    }

    // MARK: - Digests

    private mutating func digest(
      _ builtin: RuleBuiltin, _ value: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      let bytes: [UInt8]
      switch value {
      case .bytes(let value): bytes = value
      case .string(let text): bytes = Array(text.utf8)
      default: throw .wrongType(builtin.rawValue)
      }
      try charge(bytes.count)
      switch builtin {
      case .crc32: return .bytes(RuleChecksum.crc32.bytes(of: bytes))
      case .crc32c: return .bytes(RuleChecksum.crc32c.bytes(of: bytes))
      default:
        guard let digest = builtin == .md5 ? digests.md5 : digests.sha256 else {
          throw .invalid("\(builtin.rawValue) is not available here")
        }
        return .bytes(digest(bytes))
      }
    }

    // MARK: - Times and places

    private func time(
      _ builtin: RuleBuiltin, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      if builtin == .durationAbs {
        guard case .duration(let duration) = arguments[0] else { throw .wrongType("duration.abs") }
        return .duration(try possible(duration.magnitude))
      }
      var numbers: [Int64] = []
      for argument in arguments {
        if case .int(let number) = argument { numbers.append(number) }
      }
      if builtin == .durationValue, numbers.count == 1, case .string(let unit) = arguments[1] {
        return .duration(try duration(numbers[0], unit))
      }
      guard numbers.count == arguments.count else { throw .wrongType(builtin.rawValue) }
      switch builtin {
      case .timestampValue:
        return .timestamp(try possible(RuleTimestamp(milliseconds: numbers[0])))
      case .timestampDate:
        guard let day = RuleTimestamp(year: numbers[0], month: numbers[1], day: numbers[2]) else {
          throw .invalid("there is no such day")
        }
        return .timestamp(day)
      case .durationTime:
        let hours = try duration(numbers[0], "h").length
        let minutes = try duration(numbers[1], "m").length
        let seconds = try possible(RuleInstant(seconds: numbers[2], nanoseconds: numbers[3]))
        let sum = hours.adding(minutes).flatMap { $0.adding(seconds) }
        return .duration(RuleDuration(try possible(sum)))
      default: throw .wrongType(builtin.rawValue)
      }
    }

    private func duration(_ number: Int64, _ unit: String) throws(RuleFailure) -> RuleDuration {
      let seconds: [String: Int64] = ["w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1]
      if let length = seconds[unit] {
        let (product, overflow) = number.multipliedReportingOverflow(by: length)
        guard !overflow else { throw .overflow }
        return RuleDuration(RuleInstant(seconds: product))
      }
      switch unit {
      case "ms":
        let (whole, rest) = number.dividedDown(by: 1_000)
        return try possible(RuleDuration(seconds: whole, nanoseconds: rest * 1_000_000))
      case "ns": return try possible(RuleDuration(seconds: 0, nanoseconds: number))
      default: throw .invalid("a unit is w, d, h, m, s, ms or ns")
      }
    }

    private func place(
      _ latitude: RuleValue, _ longitude: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      guard let latitude = latitude.double, let longitude = longitude.double else {
        throw .wrongType("latlng.value")
      }
      guard (-90...90).contains(latitude), (-180...180).contains(longitude) else {
        throw .outOfRange
      }
      return .latlng(RuleLatLng(latitude: latitude, longitude: longitude))
    }
  }

  /// A 32-bit cyclic redundancy check, defined by its polynomial.
  struct RuleChecksum {
    private let table: [UInt32]

    static let crc32 = RuleChecksum(polynomial: 0xEDB8_8320)
    static let crc32c = RuleChecksum(polynomial: 0x82F6_3B78)

    private init(polynomial: UInt32) {
      table = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in
          value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1
        }
      }
    }

    /// The lowest byte first, as in Firebase.
    func bytes(of content: [UInt8]) -> [UInt8] {
      var sum = UInt32.max
      for byte in content { sum = table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] ^ sum >> 8 }
      sum = ~sum
      return [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: sum >> $0) }
    }
  }
#endif
