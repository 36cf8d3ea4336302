print("runs in a sandbox")
