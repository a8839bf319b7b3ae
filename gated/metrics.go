package main

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// newTurnsEnded counts how turns end.
func newTurnsEnded() *prometheus.CounterVec {
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_turns_ended_total", Help: "Turns that have ended, by how; a turn that is retried counts again.",
	}, []string{"state", "reason"})
	for reason, state := range map[msg.Reason]msg.TurnState{
		msg.ReasonAnswered: msg.TurnDone, msg.ReasonSilent: msg.TurnDone, msg.ReasonPartial: msg.TurnDone,
		msg.ReasonInterrupted: msg.TurnDone,
		msg.ReasonAgentError:  msg.TurnFailed, msg.ReasonAlreadyTold: msg.TurnFailed,
		msg.ReasonCancelled: msg.TurnCancelled, msg.ReasonOverBudget: msg.TurnCancelled,
	} {
		ended.WithLabelValues(string(state), string(reason))
	}
	return ended
}

// checkpointMeter counts checkpoints, and shows the size of the write-ahead log at path.
type checkpointMeter struct{ results *prometheus.CounterVec }

func newCheckpointMeter(reg prometheus.Registerer, path string) checkpointMeter {
	m := checkpointMeter{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_checkpoints_total",
		Help: "Checkpoints, by result: a busy one left the log to grow, since a reader holds it.",
	}, []string{"result"})}
	for _, result := range []string{"done", "busy", "failed"} {
		m.results.WithLabelValues(result)
	}
	reg.MustRegister(m.results, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "arizuko_wal_bytes",
		Help: "Size of the write-ahead log's file, which is cut back to 64 MiB when it starts over.",
	}, func() float64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return float64(info.Size())
	}))
	return m
}

func (m checkpointMeter) note(c store.Checkpoint, err error) {
	switch {
	case err != nil:
		m.results.WithLabelValues("failed").Inc()
	case c.Busy:
		m.results.WithLabelValues("busy").Inc()
	default:
		m.results.WithLabelValues("done").Inc()
	}
}
