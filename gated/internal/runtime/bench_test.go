package runtime

import (
	"testing"

	"arizuko/pkg/testkit/docker"
)

// BenchmarkFirstFrame is the time from Start to an agent's first frame.
func BenchmarkFirstFrame(b *testing.B) {
	intruder := buildIntruder(b)
	engine := docker.Start(b)
	engine.Import(b, intruderImage, map[string]string{"agent": intruder})
	for _, name := range []string{"process", "bwrap", "docker"} {
		b.Run(name, func(b *testing.B) {
			e := newEstate(b, intruder)
			w := trial{name, intruder, engine}.way(e)
			for b.Loop() {
				c := w.converse(b, e.spec)
				c.ask("env LANG")
				b.StopTimer()
				c.finish()
				b.StartTimer()
			}
		})
	}
}
