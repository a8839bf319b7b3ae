package tools

import "github.com/prometheus/client_golang/prometheus"

// Outcomes of calls, as labels.
const (
	outcomeOK      = "ok"
	outcomeRefused = "refused" // the caller's mistake, out of reach, or no open turn
	outcomeInvalid = "invalid" // the arguments do not fit the schema
	outcomeFailed  = "failed"
	outcomePanic   = "panic"
)

// unknownTool is the label of calls of tools that do not exist: any text may be called. It is also that of requests
// which were refused before they were read.
const unknownTool = "unknown"

// newCalls counts calls.
func newCalls(reg prometheus.Registerer, tools []Tool) *prometheus.CounterVec {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_tool_calls_total", Help: "Tool calls of agents, by tool and how they ended.",
	}, []string{"tool", "outcome"})
	for _, t := range tools {
		for _, outcome := range []string{outcomeOK, outcomeRefused, outcomeInvalid, outcomeFailed, outcomePanic} {
			calls.WithLabelValues(t.Name, outcome)
		}
	}
	calls.WithLabelValues(unknownTool, outcomeInvalid)
	calls.WithLabelValues(unknownTool, outcomeRefused)
	if reg != nil {
		reg.MustRegister(calls)
	}
	return calls
}
