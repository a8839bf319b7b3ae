package adapter

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// competing is the record of other programs that receive the account's events, as far as the platform shows them.
type competing struct {
	mu     sync.Mutex
	others int
	words  string
	over   *time.Timer // of CompeteFor, nil before its first call
}

// Compete records that other programs receive the account's events, 0 for none, as far as the platform shows it. The
// words name them and tell an operator how to stop them. The daemon stays connected: they stand in its row of daemons
// from the next Connected on, in the notes of /readyz, and once in the log.
func (s *Shell) Compete(others int, words string) {
	if others == 0 {
		words = ""
	}
	c := &s.competing
	c.mu.Lock()
	changed := c.words != words
	c.others, c.words = others, words
	c.mu.Unlock()
	if !changed {
		return
	}
	if others == 0 {
		s.Note()
		s.Log.Info("no other program is seen to receive events of this account any more", "platform", s.Platform)
		return
	}
	s.Note(words)
	s.Log.Warn("another program receives events of this account", "platform", s.Platform, "reason", words)
}

// CompeteFor is Compete for one other program, which is named for a time: the platform does not show its end.
func (s *Shell) CompeteFor(d time.Duration, words string) {
	s.Compete(1, words)
	c := &s.competing
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		c.over.Stop()
	}
	c.over = time.AfterFunc(d, func() { s.Compete(0, "") })
}

// state returns the last record.
func (c *competing) state() (others int, words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.others, c.words
}

func competingGauge(c *competing) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "arizuko_competing_receivers",
		Help: "Other programs that receive events of the account, as far as the platform shows them; 0: none is seen.",
	}, func() float64 {
		others, _ := c.state()
		return float64(others)
	})
}
