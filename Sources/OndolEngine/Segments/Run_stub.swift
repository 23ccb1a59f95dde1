final class Run: Sendable { }
