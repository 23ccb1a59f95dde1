// swift-tools-version: 6.3
import PackageDescription

let package = Package(
  name: "service",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "ondol", path: "../.."),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .executableTarget(
      name: "App",
      dependencies: [
        .product(name: "Ondol", package: "ondol"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ]),
    .testTarget(
      name: "AppTests",
      dependencies: [
        "App",
        .product(name: "OndolTestKit", package: "ondol"),
        .product(name: "HummingbirdTesting", package: "hummingbird"),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
      ]),
  ],
  swiftLanguageModes: [.v6])
