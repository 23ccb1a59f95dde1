// The three files of rules by their names, and what is wrong with a text of one: for an editor,
// which asks at every pause.

#if Server
  /// What a file of rules is for.
  package enum RulesKind: String, Sendable, CaseIterable {
    case firestore, storage, database

    /// The longest text that is checked, in bytes.
    private static let mostBytes = 1 << 20

    /// What is wrong with a text, as `LINE:COLUMN: MESSAGE`; nil for rules that can be deployed.
    package func problem(in text: String) -> String? {
      guard text.utf8.count <= Self.mostBytes else {
        return "1:1: the rules have more than \(Self.mostBytes >> 20) MiB"
      }
      var texts = RulesTexts()
      do throws(RulesFile.Problem) {
        try RulesFile(text, isOfTree: self == .database).add(to: &texts)
      } catch {
        return "\(error)"
      }
      return texts[self] == nil ? "1:1: the file has no rules for \(rawValue)" : nil
    }
  }

  extension RulesTexts {
    /// The text of a kind; nil for none.
    package subscript(kind: RulesKind) -> String? {
      get {
        switch kind {
        case .firestore: firestore
        case .storage: storage
        case .database: database
        }
      }
      set {
        switch kind {
        case .firestore: firestore = newValue
        case .storage: storage = newValue
        case .database: database = newValue
        }
      }
    }
  }
#endif
