package transcribe

import "github.com/prometheus/client_golang/prometheus"

// meter counts transcripts.
type meter struct{ ended *prometheus.CounterVec }

func newMeter(reg prometheus.Registerer) meter {
	m := meter{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_transcripts_total", Help: "Audio files that were to be transcribed, by result.",
	}, []string{"result"})}
	for _, result := range []string{"done", "failed"} {
		m.ended.WithLabelValues(result)
	}
	reg.MustRegister(m.ended)
	return m
}

func (m meter) count(failed bool) {
	if failed {
		m.ended.WithLabelValues("failed").Inc()
	} else {
		m.ended.WithLabelValues("done").Inc()
	}
}
