// The database's values as those of rules. The types of both are Firestore's, apart from the
// database's own: rules see a decimal as the nearest double, a vector as a list of doubles, and a
// reference to contents as its digest's text.

#if Server
  import Ondol
  import OndolMapping

  extension RuleValue {
    /// - Parameter database: the database's id, which begins the paths of references.
    init(_ value: Value, in database: String) {
      self =
        switch value {
        case .null: .null
        case .boolean(let value): .bool(value)
        case .integer(let value): .int(value)
        case .double(let value): .float(value)
        case .decimal(let value): .float(value.double)
        case .timestamp(let value): .timestamp(RuleTimestamp(value))
        case .string(let value): .string(value)
        case .bytes(let value): .bytes(value)
        case .reference(let path):
          .path(RuleRequest.firestore(path.segments, database: database))
        case .geoPoint(let point):
          .latlng(RuleLatLng(latitude: point.latitude, longitude: point.longitude))
        case .array(let elements): .list(elements.map { RuleValue($0, in: database) })
        case .vector(let vector): .list(vector.components.map { .float($0) })
        case .map(let fields): .map(fields.mapValues { RuleValue($0, in: database) })
        case .blob(let blob): .string("\(blob.digest)")
        }
    }

    /// A document as rules see it; null when there is none.
    init(_ document: DocumentSnapshot, at path: DocumentPath, in database: String) {
      self =
        document.exists
        ? .document(
          RuleDocument(
            path: RuleRequest.firestore(path.segments, database: database),
            data: .map(document.data().mapValues { RuleValue($0, in: database) })))
        : .null
    }
  }

  extension RuleTimestamp {
    init(_ time: Timestamp) {
      let (seconds, rest) = time.microsecondsSince1970.dividedDown(by: 1_000_000)
      self.init(clampingSeconds: seconds, nanoseconds: rest * 1_000)
    }
  }

  extension Principal {
    /// `request.auth`.
    func auth(in database: String) -> RuleValue {
      guard case .user(let token) = self else { return .null }
      return .map(["uid": .string(token.uid), "token": RuleValue(token.claims, in: database)])
    }
  }
#endif
