// Package runtimes tests whole instances whose agents are confined: in bubblewrap, and in containers
// of a real Docker engine. The agents are the demo agent and the real Claude Code.
package runtimes
