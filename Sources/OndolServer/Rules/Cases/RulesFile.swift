// A rules file as a tool uses it: in one of the two languages, checked, and tried with cases.

#if Server
  import Crypto
  package import Foundation

  /// A valid rules file.
  package struct RulesFile: Sendable {
    private enum Language: Sendable {
      case documents(RuleSet)
      case tree(TreeRules)
    }

    /// A mistake in a file or a case, as a sentence with its place.
    package struct Problem: Error, CustomStringConvertible {
      package let description: String
    }

    /// The result of a case.
    package struct Trial: Sendable {
      /// Whether the rules decide as expected.
      package let isAsExpected: Bool
      /// The verdict, the evaluated rules, and the values in them.
      package let explanation: String
    }

    private let language: Language
    /// What is in it.
    let text: String

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - text: the file's content.
    ///   - isOfTree: whether these are rules of the Realtime Database, in JSON.
    /// - Throws: the first mistake, as `LINE:COLUMN: MESSAGE`.
    package init(_ text: String, isOfTree: Bool) throws(Problem) {
      self.text = text
      do throws(RuleError) {
        language =
          isOfTree ? .tree(try TreeRules(parsing: text)) : .documents(try RuleSet(parsing: text))
      } catch {
        throw Problem(description: error.description)
      }
    }

    /// The rules; nil for those of the Realtime Database.
    var rules: RuleSet? { if case .documents(let rules) = language { rules } else { nil } }

    /// Whether these are rules of the Realtime Database.
    var isOfTree: Bool { if case .tree = language { true } else { false } }

    /// Whether it has rules for a service.
    func has(_ service: RuleService) -> Bool {
      if case .documents(let rules) = language { rules.has(service) } else { false }
    }

    /// The services of the rules.
    package var summary: String {
      switch language {
      case .tree: return "rules of the Realtime Database"
      case .documents(let rules):
        let services = [RuleService.firestore, .storage].filter { rules.has($0) }
        return "version \(rules.version), for \(services.map(\.rawValue).joined(separator: ", "))"
      }
    }

    /// Tries a case.
    ///
    /// - Parameter line: a line of JSON.
    /// - Throws: the mistake in the line.
    package func attempt(_ line: Data) throws(Problem) -> Trial {
      guard case .documents(let rules) = language else {
        throw Problem(description: "cases are for rules of Firestore and of Storage")
      }
      let tried: RuleCase
      do {
        tried = try JSONDecoder().decode(RuleCase.self, from: line)
      } catch let error as DecodingError {
        throw Problem(description: Self.sentence(error))
      } catch {
        throw Problem(description: "it is no case: \(error)")
      }
      let verdict = rules.verdict(
        tried.request, documents: tried.documents, digests: .usual, explain: true)
      return Trial(
        isAsExpected: verdict.isAllowed == tried.isAllowed, explanation: verdict.description)
    }

    private static func sentence(_ error: DecodingError) -> String {
      let (path, reason) =
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context),
          .dataCorrupted(let context):
          (context.codingPath, context.debugDescription)
        case .keyNotFound(let key, let context): (context.codingPath + [key], "it is missing")
        @unknown default: ([], "\(error)")
        }
      let place = path.map(\.stringValue).joined(separator: ".")
      return place.isEmpty ? reason : "\(place): \(reason)"
    }
  }

  extension RuleDigests {
    /// The digests of swift-crypto.
    static let usual = RuleDigests(
      md5: { Array(Insecure.MD5.hash(data: $0)) }, sha256: { Array(SHA256.hash(data: $0)) })
  }
#endif
