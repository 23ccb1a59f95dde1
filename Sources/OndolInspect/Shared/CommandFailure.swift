// What the tool says when it could not do as it was told, and with which status it ends. Scripts
// depend on the numbers: they are in Docs/Tools.md and never change their meaning.

import Foundation
import Ondol
import OndolTerminal

/// How the process ends.
enum ExitStatus: Int32 {
  case succeeded = 0
  /// It was tried, and failed.
  case failed = 1
  /// The command line makes no sense.
  case usage = 2
  /// What was asked for is not there.
  case notFound = 3
  /// Stored bytes are damaged.
  case corrupt = 4
  /// Another process has the database open.
  case locked = 5
  /// The files were written by a newer version.
  case newerFormat = 6
  /// Writing is not allowed here.
  case readOnly = 7
  /// A damaged database was saved, but not all of it.
  case salvagedWithLoss = 8
  /// A version or a unique value was not what it had to be.
  case conflict = 9
  /// ^C; what is stored is whole.
  case interrupted = 130

  func endProcess() -> Never {
    exit(rawValue)
  }
}

/// An error with its exit status.
struct CommandFailure: Error {
  let status: ExitStatus
  /// What to say, a line each; a name in it may have line breaks of its own, which are none here.
  let lines: [String]

  /// All of it, within the line of somebody else.
  var message: String { lines.joined(separator: " ") }

  init(_ status: ExitStatus, _ message: String) {
    self.init(status, lines: message.isEmpty ? [] : [message])
  }

  init(_ status: ExitStatus, lines: [String]) {
    self.status = status
    self.lines = lines
  }

  /// Says it on standard error; nothing where there is nothing to say.
  func tell() {
    for (index, line) in lines.enumerated() { Console.say(index == 0 ? "ondol: \(line)" : line) }
  }

  /// Nobody reads any more, as behind `head`: no failure, and nothing to say.
  static let outputClosed = CommandFailure(.succeeded, "")
  static let interrupted = CommandFailure(.interrupted, "")
}

extension CommandFailure {
  /// What the database threw while it was open. What it suggests is for programs that call it;
  /// whoever types commands is told of commands.
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
      case .corrupt: "; `ondol check` finds all damage, `ondol recover` saves what can be read"
      default: ""
      }
    self.init(status, error.localizedDescription + hint)
  }

  /// What `Database.open` threw. Only there do these codes mean the lock and the format.
  init(opening path: String, _ error: DatabaseError) {
    switch error.code {
    case .failedPrecondition:
      self.init(.locked, "\(error.message); a command that writes needs it closed there")
    case .unimplemented: self.init(.newerFormat, error.message)
    case .alreadyExists: self.init(.failed, error.message)
    default: self.init(error)
    }
  }
}
