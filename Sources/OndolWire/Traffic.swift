// How many bytes a call receives and sends. Services see messages and no bytes, so the serializers
// count them, for the call in whose task they work.

#if Server
  package import GRPCCore
  import GRPCProtobuf
  import Synchronization
  package import SwiftProtobuf

  /// The bytes of one call's messages, without gRPC's own.
  package final class Traffic: Sendable {
    /// The call that the current task answers.
    @TaskLocal package static var current: Traffic?

    private let receivedBytes = Atomic(0)
    private let sentBytes = Atomic(0)

    package init() {}

    package var received: Int { receivedBytes.load(ordering: .relaxed) }
    package var sent: Int { sentBytes.load(ordering: .relaxed) }

    fileprivate func receive(_ count: Int) {
      receivedBytes.wrappingAdd(count, ordering: .relaxed)
    }

    fileprivate func send(_ count: Int) {
      sentBytes.wrappingAdd(count, ordering: .relaxed)
    }
  }

  /// Serializes messages and counts their bytes.
  package struct MeasuredSerializer<Message: SwiftProtobuf.Message>: MessageSerializer {
    package init() {}

    package func serialize<Bytes: GRPCContiguousBytes>(_ message: Message) throws -> Bytes {
      let bytes: Bytes = try ProtobufSerializer<Message>().serialize(message)
      if let traffic = Traffic.current { traffic.send(bytes.count) }
      return bytes
    }
  }

  /// Deserializes messages and counts their bytes.
  package struct MeasuredDeserializer<Message: SwiftProtobuf.Message>: MessageDeserializer {
    package init() {}

    package func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Message {
      if let traffic = Traffic.current { traffic.receive(bytes.count) }
      return try ProtobufDeserializer<Message>().deserialize(bytes)
    }
  }

  extension GRPCContiguousBytes {
    fileprivate var count: Int { withUnsafeBytes { $0.count } }
  }
#endif
