// The words after `--limit` of `ondol serve`. Limits of the server, of requests and of accounts are
// of three types in the library. Here each is a name and a number.

#if Server
  import Ondol
  import OndolAccounts
  import OndolServer

  /// Limits by their names.
  struct LimitArguments {
    private let words: [String]

    init(_ words: [String]) {
      self.words = words
    }

    /// Sets the limits. The server's own begin with those that would be in force without these
    /// words.
    ///
    /// - Throws: `.invalidArgument` for a word that names no limit or has no number.
    func apply(to options: inout Server.Options) throws(DatabaseError) {
      for word in words {
        let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2, parts[1] == "off" || parts[1] == "on" || Int(parts[1]) != nil
        else {
          throw DatabaseError(.invalidArgument, "a limit is NAME=N or NAME=off, and not \(word)")
        }
        try set(parts[0], parts[1], in: &options)
      }
    }

    private func set(
      _ name: String, _ text: String, in options: inout Server.Options
    ) throws(DatabaseError) {
      if name == "default", text == "on" || text == "off" {
        options.limits = text == "on" ? ServerLimits() : ServerLimits.none
        return
      }
      switch name {
      case "request-bytes": options.requestLimit = try number(text, name)
      case "wrong-passwords": options.accounts.maximumTries = try number(text, name)
      case "wrong-passwords-of-address":
        options.accounts.maximumTriesOfOrigin = try number(text, name)
      case "guests-of-address": options.accounts.maximumGuestsOfOrigin = try number(text, name)
      default:
        var limits = options.limitsInForce
        try limits.set(name, to: text == "off" ? nil : try number(text, name))
        options.limits = limits
      }
    }

    private func number(_ text: String, _ name: String) throws(DatabaseError) -> Int {
      guard let number = Int(text), number > 0 else {
        throw DatabaseError(.invalidArgument, "the limit \(name) is a number of 1 or more")
      }
      return number
    }
  }
#endif
