// The tool's error messages and exit statuses. Scripts depend on the numbers: they are in
// Docs/Tools.md and never change their meaning.

import Foundation
import Ondol
import OndolTerminal

/// How the process ends.
enum ExitStatus: Int32 {
  case succeeded = 0
  /// The command was attempted and failed.
  case failed = 1
  /// The command line is invalid.
  case usage = 2
  /// The requested object does not exist.
  case notFound = 3
  /// Stored bytes are damaged.
  case corrupt = 4
  /// Another process has the database open.
  case locked = 5
  /// The files were written by a newer version.
  case newerFormat = 6
  /// Writing is not allowed here.
  case readOnly = 7
  /// A damaged database was salvaged, but not completely.
  case salvagedWithLoss = 8
  /// A version or a unique value did not meet its condition.
  case conflict = 9
  /// ^C. All stored data is consistent.
  case interrupted = 130

  func endProcess() -> Never {
    exit(rawValue)
  }
}

/// An error with its exit status.
struct CommandFailure: Error {
  let status: ExitStatus
  /// The message, one entry per line. A name in it may contain line breaks, which do not count as
  /// such.
  let lines: [String]

  /// The whole message, for inclusion in the line of another message.
  var message: String { lines.joined(separator: " ") }

  init(_ status: ExitStatus, _ message: String) {
    self.init(status, lines: message.isEmpty ? [] : [message])
  }

  init(_ status: ExitStatus, lines: [String]) {
    self.status = status
    self.lines = lines
  }

  /// Prints it to standard error; nothing if it is empty.
  func tell() {
    for (index, line) in lines.enumerated() { Console.say(index == 0 ? "ondol: \(line)" : line) }
  }

  /// The output is no longer read, for example by `head`. This is not a failure and prints nothing.
  static let outputClosed = CommandFailure(.succeeded, "")
  static let interrupted = CommandFailure(.interrupted, "")
}

extension CommandFailure {
  /// The error that the database threw while open. Its suggestion is for programs that call it, so
  /// the message suggests commands instead.
  init(_ error: DatabaseError) {
    let status: ExitStatus =
      switch error.code {
      case .dataLoss: .corrupt
      case .notFound: .notFound
      case .deadlineExceeded: .locked
      case .permissionDenied: .readOnly
      case .aborted, .alreadyExists: .conflict
      case .failedPrecondition where error.conflict != nil: .conflict
      default: .failed
      }
    let hint =
      switch status {
      case .corrupt: "; `ondol check` finds all damage, `ondol recover` saves everything readable"
      default: ""
      }
    self.init(status, error.localizedDescription + hint)
  }

  /// The error that `Database.open` threw. Only there do these codes mean the lock and the format.
  init(opening path: String, _ error: DatabaseError) {
    switch error.code {
    case .failedPrecondition:
      self.init(.locked, "\(error.message); close it there before a command writes to it")
    case .unimplemented: self.init(.newerFormat, error.message)
    case .alreadyExists: self.init(.failed, error.message)
    default: self.init(error)
    }
  }
}
