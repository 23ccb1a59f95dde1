// Procedures that call the functions whose locks other processes wait for, and commit. A
// statement's transaction ends with a message of its own, Sync. If the line is silent between the
// statement and that message, the server keeps the locks and every process waits. A procedure
// commits within the message that calls it.

extension Schema {
  /// A procedure that calls a function and commits.
  struct Procedure: Sendable {
    let name: String
    /// The function that it calls.
    let function: String
    /// The types of the function's parameters.
    let parameters: [String]
    /// The type of its answer.
    let answer: String

    var text: String {
      let places = parameters.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
      return """
        create or replace procedure \(name)(\(parameters.joined(separator: ", ")),
          inout answer \(answer)) language plpgsql as $$
        begin
          answer := \(function)(\(places)); commit;
        end $$;
        """
    }

    /// Its name and the types of its parameters.
    var signature: String { "\(name)(\((parameters + [answer]).joined(separator: ", ")))" }

    /// Its call as a statement.
    var call: String {
      let places = parameters.enumerated().map { "$\($0.offset + 1)::\($0.element)" }
      return "call \(name)(\((places + ["null"]).joined(separator: ", ")))"
    }
  }

  /// Each function whose locks other processes wait for.
  static let procedures: [Procedure] = [
    .commit, .outcome, .told, .forget, .skip, .cut, .remove, .load, .hold, .trim,
  ]
}

extension Schema.Procedure {
  static let commit = Self(
    name: "ondol_commit_2", function: "ondol_commit_1",
    parameters: [
      "int", "bigint", "bigint", "bigint", "bigint", "bytea[]", "bytea[]", "bytea[]", "bytea[]",
      "bytea[]", "int[]", "int", "bigint", "int[]", "int[]", "int[]", "bool", "bytea[]", "bool",
    ], answer: "bigint[]")
  static let outcome = Self(
    name: "ondol_outcome_2", function: "ondol_outcome_1",
    parameters: ["int", "bigint", "bigint", "bigint"], answer: "bigint[]")
  static let told = Self(
    name: "ondol_told_2", function: "ondol_told_1", parameters: ["int"], answer: "bigint")
  static let forget = Self(
    name: "ondol_forget_2", function: "ondol_forget_1", parameters: ["int", "int"],
    answer: "bigint[]")
  static let skip = Self(
    name: "ondol_skip_2", function: "ondol_skip_1", parameters: ["int", "bigint", "bigint"],
    answer: "bool")
  static let cut = Self(
    name: "ondol_cut_2", function: "ondol_cut_1", parameters: ["int", "bytea"], answer: "bigint")
  static let remove = Self(
    name: "ondol_remove_2", function: "ondol_remove_1", parameters: ["int", "bigint"],
    answer: "bool")
  static let load = Self(
    name: "ondol_load_2", function: "ondol_load_1", parameters: ["int"], answer: "int")
  static let hold = Self(
    name: "ondol_hold_3", function: "ondol_hold_2",
    parameters: ["int", "bigint", "bigint", "bigint", "bigint"], answer: "bigint")
  static let trim = Self(
    name: "ondol_trim_2", function: "ondol_trim_1", parameters: ["int", "bigint", "bigint", "int"],
    answer: "bigint[]")
}
