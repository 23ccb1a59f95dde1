// Values as text, for `string()`, for the lines of an explanation, and for tests. Texts are
// truncated, because an explanation shows values and does not copy documents.

#if Server
  extension RuleValue: CustomStringConvertible {
    var description: String { text(limit: 200) }

    /// The value in the language's notation, with an ellipsis after about `limit` characters.
    func text(limit: Int) -> String {
      var text = ""
      append(to: &text, limit: limit, depth: 0)
      return text.unicodeScalars.count <= limit
        ? text : String(String.UnicodeScalarView(text.unicodeScalars.prefix(limit))) + "…"
    }

    private func append(to text: inout String, limit: Int, depth: Int) {
      guard text.utf8.count <= limit, depth < 10 else { return text += "…" }
      switch self {
      case .null: text += "null"
      case .bool(let value): text += value ? "true" : "false"
      case .int(let value): text += String(value)
      case .float(let value): text += String(value)
      case .string(let value): text += "\"\(value.prefix(limit))\""
      case .bytes(let value): text += "\(value.count) bytes"
      case .list(let values):
        Self.append(values, between: ("[", "]"), to: &text, limit: limit, depth: depth)
      case .set(let values):
        text +=
          values.count > 100
          ? "{\(values.count) values}"
          : "{" + values.map(\.description).sorted().joined(separator: ", ") + "}"
      case .map(let fields): append(fields, to: &text, limit: limit, depth: depth)
      case .timestamp(let moment): text += moment.text
      case .duration(let duration): text += "\(duration.seconds) s \(duration.nanoseconds) ns"
      case .path(let segments): text += segments.prefix(limit).map { "/\($0)" }.joined()
      case .latlng(let place): text += "(\(place.latitude), \(place.longitude))"
      case .document(let document): text += "document \(RuleValue.path(document.path))"
      case .difference(let difference):
        text +=
          "diff of \(difference.added.count + difference.removed.count) keys"
          + " and \(difference.changed.count) values"
      case .unknown: text += "unknown"
      }
    }

    private static func append(
      _ values: [RuleValue], between marks: (String, String), to text: inout String, limit: Int,
      depth: Int
    ) {
      text += marks.0
      for (index, value) in values.enumerated() where text.utf8.count <= limit {
        if index > 0 { text += ", " }
        value.append(to: &text, limit: limit, depth: depth + 1)
      }
      text += marks.1
    }

    private func append(
      _ fields: [String: RuleValue], to text: inout String, limit: Int, depth: Int
    ) {
      text += "{"
      for (index, name) in fields.keys.sorted().prefix(limit).enumerated() {
        guard text.utf8.count <= limit else { break }
        if index > 0 { text += ", " }
        text += "\"\(name)\": "
        fields[name]?.append(to: &text, limit: limit, depth: depth + 1)
      }
      text += "}"
    }
  }

  extension RuleTimestamp {
    /// The text, such as `2026-01-31T12:00:00.5Z`.
    var text: String {
      func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
      let day = "\(date.year)-\(two(date.month))-\(two(date.day))"
      let (minutes, second) = secondOfDay.dividedDown(by: 60)
      let (hour, minute) = minutes.dividedDown(by: 60)
      guard instant.nanoseconds > 0 else {
        return "\(day)T\(two(hour)):\(two(minute)):\(two(second))Z"
      }
      let digits = String(String(RuleInstant.nanosecondsInSecond + instant.nanoseconds).dropFirst())
      let fraction = String(digits.reversed().drop { $0 == "0" }.reversed())
      return "\(day)T\(two(hour)):\(two(minute)):\(two(second)).\(fraction)Z"
    }
  }
#endif
