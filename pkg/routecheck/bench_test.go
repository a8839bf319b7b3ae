package routecheck

import (
	"fmt"
	"testing"
)

// A routd with 10,000 routes makes the warnings at each change of one.
func BenchmarkWarnings10k(b *testing.B) {
	var lines []string
	for i := range 9_900 {
		lines = append(lines, fmt.Sprintf("chat_jid=telegram:-%d verb=mention → acme", i))
	}
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("platform=slack room=C%d* sender_name=A* verb=mention → acme", i))
	}
	table, registered := routes(lines), groups(map[string]string{"acme": `{}`})
	for b.Loop() {
		if got := Warnings(table, registered); len(got) != 100 {
			b.Fatal(len(got))
		}
	}
}
