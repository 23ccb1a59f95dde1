// Describes the services and their messages, for tools such as grpcurl. The messages were generated
// from the same descriptors.

#if Server
  import Foundation
  import GRPCCore
  import OndolWire
  import SwiftProtobuf

  struct ReflectionService: WireServerReflection.SimpleServiceProtocol {
    private let services: [String]
    /// Serialized descriptors by the names of their files.
    private let files: [String: Data]
    /// The file that defines a service or a message.
    private let symbols: [String: String]

    init(services: [String]) {
      self.services = services
      var (files, symbols) = ([String: Data](), [String: String]())
      for text in WireDescriptors.sets.values {
        guard let data = Data(base64Encoded: text),
          let set = try? Google_Protobuf_FileDescriptorSet(serializedBytes: data)
        else { continue }
        for file in set.file {
          files[file.name] = try? file.serializedData()
          for service in file.service { symbols["\(file.package).\(service.name)"] = file.name }
          for message in file.messageType {
            symbols["\(file.package).\(message.name)"] = file.name
          }
        }
      }
      (self.files, self.symbols) = (files, symbols)
    }

    func serverReflectionInfo(
      request: RPCAsyncSequence<WireServerReflectionRequest, any Error>,
      response: RPCWriter<WireServerReflectionResponse>, context: ServerContext
    ) async throws {
      for try await request in request { try await response.write(answer(request)) }
    }

    private func answer(
      _ request: WireServerReflectionRequest
    ) -> WireServerReflectionResponse {
      .with {
        $0.validHost = request.host
        $0.originalRequest = request
        switch request.messageRequest {
        case .listServices:
          $0.listServicesResponse.service = services.sorted().map { name in
            .with { $0.name = name }
          }
        case .fileByFilename(let name): $0.messageResponse = file(name)
        case .fileContainingSymbol(let symbol):
          $0.messageResponse = file(symbols[Self.outermost(symbol, in: symbols)] ?? symbol)
        case .fileContainingExtension, .allExtensionNumbersOfType, nil:
          $0.errorResponse.errorCode = Int32(RPCError.Code.notFound.rawValue)
          $0.errorResponse.errorMessage = "there are no extensions"
        }
      }
    }

    /// The known symbol that equals or contains a symbol, as a service contains a method.
    private static func outermost(_ symbol: String, in symbols: [String: String]) -> String {
      var parts = symbol.split(separator: ".")
      while !parts.isEmpty, symbols[parts.joined(separator: ".")] == nil { parts.removeLast() }
      return parts.joined(separator: ".")
    }

    /// Returns a file and all its imports; an error if there is none.
    private func file(
      _ name: String
    ) -> WireServerReflectionResponse.OneOf_MessageResponse {
      guard files[name] != nil else {
        return .errorResponse(
          .with {
            $0.errorCode = Int32(RPCError.Code.notFound.rawValue)
            $0.errorMessage = "\(name) is not here"
          })
      }
      var (names, place) = ([name], 0)
      while place < names.count {
        let descriptor = files[names[place]].flatMap {
          try? Google_Protobuf_FileDescriptorProto(serializedBytes: $0)
        }
        for name in descriptor?.dependency ?? [] where !names.contains(name) { names.append(name) }
        place += 1
      }
      return .fileDescriptorResponse(
        .with { $0.fileDescriptorProto = names.compactMap { files[$0] } })
    }
  }
#endif
