package runtime

import (
	"testing"

	"arizuko/pkg/testkit/docker"
)

// BenchmarkFirstFrame is the time from Start to an agent's first frame.
func BenchmarkFirstFrame(b *testing.B) {
	attacker := buildAttacker(b)
	engine := docker.Start(b)
	engine.Import(b, attackerImage, map[string]string{"agent": attacker})
	for _, name := range []string{"process", "bwrap", "docker"} {
		b.Run(name, func(b *testing.B) {
			e := newFixture(b, attacker)
			w := runtimeTest{name, attacker, engine}.open(e)
			for b.Loop() {
				c := w.start(b, e.spec)
				c.ask("env LANG")
				b.StopTimer()
				c.finish()
				b.StartTimer()
			}
		})
	}
}
