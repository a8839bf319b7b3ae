package main

import "os"

// model is the model of the group's configuration, "" for the command's default.
func model() string { return os.Getenv("AGENT_MODEL") }
