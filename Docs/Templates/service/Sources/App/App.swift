// Starts the service and ends it. On SIGTERM or Ctrl-C the server accepts no new connections, live
// streams end, requests under way finish, and then the database is closed.

import Foundation
import Hummingbird
import Logging
import Ondol
import ServiceLifecycle

@main
struct App {
  static func main() async throws {
    let environment = ProcessInfo.processInfo.environment
    let database = try await Database.open(at: environment["DATABASE"] ?? "shop.ondol")
    let app = makeApplication(
      try await Shop(database), host: environment["HOST"] ?? "127.0.0.1",
      port: environment["PORT"].flatMap { Int($0) } ?? 8080)
    try await app.runService()
  }
}

/// The application. Tests create one as well.
func makeApplication(
  _ shop: Shop, host: String = "127.0.0.1", port: Int = 0
) -> some ApplicationProtocol {
  let router = Router()
  router.add(middleware: LogRequestsMiddleware(.info))
  router.add(middleware: DatabaseErrors())
  addItemRoutes(to: router, shop)
  var app = Application(
    router: router, configuration: .init(address: .hostname(host, port: port)))
  // Services end in the opposite order, so the server goes before the database.
  app.addServices(DatabaseService(database: shop.database))
  return app
}

/// Closes the database when the service ends.
struct DatabaseService: Service {
  let database: Database

  func run() async throws {
    try? await gracefulShutdown()
    try await database.close()
  }
}
