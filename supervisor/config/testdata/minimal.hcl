agent "worker" {
  command = ["./worker"]
}
