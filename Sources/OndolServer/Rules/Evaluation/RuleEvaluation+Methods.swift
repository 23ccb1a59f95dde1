// Methods, by the type of the value that they belong to.

#if Server
  import Ondol

  extension RuleEvaluation {
    mutating func method(
      _ method: RuleMethod, of receiver: RuleValue, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      if receiver.isUnknown || arguments.contains(where: \.isUnknown) {
        return conditions?.answer(method, of: receiver, arguments) ?? .unknown(.anything)
      }
      switch receiver {
      case .string(let text): return try string(method, text, arguments)
      case .bytes(let bytes): return try self.bytes(method, bytes)
      case .list(let elements): return try list(method, elements, arguments)
      case .set(let elements): return try set(method, elements, arguments)
      case .map(let fields): return try map(method, fields, arguments)
      case .difference(let difference): return try keys(method, of: difference)
      case .timestamp(let moment): return try timestamp(method, moment)
      case .duration(let duration): return try self.duration(method, duration)
      case .latlng(let place): return try self.place(method, place, arguments)
      case .path(let segments):
        guard method == .bind, case .map(let fields) = arguments[0] else { break }
        return try bound(segments, fields)
      default: break
      }
      return try noMethod(method, receiver)
    }

    func noMethod(_ method: RuleMethod, _ receiver: RuleValue) throws(RuleFailure) -> RuleValue {
      throw .wrongType("\(method.rawValue) of \(receiver.typeName)")
    }

    // MARK: - Texts

    private mutating func string(
      _ method: RuleMethod, _ text: String, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      try charge(text.utf8.count)
      switch method {
      case .size: return .int(Int64(text.unicodeScalars.count))
      case .lower: return .string(text.lowercased())
      case .upper: return .string(text.uppercased())
      case .trim: return .string(trimmed(text))
      case .toUtf8: return .bytes(Array(text.utf8))
      case .matches: return try matches(.string(text), try pattern(arguments[0]))
      case .split: return try split(text, by: try pattern(arguments[0]))
      case .replace:
        guard case .string(let replacement) = arguments[1] else { throw .wrongType("replace") }
        return try replaced(text, try pattern(arguments[0]), by: replacement)
      default: return try noMethod(method, .string(text))
      }
    }

    private func trimmed(_ text: String) -> String {
      func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }
      let front = text.unicodeScalars.drop(while: isSpace)
      guard let last = front.lastIndex(where: { !isSpace($0) }) else { return "" }
      return String(front[...last])
    }

    private mutating func pattern(_ value: RuleValue) throws(RuleFailure) -> RegularExpression {
      guard case .string(let text) = value else { throw .wrongType("a pattern") }
      // A program has at most this many steps.
      try charge(text.utf8.count + 20_000)
      do throws(RegularExpressionError) {
        return try RegularExpression(text)
      } catch {
        throw .invalid("the pattern is wrong: \(error.message)")
      }
    }

    mutating func matches(
      _ value: RuleValue, _ pattern: RegularExpression
    ) throws(RuleFailure) -> RuleValue {
      guard case .string(let text) = value else { return try unsuited("matches", value) }
      let matches = pattern.matchesWhole(text, work: &workLeft)
      try charge(0)
      return .bool(matches)
    }

    private mutating func split(
      _ text: String, by pattern: RegularExpression
    ) throws(RuleFailure) -> RuleValue {
      let scalars = text.unicodeScalars.map(\.value)
      let separators = pattern.matches(in: scalars, work: &workLeft)
      try charge(scalars.count + separators.count)
      var parts: [RuleValue] = []
      var start = 0
      for separator in separators {
        // An empty match separates characters. There is none before the first or after the last.
        if separator.isEmpty, separator.lowerBound == 0 || separator.lowerBound == scalars.count {
          continue
        }
        parts.append(.string(self.text(scalars[start..<separator.lowerBound])))
        start = separator.upperBound
      }
      parts.append(.string(self.text(scalars[start...])))
      return .list(parts)
    }

    private mutating func replaced(
      _ text: String, _ pattern: RegularExpression, by replacement: String
    ) throws(RuleFailure) -> RuleValue {
      let scalars = text.unicodeScalars.map(\.value)
      let matches = pattern.matches(in: scalars, work: &workLeft)
      try charge(scalars.count)
      var result = ""
      var start = 0
      for match in matches {
        try charge(replacement.utf8.count + 1)
        result += self.text(scalars[start..<match.lowerBound])
        result += replacement
        start = match.upperBound
      }
      result += self.text(scalars[start...])
      return .string(result)
    }

    private func text(_ scalars: ArraySlice<UInt32>) -> String {
      var view = String.UnicodeScalarView()
      for value in scalars { view.append(Unicode.Scalar(value) ?? "\u{FFFD}") }
      return String(view)
    }

    // MARK: - Bytes

    private mutating func bytes(
      _ method: RuleMethod, _ bytes: [UInt8]
    ) throws(RuleFailure) -> RuleValue {
      try charge(bytes.count)
      switch method {
      case .size: return .int(Int64(bytes.count))
      case .toHexString:
        let digits = Array("0123456789ABCDEF".utf8)
        let hex = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return .string(String(decoding: hex, as: UTF8.self))
      case .toBase64: return .string(base64(bytes))
      default: return try noMethod(method, .bytes([]))
      }
    }

    /// With the alphabet of URLs, as in Firebase, and with padding.
    private func base64(_ bytes: [UInt8]) -> String {
      let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
      var text: [UInt8] = []
      text.reserveCapacity(bytes.count / 3 * 4 + 4)
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let group = bytes[start..<min(start + 3, bytes.count)]
        let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
        for index in 0..<4 {
          let digit = Int(bits >> UInt32(18 - 6 * index) & 63)
          text.append(index <= group.count ? alphabet[digit] : UInt8(ascii: "="))
        }
      }
      return String(decoding: text, as: UTF8.self)
    }

    // MARK: - Times and places

    private func timestamp(
      _ method: RuleMethod, _ moment: RuleTimestamp
    ) throws(RuleFailure) -> RuleValue {
      switch method {
      case .date: return .timestamp(moment.midnight)
      case .time:
        let ofDay = RuleDuration(
          seconds: moment.secondOfDay, nanoseconds: moment.instant.nanoseconds)
        return .duration(try possible(ofDay))
      case .year: return .int(moment.date.year)
      case .month: return .int(moment.date.month)
      case .day: return .int(moment.date.day)
      case .dayOfWeek: return .int(moment.date.dayOfWeek)
      case .dayOfYear: return .int(moment.date.dayOfYear)
      case .hours: return .int(moment.secondOfDay / 3_600)
      case .minutes: return .int(moment.secondOfDay / 60 % 60)
      case .seconds: return .int(moment.secondOfDay % 60)
      case .nanos: return .int(moment.instant.nanoseconds)
      case .toMillis: return .int(moment.milliseconds)
      default: return try noMethod(method, .timestamp(moment))
      }
    }

    private func duration(
      _ method: RuleMethod, _ duration: RuleDuration
    ) throws(RuleFailure) -> RuleValue {
      switch method {
      case .seconds: return .int(duration.seconds)
      case .nanos: return .int(duration.nanoseconds)
      default: return try noMethod(method, .duration(duration))
      }
    }

    private func place(
      _ method: RuleMethod, _ place: RuleLatLng, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      switch method {
      case .latitude: return .float(place.latitude)
      case .longitude: return .float(place.longitude)
      case .distance:
        guard case .latlng(let other) = arguments[0] else { throw .wrongType("distance") }
        return .float(place.distance(to: other))
      default: return try noMethod(method, .latlng(place))
      }
    }
  }
#endif
