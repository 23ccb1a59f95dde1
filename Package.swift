// swift-tools-version: 6.3
import PackageDescription

// What only programs need: whoever depends on a library and says `traits: []` does not fetch it.
let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser", condition: .when(traits: ["Tools"]))

// What speaks Firestore's protocol, from either end.
let ofProtocol = TargetDependencyCondition.when(traits: ["Server", "Sync"])

let package = Package(
  name: "ondol",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Ondol", targets: ["Ondol"]),
    // For apps' own tests: devices that lose power, fail and fill up; Tests/OndolTestKit/Product.
    .library(name: "OndolTestKit", targets: ["OndolTestKit"]),
    // The web console, to embed; it serves with the trait Console only.
    .library(name: "OndolConsole", targets: ["OndolConsole"]),
    // Firestore's protocol over a database, to embed; it serves with the trait Server only.
    .library(name: "OndolServer", targets: ["OndolServer"]),
    // Keeps a database equal to a server's; it synchronises with the trait Sync only.
    .library(name: "OndolSync", targets: ["OndolSync"]),
    // Accounts of an app's people: addresses, passwords, sessions, and who may see what.
    .library(name: "OndolAccounts", targets: ["OndolAccounts"]),
    // Databases on PostgreSQL; whoever uses it needs libpq, and nobody else does.
    .library(name: "OndolPostgres", targets: ["OndolPostgres"]),
    .executable(name: "ondol", targets: ["OndolInspect"]),
    .executable(name: "ondol-stress", targets: ["OndolStress"]),
  ],
  // The console is off unless asked for, so that who uses Ondol alone fetches no server.
  traits: [
    .default(enabledTraits: ["Tools"]),
    .trait(name: "Tools", description: "The programs: ondol and ondol-stress."),
    .trait(
      name: "Console", description: "The web console serves: `ondol console`.",
      enabledTraits: ["Tools"]),
    .trait(
      name: "Server", description: "The server for Firestore's clients: `ondol serve`.",
      enabledTraits: ["Tools"]),
    .trait(
      name: "Sync", description: "Databases are kept equal to a server's: `ondol sync`.",
      enabledTraits: ["Tools"]),
    .trait(
      name: "Postgres", description: "The programs reach databases on PostgreSQL, by libpq.",
      enabledTraits: ["Tools"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/swhitty/FlyingFox", exact: "0.27.1"),
    .package(url: "https://github.com/grpc/grpc-swift-2", from: "2.4.3"),
    .package(url: "https://github.com/grpc/grpc-swift-nio-transport", from: "2.9.2"),
    .package(url: "https://github.com/grpc/grpc-swift-protobuf", from: "2.4.1"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.5.1"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
  ],
  targets: [
    // C only where Swift cannot say it: checksum instructions and missing constants.
    .target(name: "COndol"),
    // The platform's C library, under one name.
    .target(name: "OndolPlatform"),
    // Foundation's small half, under one name.
    .target(name: "OndolFoundation"),
    .systemLibrary(
      name: "CLZ4", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"]), .brew(["lz4"])]),

    // The lower floor: ordered bytes that survive a crash.
    .target(
      name: "OndolEngine", dependencies: ["COndol", "CLZ4", "OndolPlatform"],
      exclude: ["Log/README.md", "Segments/README.md"]),
    // The upper floor, the product: values, collections, indexes, queries.
    .target(
      name: "Ondol",
      dependencies: [
        "OndolEngine", "OndolFoundation", .product(name: "Logging", package: "swift-log"),
        // SHA-256, which names the contents of blobs.
        .product(name: "Crypto", package: "swift-crypto"),
      ],
      exclude: ["Commits/README.md", "Observation/README.md"]),

    .systemLibrary(
      name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    // A database's rows on a server, in the place of files.
    .target(
      name: "OndolPostgres", dependencies: ["Ondol", "OndolEngine", "CLibPQ", "OndolPlatform"]),
    // Values as JSON and back, and the tool's dumps: a library, so that tests and fuzzers reach it.
    .target(name: "OndolJSON", dependencies: ["Ondol", "OndolEngine"]),
    // The console's pages and the template of `ondol new`, embedded by the C compiler.
    .target(name: "COndolFiles"),
    // The page in a browser, and what answers it. Web is what COndolFiles embeds.
    .target(
      name: "OndolConsole",
      dependencies: [
        "COndolFiles", "Ondol", "OndolEngine", "OndolFoundation", "OndolJSON", "OndolPlatform",
        // What its page of synchronisation shows.
        .target(name: "OndolSync", condition: .when(traits: ["Sync"])),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(
          name: "FlyingSocks", package: "FlyingFox", condition: .when(traits: ["Console"])),
      ],
      exclude: ["README.md", "Web"]),
    // Firestore's clients' server: messages, their mapping, and one service for each protocol. Its
    // files are empty without the trait.
    .target(
      name: "OndolServer",
      dependencies: [
        "Ondol", "OndolAccounts", "OndolJSON", "OndolMapping", "OndolWire",
        .product(name: "Logging", package: "swift-log"),
        // What rules compute digests with, and what signs tokens.
        .product(name: "Crypto", package: "swift-crypto"),
        // HTTP, for Auth's clients and for Prometheus.
        .product(
          name: "HummingbirdCore", package: "hummingbird", condition: .when(traits: ["Server"])),
        .product(
          name: "HummingbirdTLS", package: "hummingbird", condition: .when(traits: ["Server"])),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["Server"])),
        .product(
          name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["Server"])),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Server"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Server"])),
        .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(traits: ["Server"])),
        .product(
          name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport",
          condition: .when(traits: ["Server"])),
        // Certificates that are read again when they change.
        .product(
          name: "NIOCertificateReloading", package: "swift-nio-extras",
          condition: .when(traits: ["Server"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["Server"])),
        .product(name: "NIOWebSocket", package: "swift-nio", condition: .when(traits: ["Server"])),
        .product(
          name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Server"])),
      ]),
    // Its messages and calls, made by Scripts/protos.
    .target(
      name: "OndolWire",
      dependencies: [
        .product(name: "GRPCCore", package: "grpc-swift-2", condition: ofProtocol),
        .product(name: "GRPCProtobuf", package: "grpc-swift-protobuf", condition: ofProtocol),
        .product(name: "SwiftProtobuf", package: "swift-protobuf", condition: ofProtocol),
      ],
      exclude: ["Protos"]),
    // The protocol's values, names and writes, and the database's: for servers and for devices.
    .target(
      name: "OndolMapping",
      dependencies: [
        "Ondol", "OndolWire", .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf", condition: ofProtocol),
      ]),
    // Devices of that server, or of Google's. Its files are empty without the trait.
    .target(
      name: "OndolSync",
      dependencies: [
        "Ondol", "OndolEngine", "OndolMapping", "OndolPlatform", "OndolWire",
        .product(name: "Crypto", package: "swift-crypto"),
        // HTTP, for the contents of documents.
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Sync"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["Sync"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Sync"])),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["Sync"])),
        .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(traits: ["Sync"])),
        .product(
          name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport",
          condition: .when(traits: ["Sync"])),
        .product(
          name: "GRPCProtobuf", package: "grpc-swift-protobuf", condition: .when(traits: ["Sync"])),
        .product(
          name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Sync"])),
      ]),
    // Signing up and in. What it takes beside Ondol, scrypt, is swift-crypto's.
    .target(
      name: "OndolAccounts",
      dependencies: [
        "Ondol", "OndolEngine", "OndolFoundation",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ]),
    // What the programs have in common at a terminal.
    .target(name: "OndolTerminal", dependencies: ["OndolEngine", "OndolJSON"]),
    .executableTarget(
      name: "OndolInspect",
      dependencies: [
        "COndolFiles", "Ondol", "OndolAccounts", "OndolConsole", "OndolServer", "OndolSync",
        "OndolTerminal", "OndolEngine", "OndolJSON", "OndolPlatform",
        .product(name: "Logging", package: "swift-log"),
        .target(name: "OndolPostgres", condition: .when(traits: ["Postgres"])), argumentParser,
      ]),
    // The suites of SimulationTests for hours instead of seconds.
    .executableTarget(
      name: "OndolStress",
      dependencies: [
        "Ondol", "OndolTerminal", "OndolEngine", "OndolTestKit", argumentParser,
        .target(name: "OndolPostgres", condition: .when(traits: ["Postgres"])),
        .target(name: "OndolPostgresTestKit", condition: .when(traits: ["Postgres"])),
        .target(name: "OndolServerTestKit", condition: .when(traits: ["Server"])),
      ]),
    // The example apps, for whoever has the sources: no product, and so called as it is run.
    .executableTarget(
      name: "ondol-demo",
      dependencies: [
        "Ondol", "OndolAccounts", "OndolConsole", "OndolPlatform", "OndolServer", "OndolSync",
        "OndolTerminal", .product(name: "Logging", package: "swift-log"), argumentParser,
      ], path: "Sources/OndolDemo"),

    .target(
      name: "OndolTestKit",
      dependencies: ["Ondol", "OndolEngine", .product(name: "Logging", package: "swift-log")],
      path: "Tests/OndolTestKit"),
    .testTarget(
      name: "OndolEngineTests", dependencies: ["OndolEngine", "OndolPlatform", "OndolTestKit"]),
    .testTarget(
      name: "OndolTests",
      dependencies: [
        "Ondol", "OndolEngine", "OndolJSON", "OndolPlatform", "OndolPostgres",
        "OndolPostgresTestKit", "OndolTestKit",
      ]),
    .testTarget(
      name: "SimulationTests",
      dependencies: ["OndolEngine", "Ondol", "OndolPlatform", "OndolTestKit"]),
    .testTarget(
      name: "ConsoleTests", dependencies: ["Ondol", "OndolConsole", "OndolEngine", "OndolJSON"]),
    .testTarget(
      name: "ServerTests",
      dependencies: [
        "Ondol", "OndolAccounts", "OndolEngine", "OndolJSON", "OndolMapping", "OndolServer",
        "OndolServerTestKit", "OndolTestKit", "OndolWire",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(traits: ["Server"])),
        .product(
          name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Server"])),
      ]),
    .testTarget(
      name: "AccountsTests",
      dependencies: ["Ondol", "OndolAccounts", "OndolEngine", "OndolTestKit"]),
    // Servers, connections and clients in a simulation.
    .target(
      name: "OndolServerTestKit",
      dependencies: [
        "Ondol", "OndolEngine", "OndolServer", "OndolSync", "OndolTestKit", "OndolWire",
        .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(traits: ["Server"])),
        .product(
          name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Server"])),
      ], path: "Tests/OndolServerTestKit"),
    // Devices and their server, in a simulation and over sockets.
    .testTarget(
      name: "SyncTests",
      dependencies: [
        "Ondol", "OndolEngine", "OndolMapping", "OndolPlatform", "OndolServer",
        "OndolServerTestKit", "OndolSync", "OndolTestKit", "OndolWire",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(traits: ["Sync"])),
        .product(
          name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Sync"])),
      ]),
    // What an app's tests see of the test kit, through public calls alone.
    .testTarget(name: "TestKitTests", dependencies: ["Ondol", "OndolTestKit"]),
    // A PostgreSQL for tests, which starts and ends with them.
    .target(
      name: "OndolPostgresTestKit",
      dependencies: ["Ondol", "OndolEngine", "OndolPlatform", "OndolPostgres", "OndolTestKit"],
      path: "Tests/OndolPostgresTestKit"),
    .testTarget(
      name: "OndolPostgresTests",
      dependencies: [
        "Ondol", "OndolPostgres", "OndolEngine", "OndolPlatform", "OndolPostgresTestKit",
        "OndolTestKit",
      ]),
    .testTarget(name: "TidyTests"),
    // What it depends on are the modules that pages import.
    .testTarget(
      name: "DocumentationTests",
      dependencies: [
        "Ondol", "OndolAccounts", "OndolPostgres", "OndolTestKit",
        .product(name: "Logging", package: "swift-log"),
        argumentParser,
      ]),
  ],
  swiftLanguageModes: [.v6])

// Benchmarks against peers, whose libraries no user should need. BENCH names the peers to build in,
// with commas between, or is 1 for all; see Scripts/bench.
if let bench = Context.environment["BENCH"] {
  let libraries = [
    "lmdb": "CLMDB", "leveldb": nil, "rocksdb": nil, "sqlite": "CSQLite",
    "wiredtiger": "CWiredTiger", "xapian": nil,
  ]
  let hasGRDB = bench == "1" || bench.contains("grdb")
  // Loaded when it is measured: SQLite is linked, and has functions of the same names.
  let hasSQLCipher = bench == "1" || bench.contains("sqlcipher")
  let peers = libraries.keys.sorted().filter { bench == "1" || bench.contains($0) }
  let systemLibraries = peers.compactMap { libraries[$0] ?? nil }
  let linkedCxxLibraries = peers.filter { libraries[$0] == .some(nil) }
  let defines = (peers + (hasGRDB ? ["grdb"] : []) + (hasSQLCipher ? ["sqlcipher"] : []))
    .map { "PEER_" + $0.uppercased() }

  package.cxxLanguageStandard = .cxx17
  if hasGRDB {
    package.dependencies.append(
      .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"))
  }
  package.targets += systemLibraries.map {
    .systemLibrary(name: $0, path: "Benchmarks/Libraries/\($0)")
  }
  package.targets += [
    .target(
      name: "CPeers", path: "Benchmarks/CPeers", cxxSettings: defines.map { .define($0) },
      linkerSettings: linkedCxxLibraries.map { .linkedLibrary($0) }),
    .target(
      name: "Peers",
      dependencies: ["CPeers", "OndolPlatform"] + systemLibraries.map { .target(name: $0) }
        + (hasGRDB ? [.product(name: "GRDB", package: "GRDB.swift")] : []),
      path: "Benchmarks/Peers", swiftSettings: defines.map { .define($0) }),
    .target(
      name: "BenchmarkKit",
      dependencies: ["OndolPlatform", argumentParser], path: "Benchmarks/BenchmarkKit"),
    .executableTarget(
      name: "EngineBenchmarks",
      dependencies: [
        "BenchmarkKit", "CPeers", "Peers", "Ondol", "OndolEngine", "OndolPlatform",
        argumentParser,
      ], path: "Benchmarks/EngineBenchmarks", swiftSettings: defines.map { .define($0) }),
    .executableTarget(
      name: "DocumentBenchmarks",
      dependencies: ["BenchmarkKit", "CPeers", "Peers", "Ondol", argumentParser],
      path: "Benchmarks/DocumentBenchmarks", swiftSettings: defines.map { .define($0) }),
    .executableTarget(
      name: "BlobBenchmarks",
      dependencies: [
        "BenchmarkKit", "Peers", "Ondol", .product(name: "Crypto", package: "swift-crypto"),
        argumentParser,
      ],
      path: "Benchmarks/BlobBenchmarks", swiftSettings: defines.map { .define($0) }),
    .executableTarget(
      name: "ObservationBenchmarks",
      dependencies: ["BenchmarkKit", "Ondol", argumentParser]
        + (hasGRDB ? [.product(name: "GRDB", package: "GRDB.swift")] : []),
      path: "Benchmarks/ObservationBenchmarks", swiftSettings: defines.map { .define($0) }),
    .executableTarget(
      name: "PostgresBenchmarks",
      dependencies: [
        "BenchmarkKit", "CPeers", "Peers", "Ondol", "OndolEngine", "OndolPlatform",
        "OndolPostgres", "OndolPostgresTestKit", "CLibPQ",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ], path: "Benchmarks/PostgresBenchmarks", swiftSettings: defines.map { .define($0) }),
    .executableTarget(
      name: "SearchBenchmarks",
      dependencies: [
        "BenchmarkKit", "Peers", "Ondol",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ], path: "Benchmarks/SearchBenchmarks", swiftSettings: defines.map { .define($0) }),
    .executableTarget(
      name: "PipelineBenchmarks",
      dependencies: ["BenchmarkKit", "Peers", "Ondol", argumentParser],
      path: "Benchmarks/PipelineBenchmarks", swiftSettings: defines.map { .define($0) }),
    // Built with the trait Server.
    .executableTarget(
      name: "ServeBenchmarks",
      dependencies: [
        "BenchmarkKit", "Ondol", "OndolAccounts", "OndolPlatform", "OndolServer", "OndolWire",
        argumentParser, .product(name: "Logging", package: "swift-log"),
        .product(
          name: "HummingbirdCore", package: "hummingbird", condition: .when(traits: ["Server"])),
        .product(
          name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["Server"])),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Server"])),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(traits: ["Server"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Server"])),
        .product(name: "NIOWebSocket", package: "swift-nio", condition: .when(traits: ["Server"])),
        .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(traits: ["Server"])),
        .product(
          name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport",
          condition: .when(traits: ["Server"])),
        .product(
          name: "GRPCProtobuf", package: "grpc-swift-protobuf",
          condition: .when(traits: ["Server"])),
        .product(
          name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Server"])),
      ], path: "Benchmarks/ServeBenchmarks"),
    // Built with the traits Server and Sync.
    .executableTarget(
      name: "SyncBenchmarks",
      dependencies: [
        "BenchmarkKit", "Ondol", "OndolServer", "OndolSync", argumentParser,
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Sync"])),
        .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["Sync"])),
      ], path: "Benchmarks/SyncBenchmarks"),
    .executableTarget(
      name: "TreeBenchmarks",
      dependencies: ["BenchmarkKit", "Ondol", argumentParser], path: "Benchmarks/TreeBenchmarks"),
  ]
}

// Fuzzing. What is tried is one folder of sources for two users: Scripts/fuzz builds it with
// libFuzzer, which brings a main and so excludes everything else; the tests try the inputs that
// were kept.
let fuzzed: [Target.Dependency] = [
  "Ondol", "OndolAccounts", "OndolConsole", "OndolEngine", "OndolJSON", "OndolMapping",
  "OndolServer", "OndolTestKit", "OndolWire",
  .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(traits: ["Server"])),
  .product(name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Server"])),
]
if Context.environment["FUZZ"] == nil {
  package.targets.append(
    .testTarget(
      name: "FuzzTests", dependencies: fuzzed, path: "Fuzz", exclude: ["Entry", "Corpus"]))
} else {
  package.targets += [
    .target(name: "FuzzTargets", dependencies: fuzzed, path: "Fuzz/Targets"),
    .executableTarget(name: "OndolFuzz", dependencies: ["FuzzTargets"], path: "Fuzz/Entry"),
  ]
}

let cTargets = ["COndol", "COndolFiles"]
for target in package.targets where target.type != .system && !cTargets.contains(target.name) {
  target.swiftSettings =
    (target.swiftSettings ?? []) + [
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
      .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
      .enableUpcomingFeature("InferIsolatedConformances"),
      .enableUpcomingFeature("ImmutableWeakCaptures"),
      // Spans as results of our own functions; swift-collections and swift-nio rely on it too.
      .enableExperimentalFeature("Lifetimes"),
      .treatAllWarnings(as: .error),
    ]
  // The peers' adapters are calls into C from end to end, and the wire's messages are generated.
  if !["Peers", "OndolWire"].contains(target.name) {
    target.swiftSettings?.append(.strictMemorySafety())
  }
}

// Scripts/test sets it: what is tested is optimised there, with its checks left in, because the
// suites run for minutes and the compiler does not. Nobody who depends on the package has these
// flags.
if Context.environment["OPTIMIZE"] != nil {
  let tested = [
    "OndolEngine", "Ondol", "OndolJSON", "OndolTestKit", "OndolEngineTests", "OndolPostgresTests",
  ]
  for target in package.targets where tested.contains(target.name) {
    target.swiftSettings?.append(.unsafeFlags(["-O", "-assert-config", "Debug"]))
  }
}
