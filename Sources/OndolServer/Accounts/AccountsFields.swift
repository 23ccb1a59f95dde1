// The fields of a request, with the types that the protocol gives them. A request is JSON, or a
// form for the one call that clients send a form to. As everywhere in Google's JSON, null and the
// empty text are a field that is not there, and numbers may be texts.

#if Server
  import Foundation
  import Ondol
  import OndolJSON

  /// The fields of a request or of a part of it.
  struct AccountsFields: Sendable {
    private let members: [String: Value]

    init(_ members: [String: Value]) { self.members = members }

    /// Reads the body of a call; none of a call without a body.
    ///
    /// - Parameter takesForm: whether the body may be a form.
    init(of call: HTTPCall, takesForm: Bool) throws(AccountsFailure) {
      let type = call.headers["content-type"] ?? ""
      if takesForm, type.hasPrefix("application/x-www-form-urlencoded") {
        guard let form = HTTPCall.form(String(decoding: call.body, as: UTF8.self)[...]) else {
          throw .wrongType("the form")
        }
        members = form.mapValues(Value.string)
      } else if call.body.isEmpty {
        members = [:]
      } else {
        guard let value = try? JSONReader.read(call.body, .plain, numbers: .double),
          let members = value.map
        else {
          throw AccountsFailure(
            "Invalid JSON payload received.", named: "INVALID_ARGUMENT")
        }
        self.members = members
      }
    }

    /// Whether there is a field, whatever its value.
    func has(_ name: String) -> Bool { members[name].map { !$0.isNull } ?? false }

    /// Whether there is a field that is not empty.
    func isFilled(_ name: String) -> Bool {
      switch members[name] {
      case nil, .null?: false
      case .string(let text)?: !text.isEmpty
      case .array(let elements)?: !elements.isEmpty
      default: true
      }
    }

    func text(_ name: String) throws(AccountsFailure) -> String? {
      switch members[name] {
      case nil, .null?: return nil
      case .string(let text)?: return text.isEmpty ? nil : text
      default: throw .wrongType(name)
      }
    }

    /// A text that must be there.
    ///
    /// - Parameter missing: what the error calls the field, such as `EMAIL`.
    func text(_ name: String, orMissing missing: String) throws(AccountsFailure) -> String {
      guard let text = try text(name) else { throw .missing(missing) }
      return text
    }

    func flag(_ name: String) throws(AccountsFailure) -> Bool? {
      switch members[name] {
      case nil, .null?: return nil
      case .boolean(let flag)?: return flag
      default: throw .wrongType(name)
      }
    }

    func integer(_ name: String) throws(AccountsFailure) -> Int? {
      switch members[name] {
      case nil, .null?: return nil
      case .integer(let number)?: return Int(number)
      case .string(let text)?:
        guard let number = Int(text) else { throw .wrongType(name) }
        return number
      default: throw .wrongType(name)
      }
    }

    /// Bytes, in base64 of either alphabet.
    func bytes(_ name: String) throws(AccountsFailure) -> [UInt8]? {
      guard let text = try text(name) else { return nil }
      let plain = text.replacing("-", with: "+").replacing("_", with: "/")
      let padding = String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)
      guard let data = Data(base64Encoded: plain + padding) else { throw .wrongType(name) }
      return Array(data)
    }

    /// A list of texts. One text is a list of one.
    func texts(_ name: String) throws(AccountsFailure) -> [String] {
      switch members[name] {
      case nil, .null?: return []
      case .string(let text)?: return text.isEmpty ? [] : [text]
      case .array(let elements)?:
        let texts = elements.compactMap(\.string)
        guard texts.count == elements.count else { throw .wrongType(name) }
        return texts
      default: throw .wrongType(name)
      }
    }

    /// A list of objects.
    func objects(_ name: String) throws(AccountsFailure) -> [AccountsFields] {
      switch members[name] {
      case nil, .null?: return []
      case .array(let elements)?:
        let objects = elements.compactMap(\.map)
        guard objects.count == elements.count else { throw .wrongType(name) }
        return objects.map(AccountsFields.init)
      default: throw .wrongType(name)
      }
    }

    /// An object.
    func object(_ name: String) throws(AccountsFailure) -> AccountsFields? {
      switch members[name] {
      case nil, .null?: return nil
      case .map(let members)?: return AccountsFields(members)
      default: throw .wrongType(name)
      }
    }
  }
#endif
