// A PostgreSQL of the tests' own, in a directory of its own, which only this process and its
// children can reach. A shell starts it and reads from a pipe of this process. When the pipe ends,
// however this process has ended, the shell stops the server and removes the directory.

import Foundation
import OndolPlatform
package import OndolPostgres
import Synchronization

package struct ServerFailure: Error, CustomStringConvertible {
  package var description: String

  package init(description: String) { self.description = description }
}

/// A running server.
package final class PostgresServer: Sendable {
  /// For all tests that leave the server unchanged.
  package static let shared = Result<PostgresServer, any Error> { try PostgresServer() }

  package let directory: String
  private let programs: String
  private let keeper: Process
  private let hasStandby = Atomic(false)
  private let leash: Pipe
  private let said: Pipe

  /// - Parameters:
  ///   - settings: lines of its configuration, which precede those for tests.
  ///   - place: the parent of its directory; short, because sockets have short names.
  package init(settings: String = "", in place: String = "/tmp") throws {
    programs = try Self.findPrograms()
    var template = Array("\(place)/ondol-postgres-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw ServerFailure(description: "no directory in \(place) can be made")
    }
    directory = String(
      decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let isRoot = getuid() == 0
    if isRoot {
      // The server refuses to run as root.
      guard let user = unsafe getpwnam("postgres") else {
        throw ServerFailure(description: "root needs the user postgres, which packages make")
      }
      unsafe chown(directory, user.pointee.pw_uid, user.pointee.pw_gid)
    }
    let script = """
      cd '\(directory)'
      '\(programs)/initdb' -D data -A trust -U postgres -E UTF8 --locale=C --no-sync >log 2>&1 \
        || { cat log; exit 1; }
      cat >>data/postgresql.conf <<'END'
      listen_addresses = ''
      unix_socket_directories = '\(directory)'
      max_connections = 400
      fsync = off
      \(settings)
      END
      '\(programs)/pg_ctl' -D data -w -t 120 -l log start >/dev/null 2>&1 || { cat log; exit 1; }
      echo ready
      while read order; do
        case $order in
          kill) '\(programs)/pg_ctl' -D data -m immediate -w stop >/dev/null 2>&1 ;;
          start) '\(programs)/pg_ctl' -D data -w -t 120 -l log start >/dev/null 2>&1 ;;
          standby)
            '\(programs)/pg_basebackup' -h '\(directory)' -U postgres -D standby -R -c fast \
              --no-sync >>log 2>&1 \
              && mkdir second \
              && echo "unix_socket_directories = '\(directory)/second'" >>standby/postgresql.conf \
              && '\(programs)/pg_ctl' -D standby -w -t 120 -l log.standby start >/dev/null 2>&1 ;;
          promote)
            '\(programs)/pg_ctl' -D data -m immediate -w stop >/dev/null 2>&1
            '\(programs)/pg_ctl' -D standby -w promote >/dev/null 2>&1 ;;
        esac
        echo $?
      done
      for data in data standby; do
        [ ! -d $data ] || '\(programs)/pg_ctl' -D $data -m immediate -w stop >/dev/null 2>&1
      done
      cd /
      rm -rf '\(directory)'
      """
    said = Pipe()
    leash = Pipe()
    for end in [leash.fileHandleForWriting, said.fileHandleForReading] {
      _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
    }
    keeper = Self.process("/bin/sh", ["-c", script])
    keeper.standardInput = leash
    keeper.standardOutput = said
    keeper.standardError = FileHandle.nullDevice
    try keeper.run()
    try? said.fileHandleForWriting.close()
    let words = String(decoding: said.fileHandleForReading.availableData, as: UTF8.self)
    guard words.hasPrefix("ready") else {
      throw ServerFailure(description: "PostgreSQL does not start: \(words)")
    }
  }

  deinit {
    try? leash.fileHandleForWriting.close()
    keeper.waitUntilExit()
  }

  private static func findPrograms() throws -> String {
    let roots = [
      "/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt", "/usr/pgsql",
    ]
    var found: [String] = []
    for root in roots {
      for entry in (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? [] {
        found.append("\(root)/\(entry)/bin")
      }
    }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    found += path.split(separator: ":").map(String.init)
    let suitable = found.filter { directory in
      ["initdb", "postgres", "pg_ctl", "psql"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "\(directory)/\($0)")
      }
    }
    guard let newest = suitable.max(by: { $0.compare($1, options: .numeric) == .orderedAscending })
    else {
      throw ServerFailure(
        description: "PostgreSQL was not found. Install it: apt-get install postgresql, dnf install"
          + " postgresql-server, or brew install postgresql")
    }
    return newest
  }

  /// A program that runs as the server's user.
  private static func process(_ program: String, _ arguments: [String]) -> Process {
    let process = Process()
    let isRoot = getuid() == 0
    process.executableURL = URL(filePath: isRoot ? "/usr/sbin/runuser" : program)
    process.arguments = (isRoot ? ["-u", "postgres", "--", program] : []) + arguments
    return process
  }

  /// The address of one of Ondol's databases on it, or on its standby after that has taken over.
  package func address(_ name: String, in database: String = "postgres") -> String {
    let hosts = directory + (hasStandby.load(ordering: .acquiring) ? ",\(directory)/second" : "")
    return "postgresql:///\(database)?host=\(hosts)&user=postgres&ondol=\(name)"
  }

  /// Returns a store with a database of its own, which is not open.
  package func store(
    _ name: String, in database: String = "postgres", answerTime: Duration = .seconds(60),
    patience: Duration = .seconds(60)
  ) throws -> PostgresStore {
    try PostgresStore(address(name, in: database), answerTime: answerTime, patience: patience)
  }

  // MARK: - Its life

  /// Kills all of its processes. It works as a power cut would, except that the system's memory
  /// survives.
  package func kill() throws { try tell("kill") }

  package func start() throws { try tell("start") }

  /// Adds a standby, which every commit waits for from now on.
  package func addStandby() throws {
    try tell("standby")
    try sql("alter system set synchronous_standby_names = '*'; select pg_reload_conf()")
    while try sql("select count(*) from pg_stat_replication where sync_state = 'sync'") != "1" {}
    hasStandby.store(true, ordering: .releasing)
  }

  /// Kills it permanently, and makes the standby take over.
  package func promoteStandby() throws { try tell("promote") }

  /// Makes the shell do something. This process does not do it itself, because `Process` considers
  /// a child running while the server, its descendant, has the descriptors that it was started
  /// with.
  private func tell(_ order: String) throws {
    try leash.fileHandleForWriting.write(contentsOf: Array("\(order)\n".utf8))
    let answer = String(decoding: said.fileHandleForReading.availableData, as: UTF8.self)
    guard answer == "0\n" else {
      throw ServerFailure(description: "PostgreSQL does not \(order): \(answer)")
    }
  }

  // MARK: - Statements

  /// Returns the answers of statements: a line for each row, with bars between columns.
  @discardableResult
  package func sql(_ text: String, in database: String = "postgres") throws -> String {
    let session = try PostgresSession(self, database)
    defer { session.close() }
    return try session.run(text)
  }

  fileprivate func psql(_ database: String) -> Process {
    let process = Process()
    process.executableURL = URL(filePath: "\(programs)/psql")
    process.arguments = [
      "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", directory, "-U", "postgres", database,
    ]
    return process
  }
}

/// A session of another client than Ondol.
package final class PostgresSession {
  private let process: Process
  private let input = Pipe()
  private let output = Pipe()
  private var rest = ""
  private var number = 0

  package init(_ server: PostgresServer, _ database: String = "postgres") throws {
    process = server.psql(database)
    for end in [input.fileHandleForWriting, output.fileHandleForReading] {
      _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
    }
    process.standardInput = input
    process.standardOutput = output
    process.standardError = output
    try process.run()
    try? output.fileHandleForWriting.close()
  }

  /// Returns the answers of statements.
  @discardableResult
  package func run(_ text: String) throws -> String {
    number += 1
    let mark = "-- end \(number)"
    try input.fileHandleForWriting.write(contentsOf: Data("\(text);\n\\echo '\(mark)'\n".utf8))
    while !rest.contains(mark) {
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw ServerFailure(description: "\(text): \(rest)") }
      rest += String(decoding: data, as: UTF8.self)
    }
    guard let place = rest.range(of: mark) else { return "" }
    let answer = String(rest[..<place.lowerBound])
    rest = String(rest[place.upperBound...])
    return answer.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  package func close() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}
