package adapter

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"arizuko/pkg/adapter/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/metrics"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxClockAhead is how far in the future a platform's time may be before it means that a clock is wrong.
const maxClockAhead = 5 * time.Second

// counters measure a platform's adapter. Their labels are closed sets, never a chat or a sender.
type counters struct {
	platform string

	parts      *prometheus.CounterVec
	deliveries *prometheus.HistogramVec
	undecoded  prometheus.Counter
	ofBots     prometheus.Counter
	reconnects prometheus.Counter
	eventAge   prometheus.Histogram
	fromFuture prometheus.Counter
	downloads  *prometheus.CounterVec
	downloaded prometheus.Counter
	previews   *prometheus.CounterVec
}

func newCounters(o *Options, fetches, previews bool) *counters {
	// metrics of features that the platform lacks are not registered
	with := func(has bool) promauto.Factory {
		if !has {
			return promauto.With(nil)
		}
		return promauto.With(o.Metrics)
	}
	always, inbound, files, shown := with(true), with(o.Listener != nil), with(fetches), with(previews)
	m := &counters{
		platform: o.Platform,
		parts: always.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_outbox_parts_total",
			Help: "Parts of outbound rows that were tried or given up, by the state and the class of error they " +
				"were left in.",
		}, []string{"platform", "state", "class"}),
		deliveries: always.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "arizuko_delivery_seconds",
			Help:    "Time from storing an outbound row until all of it was delivered, or had failed.",
			Buckets: metrics.Slow(),
		}, []string{"platform", "state"}),
		undecoded: inbound.NewCounter(prometheus.CounterOpts{
			Name: "arizuko_updates_undecoded_total",
			Help: "Events that could not be decoded or stored and were skipped.",
		}),
		ofBots: inbound.NewCounter(prometheus.CounterOpts{
			Name: "arizuko_bot_messages_dropped_total",
			Help: "Messages of other bots that BOTS excludes, each time they come.",
		}),
		reconnects: inbound.NewCounter(prometheus.CounterOpts{
			Name: "arizuko_reconnects_total",
			Help: "Times that the connection to the platform ended or could not be made.",
		}),
		eventAge: inbound.NewHistogram(prometheus.HistogramOpts{
			Name: "arizuko_event_age_seconds", Help: "Time from a message, by the platform's clock, to its arrival.",
			Buckets: prometheus.ExponentialBuckets(0.125, 4, 9), // 0.125 s to 2 h
		}),
		fromFuture: inbound.NewCounter(prometheus.CounterOpts{
			Name: "arizuko_events_from_future_total",
			Help: "Messages that arrived more than 5 s before they were sent, by the platform's clock.",
		}),
		downloads: files.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_downloads_total", Help: "Attachments that were to be downloaded, by result.",
		}, []string{"result"}),
		downloaded: files.NewCounter(prometheus.CounterOpts{
			Name: "arizuko_download_bytes_total", Help: "Bytes of attachments that were downloaded.",
		}),
		previews: shown.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_previews_total",
			Help: "Messages that showed the progress of a turn, by how they ended: as the answer (final), " +
				"deleted (removed), or perhaps left on the platform (lost).",
		}, []string{"platform", "state"}),
	}
	inbound.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "arizuko_last_event_timestamp_seconds",
		Help: "When the platform's last event came, as unix time; 0: none since the start.",
	}, func() float64 { return float64(o.Heartbeat.EventAt()) / 1000 })
	m.zero()
	measureRows(o, fetches)
	return m
}

// zero makes series that are there before their first event, so that increase() counts that.
func (m *counters) zero() {
	for _, state := range []msg.OutState{msg.OutSent, msg.OutFailed, msg.OutAmbiguous} {
		m.deliveries.WithLabelValues(m.platform, string(state))
	}
	m.parts.WithLabelValues(m.platform, string(msg.OutSent), noClass)
	m.parts.WithLabelValues(m.platform, string(msg.OutFailed), string(msg.Permanent))
	m.parts.WithLabelValues(m.platform, string(msg.OutFailed), string(msg.Transient))
	m.parts.WithLabelValues(m.platform, string(msg.OutAmbiguous), string(msg.Ambiguous))
	m.downloads.WithLabelValues("done")
	m.downloads.WithLabelValues("failed")
	for _, state := range []rows.PreviewState{rows.PreviewFinal, rows.PreviewRemoved,
		rows.PreviewLost} {
		m.previews.WithLabelValues(m.platform, string(state))
	}
}

// noClass is the label of a part without an error.
const noClass = "none"

func unanswered(a *admission) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "arizuko_platform_unanswered_seconds",
		Help: "For how long the platform has answered no call, or has not been connected without " +
			"answering one since; 0 while it answers. Rows wait meanwhile.",
	}, func() float64 {
		_, outFor := a.answers()
		return outFor.Seconds()
	})
}

// measureRows registers the gauges that are read from rows.
func measureRows(o *Options, fetches bool) {
	waiting := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_outbox_rows", Help: "Outbound rows that are not delivered; at most 20,000 are counted.",
	}, []string{"platform"})
	oldest := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "arizuko_outbox_oldest_seconds",
		Help: "Age of the oldest outbound row that is not delivered, 0 for none.",
	}, []string{"platform"})
	gauges := []prometheus.Collector{waiting, oldest}
	files := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "arizuko_files_wanted_rows", Help: "Inbound rows whose attachments are to be downloaded.",
	})
	if fetches {
		gauges = append(gauges, files)
	}
	metrics.FromRows(o.Metrics, func(ctx context.Context) error {
		b, err := factrows.CountBacklog(ctx, o.Store.Reader, factrows.ForDelivery, o.Platform, metrics.MaxCount)
		if err != nil {
			return err
		}
		waiting.WithLabelValues(o.Platform).Set(float64(b.Count))
		oldest.WithLabelValues(o.Platform).Set(metrics.Age(o.Now(), b.Oldest))
		if !fetches {
			return nil
		}
		b, err = factrows.CountBacklog(ctx, o.Store.Reader, factrows.ForFiles, o.Platform, metrics.MaxCount)
		files.Set(float64(b.Count))
		return err
	}, gauges...)
}

// recorded counts parts whose states were stored.
func (m *counters) recorded(parts []store.Delivery) {
	for i := range parts {
		if p := &parts[i]; p.State != msg.OutSending {
			m.parts.WithLabelValues(m.platform, string(p.State), cmp.Or(string(p.ErrorClass), noClass)).Inc()
		}
	}
}

// previewEnded counts a preview.
func (m *counters) previewEnded(state rows.PreviewState) {
	m.previews.WithLabelValues(m.platform, string(state)).Inc()
}

// settled records how long a row took to be delivered.
func (m *counters) settled(row *msg.Message, now time.Time) {
	m.deliveries.WithLabelValues(m.platform, string(row.OutState)).Observe(metrics.Age(now, row.ReceivedAt))
}

// arrived records the age of a message at its arrival, both times in unix ms.
func (m *counters) arrived(sent, received int64) {
	age := time.Duration(received-sent) * time.Millisecond
	if age < -maxClockAhead {
		m.fromFuture.Inc()
	}
	m.eventAge.Observe(max(age, 0).Seconds())
}

// fetched records the end of a download of a number of bytes.
func (m *counters) fetched(bytes int64, err error) {
	result := "done"
	if err != nil {
		result, bytes = "failed", 0
	}
	m.downloads.WithLabelValues(result).Inc()
	m.downloaded.Add(float64(bytes))
}
